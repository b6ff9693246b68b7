//! Patterns and paths of a model that determine the work of a search.

use std::{sync::mpsc, thread, time::Duration};

use serde_json::{Value, json};
use toolcrib_clock::processor_time;
use toolcrib_core::{CancellationToken, Identity, ToolContext, ToolContextParts};

use crate::support::{ask, call, invalid, keep, keep_kind, query, turn};

/// Has thousands of states, and none is quickly excluded.
const SLOW: &str = "((a|b|c|[^d]){1,25}){1,25}z";

/// The maximum time of a search after its cancellation: some milliseconds on an idle machine, but
/// tests run unoptimized and concurrently. A search of a whole megabyte takes half an hour.
const AFTER_CANCELLATION: Duration = Duration::from_secs(300);

#[test]
fn a_search_with_a_slow_pattern_can_be_stopped_in_the_middle_of_a_line() {
    let turn = turn();
    keep(&turn, "a".repeat(2 * 1024 * 1024));
    let tools = turn.artifacts().tools().unwrap();
    let tool = tools.iter().find(|tool| **tool.name() == *"artifact_search").unwrap().clone();
    let cancellation = CancellationToken::new();
    let context = ToolContext::from(ToolContextParts {
        identity: std::sync::Arc::new(Identity::conversation("c1")),
        turn_id: "run-1".into(),
        cancellation: cancellation.clone(),
        ..ToolContextParts::detached()
    });
    let (done, searched) = mpsc::channel();
    thread::spawn(move || {
        let args = json!({ "id": "call", "pattern": SLOW });
        let _ = done.send(call(&tool, args, context));
    });
    let early = searched.recv_timeout(Duration::from_millis(200));
    assert!(early.is_err(), "it is no slow pattern: {early:?}");
    cancellation.cancel();
    let outcome = searched.recv_timeout(AFTER_CANCELLATION).expect("it goes on searching");
    assert!(outcome.is_err(), "{outcome:?}");
}

#[test]
fn a_path_cannot_compile_large_patterns_for_each_value() {
    let turn = turn();
    let rows: Vec<Value> =
        (0..2_000).map(|n| json!({ "n": n, "text": "a", "pattern": "(a{1000}){100}" })).collect();
    keep_kind(&turn, "json", json!({ "rows": rows }).to_string());
    for path in [
        "$.rows[?search(@.text, '((a|b|[^c]){40}){40}z')]",
        "$.rows[?match(@.text, @.pattern)]",
        "$.rows[?search(@.text, '(a|b)*c')]",
    ] {
        let text = invalid(query(&turn, "path", json!({ "path": path })));
        assert!(text.contains("may take too long"), "{path}: {text}");
    }
    assert!(query(&turn, "path", json!({ "path": "$.rows[?@.n > 1998].text" })).is_ok());
}

/// An eighth of a megabyte for each kind, made to be slow.
fn worst() -> Vec<(&'static str, &'static str, String)> {
    const SIZE: usize = 128 * 1024;
    let filled = |unit: &str| unit.repeat(SIZE / unit.len());
    // JSON has a limit of its own on nesting.
    let nested = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    vec![
        ("markdown", "open brackets", filled(&format!("{}\n", "[".repeat(4_095)))),
        (
            "markdown",
            "nested links",
            filled(&format!("{}{}\n", "[".repeat(150), "](a)".repeat(150))),
        ),
        ("markdown", "open angles", filled(&format!("{}\n", "<".repeat(4_095)))),
        ("markdown", "code marks", filled(&format!("{}\n", "`a``b```c````d".repeat(290)))),
        ("markdown", "headings", filled("# a\n## b\n### c\n#### d\n##### e\n###### f\n")),
        ("markdown", "fences", filled("```\n~~~~\n")),
        ("markdown", "one line", filled("[")),
        ("csv", "one column, empty rows", filled("a\n\n")),
        ("csv", "an open quote", format!("a,b\n\"{}", filled("x,"))),
        ("csv", "tens of thousands of columns", filled("a,")),
        ("csv", "rows that widen", filled("a,b\n,,,,,,,,,,,,,,,,\n")),
        ("json", "numbers", format!("[{}0]", filled("0,"))),
        (
            "json",
            "keys",
            format!(
                "{{{}\"z\":0}}",
                (0..20_000).map(|n| format!("\"k{n}\":0,")).collect::<String>()
            ),
        ),
        ("json", "depth", format!("[{}0]", filled(&format!("{nested},")))),
        ("jsonl", "numbers", filled("0\n")),
        ("jsonl", "objects", filled("{\"a\":{\"a\":{\"a\":1}}}\n")),
        ("jsonl", "broken lines", filled("{\"a\":\n")),
        ("text", "one line", filled("a")),
        ("text", "empty lines", filled("\n")),
    ]
}

/// The arguments of a query that has no use without any.
fn args_of(query: &str) -> Value {
    match query {
        "section" => json!({ "heading": "no such heading" }),
        "grep" => json!({ "pattern": "(a|b|,)*z" }),
        "pluck" => json!({ "fields": ["a"] }),
        "filter" => json!({ "field": "a", "op": "eq", "value": 2 }),
        "path" => json!({ "path": "$..a" }),
        _ => json!({}),
    }
}

/// The maximum processor time of a query; the worst takes a tenth of a second, unoptimized.
const LONGEST_QUERY: Duration = Duration::from_secs(10);

/// The budget of a call in characters, with room for its status.
const LONGEST_ANSWER: usize = 81_000;

#[test]
fn a_result_made_to_be_slow_to_query() {
    let mut wrong = Vec::new();
    for (kind, what, content) in worst() {
        let turn = turn();
        keep_kind(&turn, kind, content);
        let queries = ask(&turn, "artifact_query", json!({ "id": "call" })).unwrap();
        let names: Vec<_> =
            queries.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
        assert!(!names.is_empty(), "{queries}");
        for name in names {
            let began = processor_time();
            let answer = query(&turn, name, args_of(name));
            let took = processor_time().saturating_sub(began);
            let bytes = answer.map_or(0, |answer| answer.len());
            if took > LONGEST_QUERY || bytes > LONGEST_ANSWER {
                wrong.push(format!("{kind}, {what}, {name}: {took:?}, {bytes} bytes"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
