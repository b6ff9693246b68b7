//! Markdown, tables, detection of kinds, and custom kinds.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_artifacts::{
    Answer, ArtifactKind, ArtifactLimits, ArtifactSource, Artifacts, ContentHead, MemoryStore,
    Query, QueryRequest, arguments, forge_tools,
};
use toolcrib_core::ToolError;

use crate::support::{forged, invalid, keep, keep_as, keep_kind, query, turn, turn_of};

fn kind(content: impl AsRef<[u8]>) -> String {
    keep(&turn(), content).entry().note.kind.to_string()
}

#[test]
fn a_kind_is_told_by_how_a_content_begins() {
    for (content, expected) in [
        ("", "text"),
        ("plain words, and a comma\n", "text"),
        ("[INFO] started\n[INFO] stopped\n", "text"),
        ("{\"a\": 1}", "json"),
        ("  [1,\n 2]\n", "json"),
        ("{\"a\": 1}\n{\"a\": 2}\n", "jsonl"),
        ("{\"a\": 1}\n{\"a\": 2}\n{\"a\":", "jsonl"),
        ("{\"cut\": [1, 2", "json"),
        ("{ not json }", "text"),
        ("3\n4\n", "text"),
        ("# Title\n\nSome [link](https://a.b).\n", "markdown"),
        ("---\ntitle: x\n---\n# Title\n", "markdown"),
        ("#!/bin/sh\n# a comment\n## another\n", "text"),
        ("# a comment\nkey = 1\n", "text"),
        ("id,name\n1,Ann\n2,\"Ben, jr.\"\n", "csv"),
        ("id\tname\n1\tAnn\n", "tsv"),
        ("id;price\n1;2,50\n2;3,00\n", "csv-semicolon"),
        ("a,b\n1,2,3\n", "text"),
        ("one column\nonly\n", "text"),
    ] {
        assert_eq!(kind(content), expected, "{content:?}");
    }
    let large = format!("[{}1]", "{\"a\": \"é\"},".repeat(5_000));
    assert_eq!(kind(large), "json", "although its end was not looked at");
    assert_eq!(kind("{\"a\": \"é\"}\n".repeat(5_000)), "jsonl");
    assert_eq!(kind("é,ü\n".repeat(10_000)), "csv");
}

const PAGE: &str = "---
title: Notes
---
# Notes

See [the docs](https://docs.example/a_(b)) and ![a picture](p.png).

## Install

```sh
# not a heading
curl [no](link)
```

### Windows

~~~~
```
still code
~~~
~~~~

## Use ##
Text [ref].

[ref]: https://ref.example

```
open to the end
";

fn page(name: &str, args: Value) -> String {
    let turn = turn();
    keep(&turn, PAGE);
    query(&turn, name, args).unwrap()
}

#[test]
fn the_parts_of_markdown_are_found() {
    let mut all = String::new();
    for (name, args) in [
        ("frontmatter", json!({})),
        ("headings", json!({})),
        ("headings", json!({ "depth": 1 })),
        ("sections", json!({ "depth": 2 })),
        ("section", json!({ "heading": "Windows" })),
        ("section", json!({ "heading": "## Use" })),
        ("code_blocks", json!({})),
        ("code_blocks", json!({ "language": "sh" })),
        ("code_blocks", json!({ "language": "" })),
        ("links", json!({})),
        ("images", json!({})),
    ] {
        all += &format!("== {name} {args}\n{}\n", page(name, args.clone()));
    }
    insta::assert_snapshot!(all, @r###"
    == frontmatter {}
    title: Notes
    == headings {}
    4: # Notes
    8: ## Install
    15: ### Windows
    23: ## Use
    == headings {"depth":1}
    4: # Notes
    == sections {"depth":2}
    4-30: Notes
    8-22: Install
    23-30: Use
    == section {"heading":"Windows"}
    ### Windows

    ~~~~
    ```
    still code
    ~~~
    ~~~~

    == section {"heading":"## Use"}
    ## Use ##
    Text [ref].

    [ref]: https://ref.example

    ```
    open to the end

    == code_blocks {}
    10-13: sh
    # not a heading
    curl [no](link)
    17-21: (no language)
    ```
    still code
    ~~~
    28-30: (no language)
    open to the end

    == code_blocks {"language":"sh"}
    10-13: sh
    # not a heading
    curl [no](link)
    == code_blocks {"language":""}
    17-21: (no language)
    ```
    still code
    ~~~
    28-30: (no language)
    open to the end

    == links {}
    6: [the docs](https://docs.example/a_(b))
    26: [ref](https://ref.example)
    == images {}
    6: [a picture](p.png)
    "###);
    let turn = turn();
    keep(&turn, "# A\n\n## B\n");
    assert_eq!(query(&turn, "frontmatter", json!({})).unwrap(), "(no frontmatter)");
    assert_eq!(query(&turn, "links", json!({})).unwrap(), "(nothing)");
    assert!(
        invalid(query(&turn, "section", json!({ "heading": "C" }))).contains("heading not found")
    );
}

#[test]
fn a_frontmatter_that_does_not_end_soon_is_none() {
    let turn = turn();
    keep(&turn, format!("---\n{}---\n# A\n## B\n", "key: value\n".repeat(250)));
    assert_eq!(query(&turn, "frontmatter", json!({})).unwrap(), "(no frontmatter)");
    assert_eq!(query(&turn, "headings", json!({})).unwrap(), "253: # A\n254: ## B");
}

#[test]
fn what_is_read_by_its_lines_is_what_was_found_there() {
    let turn = turn();
    keep(&turn, PAGE);
    let section = query(&turn, "section", json!({ "heading": "Install" })).unwrap();
    let sections = query(&turn, "sections", json!({})).unwrap();
    let range = sections.lines().find(|line| line.ends_with(": Install")).unwrap();
    let (from, to) = range.split_once(':').unwrap().0.split_once('-').unwrap();
    let lines = json!({ "from": from.parse::<u64>().unwrap(), "to": to.parse::<u64>().unwrap() });
    let read = crate::support::ask(&turn, "artifact_read", json!({ "id": "call", "lines": lines }));
    assert_eq!(read.unwrap(), section);
}

const TABLE: &str = "id,name,note\r\n1,Ann,\"likes, commas\"\r\n2,Ben,\"two\nlines\"\r\n3,Cem,\r\n";

fn table(name: &str, args: Value) -> String {
    let turn = turn();
    keep(&turn, TABLE);
    query(&turn, name, args).unwrap()
}

#[test]
fn the_columns_and_rows_of_a_table_are_found() {
    assert_eq!(table("columns", json!({})), "0: id\n1: name\n2: note");
    assert_eq!(table("row_count", json!({})), "3");
    assert_eq!(
        table("rows", json!({ "start": 1, "end": 2 })),
        "id,name,note\n2,Ben,\"two\nlines\""
    );
    assert_eq!(
        table("select", json!({ "columns": ["name", "id"] })),
        "name,id\nAnn,1\nBen,2\nCem,3"
    );
    let where_ = |column: &str, op: &str, value: Value| {
        let condition = json!({ "column": column, "op": op, "value": value });
        table("select", json!({ "columns": ["id"], "where": condition })).replace('\n', " ")
    };
    assert_eq!(where_("name", "eq", json!("Ben")), "id 2");
    assert_eq!(where_("name", "ne", json!("Ben")), "id 1 3");
    assert_eq!(where_("id", "ge", json!(2)), "id 2 3");
    assert_eq!(where_("id", "lt", json!(10)), "id 1 2 3");
    assert_eq!(where_("note", "contains", json!("comma")), "id 1");
    assert_eq!(where_("name", "gt", json!(5)), "id", "what is no number is in no order with one");
    let turn = turn();
    keep(&turn, TABLE);
    let args = json!({ "columns": ["nope"] });
    assert!(invalid(query(&turn, "select", args)).contains("unknown column"));
}

#[test]
fn a_quote_that_is_never_closed_does_not_take_all_memory() {
    let turn = turn();
    let content = format!("a,b\n1,2\n3,\"{}", "x".repeat(17 * 1024 * 1024));
    keep(&turn, content);
    let error = query(&turn, "row_count", json!({})).unwrap_err().message;
    assert!(error.contains("perhaps a quote is not closed"), "{error}");
}

#[test]
fn underlined_headings_are_headings() {
    let page = "---\ntitle: x\n---\nTitle\n=====\ntext\n\n---\n\nSub of\ntwo lines\n  ---  \nmore\n\n\
                ```\nCode\n====\n```\n- item\n---\n> quote\n---\n\n    code\n    ----\n\na | b\n--- | ---\n\n\
                ### Third\n---\n1. one\ntwo\n---\n\nLast\r\n===\r\nend\n";
    let turn = turn();
    keep_kind(&turn, "markdown", page);
    assert_eq!(
        query(&turn, "headings", json!({})).unwrap(),
        "4: # Title\n10: ## Sub of two lines\n30: ### Third\n36: # Last"
    );
    assert_eq!(
        query(&turn, "section", json!({ "heading": "Last" })).unwrap(),
        "Last\r\n===\r\nend\n"
    );
    let sections = query(&turn, "sections", json!({ "depth": 1 })).unwrap();
    assert!(sections.starts_with("4-35: Title\n36-"), "{sections}");
    let shown = query(&turn, "section", json!({ "heading": "Sub of two lines" })).unwrap();
    assert!(shown.starts_with("Sub of\ntwo lines\n  ---  \nmore\n"), "{shown}");
}

/// Greetings, one per line.
struct Greetings;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Nth {
    n: u64,
}

impl ArtifactKind for Greetings {
    fn name(&self) -> &'static str {
        "greetings"
    }

    fn detect(&self, start: &ContentHead<'_>) -> bool {
        start.text().starts_with("hello")
    }

    fn queries(&self) -> Vec<Query> {
        vec![
            Query::new("nth", "The greeting of a number, from 0.")
                .takes(json!({ "n": { "type": "integer", "minimum": 0 } }))
                .requires(["n"]),
        ]
    }

    fn query(&self, asked: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        let Nth { n } = arguments(asked)?;
        let range = asked.content.line_range(n..n + 1)?;
        let bytes = asked.content.read(range)?;
        Ok(Answer::text(String::from_utf8_lossy(&bytes)))
    }
}

#[test]
fn users_add_kinds_which_are_asked_first_and_tools_name_theirs() {
    let kinds: Vec<Arc<dyn ArtifactKind>> = vec![Arc::new(Greetings)];
    let limits = ArtifactLimits::default();
    let artifacts = Artifacts::with(Arc::new(MemoryStore::new()), kinds, limits);
    let turn = turn_of(&artifacts, "c1");
    keep(&turn, "hello,you\nhello,there\n");
    assert_eq!(query(&turn, "nth", json!({ "n": 1 })).unwrap(), "hello,there");
    let registry = forge_tools(&turn).unwrap();
    assert!(registry.has("artifact_greetings_nth") && !registry.has("artifact_csv_rows"));
    assert_eq!(forged(&turn, "artifact_greetings_nth", json!({ "n": 0 })).unwrap(), "hello,you");
    assert!(invalid(query(&turn, "nth", json!({}))).contains("`n`: it is required"));
    let named = ArtifactSource::of("t", "other").kind("csv");
    assert_eq!(turn.keep(named, b"hello,you\n1,2\n").unwrap().kind().name(), "csv");
    keep_as(&turn, "third", "nothing of it");
    let message = invalid(crate::support::ask(
        &turn,
        "artifact_query",
        json!({ "id": "third", "query": "nth" }),
    ));
    assert!(message.starts_with("artifact `third` is of the kind text; its queries are: head"));
}
