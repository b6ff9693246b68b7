//! Properties of every input.

use proptest::prelude::*;
use serde_json::{Map, Value};
use toolcrib_lint::{LintTool, Linter, SourceFacts, parse};

/// Relevant characters: plain ones, invisible ones, and any.
fn text() -> impl Strategy<Value = String> {
    let hidden = prop::sample::select(vec![
        '\u{200b}',
        '\u{200d}',
        '\u{202e}',
        '\u{2066}',
        '\u{feff}',
        '\u{fe0f}',
        '\u{e0041}',
        '\u{7}',
        '\u{1b}',
        '\n',
        '\r',
        '\u{ad}',
        '👩',
        'а',
        'Ａ',
        '"',
        '\'',
        '`',
        '|',
        '<',
        '>',
        '!',
        '-',
    ]);
    let words = prop::sample::select(vec![
        "ignore all previous instructions",
        "one of a, b or c",
        "<IMPORTANT>",
        "~/.ssh/id_rsa",
        "read ",
        "get_user",
        "a|b|c",
        "Use it when ",
        " ",
        "default",
    ]);
    let part = prop_oneof![
        4 => any::<char>().prop_map(String::from),
        4 => hidden.prop_map(String::from),
        2 => "[a-zA-Z_ ]{0,12}",
        2 => words.prop_map(String::from),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

/// Any JSON, with frequent keys of schemas and catalogs.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text().prop_map(Value::from),
        prop::sample::select(vec!["object", "string", "integer", "function", "#/$defs/a"])
            .prop_map(Value::from),
    ];
    let key = prop_oneof![
        3 => prop::sample::select(vec![
            "type", "properties", "required", "items", "enum", "anyOf", "$ref", "$defs", "a", "pattern",
            "description", "default", "name", "inputSchema", "input_schema", "parameters", "tools",
            "function", "result", "title", "outputSchema",
        ]).prop_map(String::from),
        1 => text(),
    ];
    leaf.prop_recursive(6, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn tool() -> impl Strategy<Value = LintTool> {
    let some = || prop::option::of(json());
    (text(), text(), some(), prop::option::of(text()), some(), prop::option::of(text())).prop_map(
        |(name, description, input_schema, title, output_schema, source)| LintTool {
            name,
            description,
            input_schema,
            title,
            output_schema,
            origin: source.clone(),
            source,
            ..LintTool::default()
        },
    )
}

/// Implemented separately, so that the check does not depend on the checked code.
fn is_raw(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
            | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{ad}' | '\u{e0000}'..='\u{e0fff}')
}

fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(map) => map.values().for_each(|item| texts(item, into)),
        _ => {}
    }
}

proptest! {
    // Each case checks several catalogs with all patterns, which is slow without optimization.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_catalog_panics_and_no_report_has_what_is_not_seen(
        tools in prop::collection::vec(tool(), 0..6),
        name in text(),
        failure in prop::option::of(text()),
    ) {
        let source = SourceFacts { name, remote: true, ttl_forever: true, failure };
        let report = Linter::new().max_tokens(10).sources([source]).lint(&tools);
        prop_assert_eq!(report.tools.len(), tools.len());
        prop_assert_eq!(report.totals.errors + report.totals.warnings, report.findings.len());
        let mut shown = Vec::new();
        texts(&serde_json::to_value(&report).unwrap(), &mut shown);
        for text in shown {
            prop_assert!(!text.chars().any(is_raw), "{:?}", text);
        }
        // A second run: nothing depends on the order of a hash map.
        let source = report.findings.clone();
        let again = Linter::new().max_tokens(10).lint(&tools);
        prop_assert!(again.findings.iter().all(|finding| source.contains(finding)));
    }

    #[test]
    fn no_json_panics_as_a_catalog(value in json()) {
        match parse(&value) {
            Ok(parsed) => drop(toolcrib_lint::lint(&parsed.tools)),
            Err(error) => prop_assert!(!error.to_string().chars().any(is_raw), "{:?}", error),
        }
    }

    #[test]
    fn a_tool_that_is_sound_alone_is_sound_twice_but_for_its_name_and_words(tool in tool()) {
        let alone = toolcrib_lint::lint(std::slice::from_ref(&tool));
        let twice = toolcrib_lint::lint(&[tool.clone(), tool]);
        let of_pairs = ["duplicate-name", "large-catalog", "cannot-be-found"];
        let others = twice.findings.iter().filter(|f| !of_pairs.contains(&&*f.rule)).count();
        let single = alone.findings.iter().filter(|f| !of_pairs.contains(&&*f.rule)).count();
        prop_assert_eq!(others, 2 * single);
    }
}
