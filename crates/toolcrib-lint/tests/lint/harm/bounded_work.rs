//! Catalogs that try to make `lint` do unlimited work.

use std::{thread, time::Duration};

use serde_json::{Map, json};
use toolcrib_clock::processor_time;
use toolcrib_lint::{LintTool, lint};

use crate::support::{described, named, of_schema};

/// Processor time: some 100 ms in an optimized build; without the limits, minutes.
const WORST: Duration = Duration::from_secs(20);

fn hostile() -> Vec<(&'static str, Vec<LintTool>)> {
    let values: Vec<_> = (0..50_000).map(|at| format!("'v{at}'")).collect();
    let listed = json!({"type": "string", "description": format!("One of {}", values.join(", "))});
    let lists: String = (0..10_000).map(|at| format!("such as `a{at}` or `b{at}`. ")).collect();
    let many_lists = json!({"type": "string", "description": lists});
    let words: Vec<_> = (0..300).map(|at| format!("word{at}x")).collect();
    let alike = |at: usize| LintTool {
        description: format!("{} other{at}", words.join(" ")),
        ..named(&format!("tool_{at}_of_many"))
    };
    let name = vec!["abcdefghijklmnopqrstuvwxyz"; 64].join("_");
    let properties: Map<_, _> = (0..5_000).map(|at| (format!("p{at}"), json!({}))).collect();
    vec![
        ("a list of 50,000 values in prose", vec![of_schema(with(listed))]),
        ("10,000 lists of examples in prose", vec![of_schema(with(many_lists))]),
        ("500 tools of nearly the same 300 words", (0..500).map(alike).collect()),
        ("1,000 long names", (0..1_000).map(|at| named(&format!("{name}_{at}"))).collect()),
        ("5,000 parameters", vec![of_schema(json!({"type": "object", "properties": properties}))]),
        ("a megabyte of blanks", vec![described(&format!("a{}b", " ".repeat(1 << 20)))]),
        ("a megabyte of open tags", vec![described(&"< / ".repeat(1 << 18))]),
        ("a megabyte of hidden characters", vec![described(&"\u{202e}".repeat(1 << 18))]),
        ("a megabyte of orders", vec![described(&"never tell ".repeat(1 << 16))]),
        ("a megabyte of files", vec![described(&"read ".repeat(1 << 17))]),
    ]
}

fn with(parameter: serde_json::Value) -> serde_json::Value {
    json!({"type": "object", "properties": {"which": parameter}})
}

#[test]
fn a_catalog_took_minutes_to_lint() {
    thread::scope(|scope| {
        for (what, tools) in hostile() {
            scope.spawn(move || {
                let began = processor_time();
                drop(lint(&tools));
                let took = processor_time().saturating_sub(began);
                assert!(took < WORST, "{what}: {took:?}");
            });
        }
    });
}
