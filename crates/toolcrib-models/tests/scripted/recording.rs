//! Recording a model's answers as a script that repeats them.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{Arguments, Message, ModelRequest, Redact, ToolCall, ToolChoice};
use toolcrib_models::{ScriptedModel, record};

use super::{respond, tool};

/// Redacts one word.
struct Word(&'static str);

impl Redact for Word {
    fn redact(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(self.0, "[redacted]") }
    }

    fn redact_start(&self, start: &str) -> String {
        self.redact(start)
    }
}

fn result(call: &ToolCall) -> Message {
    Message::Tool {
        call_id: Arc::clone(&call.id),
        name: Arc::clone(&call.name),
        text: "42".into(),
        blocks: Arc::default(),
        is_error: false,
        untrusted: false,
    }
}

/// A conversation of these answers, each call with a result.
fn conversation(user: &str, answers: &[(String, Vec<ToolCall>)]) -> Vec<Message> {
    let mut messages = vec![Message::user(user)];
    for (text, calls) in answers {
        messages.push(Message::assistant(text.as_str(), calls.clone()));
        messages.extend(calls.iter().map(result));
    }
    messages
}

fn parsed(calls: &[ToolCall]) -> Vec<(String, Result<String, String>)> {
    let arguments = |call: &ToolCall| match &call.arguments {
        Arguments::Json(value) => Ok(value.to_string()),
        Arguments::Text(text) => match serde_json::from_str::<Value>(text) {
            // In the order of the text.
            Ok(value) => Ok(value.to_string()),
            Err(_) => Err(text.clone()),
        },
    };
    calls.iter().map(|call| (call.name.to_string(), arguments(call))).collect()
}

/// Plays a conversation back, answer by answer, and compares.
fn assert_replays(messages: &[Message], script: &str) {
    let model = ScriptedModel::from_toml("script:recorded.toml", script)
        .unwrap_or_else(|problems| panic!("{problems}\n{script}"));
    let model = Arc::new(model);
    let menu = toolcrib_core::Menu::new(vec![tool("look"), tool("refund")]).unwrap();
    let menu = Arc::new(menu);
    for (at, message) in messages.iter().enumerate() {
        let Message::Assistant { text, calls, .. } = message else { continue };
        let request = ModelRequest {
            system: "".into(),
            messages: Arc::new(messages[..at].to_vec()),
            menu: Arc::clone(&menu),
            tool_choice: ToolChoice::Auto,
            sent_parts: None,
        };
        let said = futures_util::FutureExt::now_or_never(respond(&model, request))
            .unwrap()
            .unwrap_or_else(|error| panic!("{error}\n{script}"));
        assert_eq!(said.text, **text, "{script}");
        assert_eq!(parsed(&said.calls), parsed(calls), "{script}");
    }
}

#[test]
fn a_recording_is_a_readable_script() {
    let look = ToolCall::unparsed("a", "look", r#"{"order": 1042, "note": "from {{ here }}"}"#);
    let odd = ToolCall::unparsed("b", "refund", r#"{"order": null}"#);
    let imagined = ToolCall::unparsed("c", "teleport", r#"{"to": "the moon"#);
    let messages = conversation(
        "Refund order 1042 (key s3cret-key), please",
        &[
            ("I look.\nFirst.".to_owned(), vec![look, odd]),
            (String::new(), vec![imagined]),
            ("Done with s3cret-key.".to_owned(), vec![]),
        ],
    );
    let script = record(&messages, &Word("s3cret-key"), |id| id == "c");
    insta::assert_snapshot!(script, @r#"
    # A model's answers, step by step. `toolcrib run --model script:FILE` plays it back to the
    # same message. The format is that of docs/models.md#the-scripted-model: relax `user`, or add conditions,
    # if a test should pass for more than this one conversation.

    [[rule]]
    user = '(?s)^Refund order 1042 \(key .+\), please$'
    step = 1
    text = """
    I look.
    First."""

    [[rule.calls]]
    tool = "look"

    [rule.calls.args]
    order = 1042
    note = '{{ "from {{ here }}" }}'

    [[rule.calls]]
    tool = "refund"
    raw = '{"order":null}'

    [[rule]]
    user = '(?s)^Refund order 1042 \(key .+\), please$'
    step = 2

    [[rule.calls]]
    tool = "teleport"
    even_if_not_offered = true
    raw = '{"to": "the moon'

    [[rule]]
    user = '(?s)^Refund order 1042 \(key .+\), please$'
    step = 3
    text = "Done with [redacted]."
    "#);
    assert!(!script.contains("s3cret"));
    ScriptedModel::from_toml("script:recorded.toml", &script).unwrap();
}

#[test]
fn a_secret_is_found_however_it_is_spelt() {
    let escaped = ToolCall::unparsed("a", "look", r#"{"\u0073ecret": ["\u0073ecret", null]}"#);
    let data = ToolCall::new("b", "look", json!({ "note": "the secret" }));
    let broken = ToolCall::unparsed("c", "look", "{ secret");
    let said = ("No secret.".to_owned(), vec![escaped, data, broken]);
    let script = record(&conversation("What is secret?", &[said]), &Word("secret"), |_| false);
    assert!(!script.contains("ecret"), "{script}");
    ScriptedModel::from_toml("script:recorded.toml", &script).unwrap();
}

#[test]
fn only_the_last_turn_is_recorded() {
    let mut messages = conversation("First", &[("One.".to_owned(), vec![])]);
    messages.extend(conversation("Second", &[("Two.".to_owned(), vec![])]));
    let script = record(&messages, &Word(""), |_| false);
    assert!(!script.contains("One.") && script.contains("Two."), "{script}");
    assert_replays(&messages[2..], &script);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// Texts with special characters of TOML, Jinja or regular expressions.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        "[a-z ]{1,6}",
        prop::sample::select(vec![
            "{{",
            "}}",
            "{%",
            "%}",
            "{#",
            "#}",
            "\n",
            "\r\n",
            "'''",
            "\"\"\"",
            "\\",
            "\"",
            "'",
            "$^",
            "{% raw %}",
            "\u{0}",
            "\u{7f}",
            "\u{feff}",
            "…",
            "{",
            "}",
            " ",
            "[redacted]",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![
        prop::collection::btree_map(text(), value(), 0..4).prop_map(|map| json!(map).to_string()),
        value().prop_map(|value| value.to_string()),
        text(),
    ];
    (prop::sample::select(vec!["look", "refund"]), arguments)
        .prop_map(|(tool, arguments)| ToolCall::unparsed("id", tool, arguments))
}

proptest! {
    #[test]
    fn a_recording_replays_every_conversation(
        user in text(),
        answers in prop::collection::vec((text(), prop::collection::vec(call(), 0..3)), 1..4),
    ) {
        let messages = conversation(&user, &answers);
        assert_replays(&messages, &record(&messages, &Word(""), |_| false));
    }
}
