//! The three constant tools from a model's view.

use serde_json::{Value, json};
use toolcrib_artifacts::{Artifacts, MemoryStore};

use crate::support::{ask, ask_within, call, context_of, invalid, keep, keep_as, query, turn};

#[test]
fn the_schemas_of_the_artifact_tools_never_change() {
    let turn = turn();
    let tools = || turn.artifacts().tools().unwrap();
    let before: Vec<_> = tools().iter().map(|tool| tool.rendering().to_owned()).collect();
    keep(&turn, "{}");
    let after: Vec<_> = tools().iter().map(|tool| tool.rendering().to_owned()).collect();
    assert_eq!(before, after);
    let names: Vec<_> = tools().iter().map(|tool| tool.name().to_string()).collect();
    assert_eq!(names, ["artifact_read", "artifact_search", "artifact_query"]);
    for tool in tools() {
        assert!(tool.untrusted() && tool.annotations().read_only);
        toolcrib_core::__internal::check_schema(tool.input_schema()).unwrap();
    }
}

#[test]
fn an_id_that_does_not_exist_is_answered_with_those_that_do() {
    let turn = turn();
    let read = |id: &str| invalid(ask(&turn, "artifact_read", json!({ "id": id })));
    assert_eq!(read("x"), "artifact `x` does not exist; there are none");
    keep_as(&turn, "call_1", "a");
    keep_as(&turn, "call_2", "b");
    assert_eq!(read("x"), "artifact `x` does not exist; there are: call_2, call_1");
    for n in 0..100 {
        keep_as(&turn, &format!("more_{n}"), "c");
    }
    let message = read("../../etc/passwd\n");
    assert!(message.starts_with(
        "artifact `../../etc/passwd\\n` does not exist; the newest of 102 are: more_99, more_98"
    ));
    assert!(message.ends_with("more_80") && read(&"x".repeat(9_999)).len() < 500);
}

#[test]
fn an_artifact_of_another_conversation_is_unknown() {
    let artifacts = Artifacts::new(MemoryStore::new());
    keep_as(&crate::support::turn_of(&artifacts, "c1"), "hers", "secret");
    let tools = artifacts.tools().unwrap();
    for tool in &tools {
        let said = |id: &str| {
            let args = json!({ "id": id, "pattern": "x" });
            let args = if *tool.name() == "artifact_search" { args } else { json!({ "id": id }) };
            invalid(call(tool, args, context_of("c2", 9_000))).replace(id, "ID")
        };
        assert_eq!(said("hers"), said("nobodys"));
    }
}

#[test]
fn a_kind_says_what_it_can_be_asked() {
    let turn = turn();
    keep(&turn, "id,name\n1,Ann\n");
    let said = ask(&turn, "artifact_query", json!({ "id": "call" })).unwrap();
    insta::assert_snapshot!(said, @r#"
    columns: The names of the columns, each with its number from 0.
    row_count: The number of rows, without the header.
    rows: Rows from `start` (0 is the first) to `end`, exclusive. args: {"type":"object","properties":{"start":{"type":"integer","minimum":0,"default":0},"end":{"type":"integer","minimum":0}},"required":[],"additionalProperties":false}
    select: Some columns of the rows whose column matches a comparison. args: {"type":"object","properties":{"columns":{"type":"array","items":{"type":"string"},"maxItems":64,"description":"Names. Default: all of them."},"where":{"type":"object","properties":{"column":{"type":"string"},"op":{"enum":["eq","ne","lt","le","gt","ge","contains","exists"]},"value":{"type":["string","number","boolean"],"description":"A number is compared with fields as numbers. Needed by all but `exists`."}},"required":["column","op"],"additionalProperties":false},"limit":{"type":"integer","minimum":1,"maximum":10000,"description":"The maximum number to show."}},"required":[],"additionalProperties":false}
    "#);
    let message = invalid(ask(&turn, "artifact_query", json!({ "id": "call", "query": "keys" })));
    assert_eq!(
        message,
        "artifact `call` is of the kind csv; its queries are: columns, row_count, rows, select"
    );
}

#[test]
fn what_is_wrong_with_the_arguments_of_a_query_is_named_with_its_field() {
    let turn = turn();
    keep(&turn, "id,name\n1,Ann\n");
    let order = |value: Value| json!({ "where": { "column": "id", "op": "gt", "value": value } });
    for (name, args, expected) in [
        (
            "rows",
            json!({ "start": { "a": 1 } }),
            "`start`: expected an integer, received an object",
        ),
        ("rows", json!({ "start": -1 }), "`start`: the value is less than the minimum of 0"),
        ("rows", json!({ "from": 1, "to": 2 }), "`from`, `to`: there is no such argument"),
        ("row_count", json!({ "where": {} }), "`where`: there is no such argument"),
        (
            "select",
            json!({ "limit": 0, "where": { "column": "id", "op": "exists", "ops": "gt" } }),
            "`limit`: the value is less than the minimum of 1; `where.ops`: there is no such argument",
        ),
        (
            "select",
            order(json!([1])),
            "`where.value`: expected a boolean or a number or a string, received an array",
        ),
    ] {
        let message = invalid(query(&turn, name, args));
        assert_eq!(message, format!("the arguments of `{name}`: {expected}"));
    }
    let missing = json!({ "where": { "column": "id", "op": "eq" } });
    assert_eq!(
        invalid(query(&turn, "select", missing)),
        "`where.value` is required, with every `op` but `exists`"
    );
    assert_eq!(
        invalid(query(&turn, "select", order(json!(true)))),
        "`where.value` must be a number or a string for this `op`"
    );
}

#[test]
fn every_answer_keeps_within_the_budget_of_its_call_and_within_its_own() {
    let turn = turn();
    keep_as(&turn, "text", "some words\n".repeat(100_000));
    keep_as(&turn, "wide", "é".repeat(1_000_000));
    keep_as(&turn, "rows", format!("[{}1]", "{\"a\":\"some words\"},".repeat(20_000)));
    keep_as(&turn, "page", format!("# A\n## B\n{}", "## a heading\n[a](b)\n".repeat(5_000)));
    let asked = [
        ("artifact_read", json!({ "id": "text" })),
        ("artifact_read", json!({ "id": "wide" })),
        ("artifact_read", json!({ "id": "text", "tail": 90_000 })),
        (
            "artifact_search",
            json!({ "id": "text", "pattern": "words", "limit": 1_000, "context": 3 }),
        ),
        ("artifact_search", json!({ "id": "wide", "pattern": "é" })),
        ("artifact_query", json!({ "id": "rows", "query": "get" })),
        ("artifact_query", json!({ "id": "rows", "query": "slice" })),
        ("artifact_query", json!({ "id": "rows", "query": "path", "args": { "path": "$..a" } })),
        ("artifact_query", json!({ "id": "page", "query": "headings" })),
        ("artifact_query", json!({ "id": "page", "query": "links" })),
        ("artifact_query", json!({ "id": "page" })),
    ];
    for (name, args) in asked {
        for budget in [600, 5_000, 80_000, usize::MAX] {
            let answer = ask_within(&turn, name, args.clone(), budget);
            let length = match answer {
                Ok(answer) => answer.chars().count(),
                Err(error) => error.message.chars().count(),
            };
            let fence = toolcrib_core::__internal::fence_chars(name);
            assert!(length + fence <= budget.min(20_000 + fence), "{name} {args}: {length}");
        }
    }
}
