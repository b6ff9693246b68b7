//! Contents designed to break readers, and invented arguments.

use serde_json::{Value, json};
use toolcrib_core::ErrorCode;

use crate::support::{ask, body, forged, keep, keep_as, keep_kind, pages, query, turn};

fn asked(content: impl AsRef<[u8]>, name: &str, args: Value) -> String {
    let turn = turn();
    keep(&turn, content);
    query(&turn, name, args).unwrap()
}

/// Any number from a model gets an answer or an error.
#[test]
fn numbers_beyond_all_bounds_are_answered() {
    let turn = turn();
    keep_as(&turn, "text", "one\ntwo\nthree");
    keep_as(&turn, "wide", "x".repeat(100_000));
    keep_as(&turn, "nothing", "");
    keep_as(&turn, "json", "{\"a\": [1, 2, 3]}");
    keep_as(&turn, "rows", "{\"a\": 1}\n{\"a\": 2}\n");
    keep_as(&turn, "csv", "a,b\n1,2\n3,4\n");
    keep_as(&turn, "page", "# A\n\n## B\n```\n```\n");
    let numbers = [json!(0), json!(1), json!(u64::MAX), json!(i64::MIN), json!(1e300)];
    let mut answers = 0;
    for id in ["text", "wide", "nothing", "json", "rows", "csv", "page"] {
        for (n, m) in numbers.iter().flat_map(|n| numbers.iter().map(move |m| (n, m))) {
            let of_one = [
                ("artifact_read", json!({ "id": id, "head": n })),
                ("artifact_read", json!({ "id": id, "tail": n })),
                ("artifact_query", json!({ "id": id, "query": "head", "args": { "n": n } })),
                ("artifact_query", json!({ "id": id, "query": "tail", "args": { "n": n } })),
                ("artifact_query", json!({ "id": id, "query": "select", "args": { "limit": n } })),
                (
                    "artifact_query",
                    json!({ "id": id, "query": "headings", "args": { "depth": n } }),
                ),
            ];
            let of_two = [
                ("artifact_read", json!({ "id": id, "lines": { "from": n, "to": m } })),
                ("artifact_read", json!({ "id": id, "bytes": { "from": n, "to": m } })),
                ("artifact_search", json!({ "id": id, "pattern": "", "limit": n, "context": m })),
                (
                    "artifact_query",
                    json!({ "id": id, "query": "cat", "args": { "start": n, "end": m } }),
                ),
                (
                    "artifact_query",
                    json!({ "id": id, "query": "slice", "args": { "at": "/a", "start": n, "end": m } }),
                ),
                (
                    "artifact_query",
                    json!({ "id": id, "query": "rows", "args": { "start": n, "end": m } }),
                ),
            ];
            let of_one = of_one.into_iter().filter(|_| n == m);
            for (tool, args) in of_one.chain(of_two) {
                match ask(&turn, tool, args.clone()) {
                    Ok(answer) => {
                        assert!(!answer.trim().is_empty(), "{tool} {args}");
                        answers += 1;
                    }
                    Err(error) => assert_eq!(error.code, ErrorCode::InputInvalid, "{args}"),
                }
            }
        }
    }
    assert!(answers > 200, "{answers}");
}

/// A cursor can be forged: the digest's digits appear in every answer.
#[test]
fn a_cursor_that_is_made_up_leads_nowhere_else() {
    let turn = turn();
    let contents = [
        ("text", "one\ntwo\nthree\n".repeat(50)),
        ("json", format!("[{}0]", "1,".repeat(500))),
        ("rows", "{\"a\": 1}\n".repeat(100)),
        ("csv", "a,b\n1,2\n".repeat(100)),
        ("page", "# A\n[b](c)\n".repeat(100)),
    ];
    for (id, content) in contents {
        let artifact = keep_as(&turn, id, content);
        let digest = artifact.entry().digest.to_string();
        for from in ["0", "1", "2", "7", "99", "100", "101", "100000", "18446744073709551615"] {
            let cursor = format!("{from}@{}", &digest[..8]);
            for (tool, mut args) in [
                ("artifact_read", json!({})),
                ("artifact_read", json!({ "lines": { "from": 2, "to": 3 } })),
                ("artifact_search", json!({ "pattern": "e$" })),
                ("artifact_search", json!({ "pattern": "^", "context": 2 })),
                ("artifact_query", json!({})),
                ("artifact_query", json!({ "query": "slice" })),
                ("artifact_query", json!({ "query": "path", "args": { "path": "$[*]" } })),
                ("artifact_query", json!({ "query": "rows" })),
                ("artifact_query", json!({ "query": "select" })),
                ("artifact_query", json!({ "query": "links" })),
            ] {
                args["id"] = json!(id);
                args["cursor"] = json!(cursor);
                match ask(&turn, tool, args.clone()) {
                    Ok(answer) => assert!(!answer.trim().is_empty(), "{tool} {args}"),
                    Err(error) => assert_eq!(error.code, ErrorCode::InputInvalid, "{args}"),
                }
            }
        }
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    for (kind, content) in [
        ("json", "\u{feff}{\"a\": [1, 2]}"),
        ("jsonl", "\u{feff}{\"a\": 1}\n{\"a\": 2}\n"),
        ("markdown", "\u{feff}---\na: b\n---\n# A\n## B\n"),
        ("csv", "\u{feff}a,b\n1,2\n"),
    ] {
        let turn = turn();
        let artifact = keep(&turn, content);
        assert_eq!(&*artifact.entry().note.kind, kind);
        assert!(!artifact.handle().contains('\u{feff}'), "{kind}");
        let (name, args, expected) = match kind {
            "json" => ("get", json!({ "at": "/a/1" }), "2"),
            "jsonl" => ("path", json!({ "path": "$.a" }), "1\n2"),
            "markdown" => ("frontmatter", json!({}), "a: b"),
            _ => ("columns", json!({}), "0: a\n1: b"),
        };
        assert_eq!(query(&turn, name, args).unwrap(), expected);
        let read = ask(&turn, "artifact_read", json!({ "id": "call" })).unwrap();
        assert_eq!(read, content, "what is read is what was kept, byte for byte");
    }
}

#[test]
fn numbers_and_escapes_that_no_value_can_hold_are_said_and_the_rest_is_read() {
    let document = r#"{"large": 1e999, "id": 12345678901234567890123, "half": "\ud800", "ok": 1}"#;
    let refused = |at: &str| {
        let turn = turn();
        keep(&turn, document);
        query(&turn, "get", json!({ "at": at })).unwrap_err().message
    };
    assert!(
        refused("/large").starts_with("a number in it is too large to be read as one, at line 1")
    );
    assert!(refused("/half").starts_with("it is not valid JSON: "), "{}", refused("/half"));
    assert_eq!(asked(document, "get", json!({ "at": "/ok" })), "1");
    assert_eq!(asked(document, "keys", json!({})), "large\nid\nhalf\nok");
    assert_eq!(asked(document, "get", json!({ "at": "/id" })), "1.2345678901234568e+22");
    let lines = "{\"a\": 1}\n\n  \n{\"a\": 1e999}\n{\"a\": \"\\udc00\"}\n{\"a\": 2}";
    insta::assert_snapshot!(asked(lines, "path", json!({ "path": "$.a" })), @"
    1
    2
    [skipped as invalid JSON: 2, the first is line 4: a number in it is too large to be read as one]
    ");
    assert_eq!(asked(lines, "length", json!({})), "4");
}

#[test]
fn fences_in_fences_hide_headings_and_a_frontmatter_without_an_end_is_none() {
    let page = "---\nopen: yes\n# A\n````md\n```sh\n# not\n```\n# not either\n````\n~~~\n# nor\n```\n# nor\n~~~\n## B\n```";
    let turn = turn();
    keep_kind(&turn, "markdown", page);
    assert_eq!(query(&turn, "headings", json!({})).unwrap(), "3: # A\n15: ## B");
    assert_eq!(query(&turn, "frontmatter", json!({})).unwrap(), "(no frontmatter)");
    let blocks = query(&turn, "code_blocks", json!({ "language": "md" })).unwrap();
    assert_eq!(blocks, "4-9: md\n```sh\n# not\n```\n# not either");
    let last = query(&turn, "code_blocks", json!({ "language": "" })).unwrap();
    assert!(last.contains("\n16-16: (no language)"), "{last}");
}

#[test]
fn a_line_of_many_megabytes_of_json_is_walked_and_not_held() {
    // One record exceeds the maximum length of a jsonl line; the others are still readable by their
    // place.
    let turn = turn();
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(17 * 1024 * 1024));
    keep(&turn, format!("{{\"a\": 1}}\n{{\"a\": 2}}\n{long}\n"));
    assert_eq!(query(&turn, "get", json!({ "at": "/1/a" })).unwrap(), "2");
    let why = query(&turn, "length", json!({})).unwrap_err().message;
    assert!(why.starts_with("line 3 is longer than 16777216 bytes"), "{why}");
    let found =
        ask(&turn, "artifact_search", json!({ "id": "call", "pattern": "xx\"}$" })).unwrap();
    assert!(found.starts_with("3:…"), "{found}");
}

#[test]
fn a_record_of_more_than_a_few_blocks_is_read_in_whole() {
    let record = json!({ "text": "x".repeat(700_000), "last": "end" });
    let lines = format!("{{\"last\": 1}}\n{{\"last\": 2}}\n{record}\n{{\"last\": 3}}\n");
    assert_eq!(asked(lines, "path", json!({ "path": "$.last" })), "1\n2\n\"end\"\n3");
}

#[test]
fn an_answer_that_matches_far_more_than_it_shows_writes_out_only_that() {
    let turn = turn();
    // Each of 100 levels contains all levels below it, so that all of them together are a hundred
    // times as large.
    let deep = (0..100).fold(json!("x".repeat(30_000)), |inner, n| json!({ "n": n, "in": inner }));
    keep(&turn, deep.to_string());
    let mut shown = 0;
    for page in pages(&turn, "path", &json!({ "path": "$..n", "limit": 7 })) {
        shown += page.lines().count();
    }
    assert_eq!(shown, 100);
    let first = query(&turn, "path", json!({ "path": "$..in", "limit": 1 })).unwrap();
    assert!(body(&first).contains("… [cut: 31"), "{}", first.len());
}

#[test]
fn forged_tools_take_no_arguments_that_they_do_not_know() {
    let turn = turn();
    keep(&turn, "one");
    for (name, args) in [
        ("artifact_head", json!({ "n": 1, "id": "other" })),
        ("artifact_cat", json!({ "start": "1" })),
        ("artifact_grep", json!({})),
        ("artifact_grep", json!({ "pattern": ["a"] })),
        ("artifact_byte_length", json!({ "n": 1 })),
    ] {
        let error = forged(&turn, name, args).unwrap_err();
        assert_eq!(error.code, ErrorCode::InputInvalid, "{name}");
    }
}
