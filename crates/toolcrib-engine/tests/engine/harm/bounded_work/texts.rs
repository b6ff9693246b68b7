//! Results and arguments as texts: redaction, sanitizing, cutting, repair.

use serde_json::{Map, Value, json};
use toolcrib_core::{
    Arguments, ErrorCode, Tool, ToolCall, ToolContext, ToolOutput, ToolResult, static_tools,
};
use toolcrib_engine::{Engine, REDACTED, Redactor, TurnOptions};

use super::measured::measured;
use crate::support::{builder, engine, once, says, tool};

/// Tests that are not optimized feed less: all of the work grows in proportion.
const LARGE: usize = if cfg!(debug_assertions) { 128 * 1024 } else { 8 * 1024 * 1024 };

/// How much memory the work may take, in MiB, with that of tests beside it.
const MOST_MIB: u64 = 1_500;

fn secrets() -> Vec<String> {
    (0..20)
        .map(|at| match at {
            0 => "aaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
            2 => "%25%25%25%25".to_owned(),
            3 => "&amp;&amp;&amp;".to_owned(),
            at => format!("{at}-token/with+signs&{at}"),
        })
        .collect()
}

fn filled(unit: &str, bytes: usize) -> String {
    unit.repeat(bytes / unit.len())
}

fn hostile() -> Vec<(&'static str, String)> {
    [
        ("plain", "some ordinary text. "),
        ("letter of a secret", "a"),
        ("backslashes", "\\"),
        ("percent 25", "%25"),
        ("percent 0A", "%0A"),
        ("percent 20", "%20"),
        ("percent 61", "%61"),
        ("percent 2561", "%252561"),
        ("breaks", "\n "),
        ("long breaks", "a\n                                                               "),
        ("line of secret", "aaaaaaa\n"),
        ("mail", "=\n"),
        ("json breaks", "\\n"),
        ("json u", "\\u0061"),
        ("entities", "&amp;"),
        ("entities 2", "&amp;amp;lt;"),
        ("entity 61", "&#x61;"),
        ("entity 0a", "&#x0a;"),
        ("ampersands", "&"),
        ("ampersand digits", "&1234567890123456"),
        ("blanks", " "),
        ("redacted", "[redacted]"),
        ("redacted secrets", "[redacted]aaaaaaaaaaaaaaaaaaaaaaaa"),
        ("hex", "61"),
        ("base64", "YWFh"),
        ("tags", "<|im_start|>"),
        ("open tags", "<"),
        ("open spaced tags", "< "),
        ("open bars", "<|"),
        ("open ns", "<aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ("slashes", "</"),
        ("roles", "\nuser:"),
        ("blank roles", "\n                user:"),
        ("escapes", "\u{1b}["),
        ("os commands", "\u{1b}]"),
        ("bidi", "\u{202e}a"),
        ("emoji", "👩\u{200d}"),
        ("full width", "＜｜ａ"),
        ("nul", "\0"),
        ("json", "[1,"),
        ("quotes", "\""),
        ("two byte", "é"),
    ]
    .into_iter()
    .map(|(what, unit)| (what, filled(unit, LARGE)))
    .chain([
        ("json array", format!("[{}1]", filled("1,", LARGE))),
        ("one tag and blanks", format!("<{}", filled(" ", LARGE))),
        ("one escape", format!("\u{1b}[{}", filled("1", LARGE))),
    ])
    .collect()
}

fn answers(text: String) -> Engine {
    let tool = builder("t").origin("hub:evil").untrusted();
    let tool = tool.handler(move |_: Value, _: ToolContext| {
        let text = text.clone();
        async move { ToolOutput::text(text) }
    });
    with_secrets(tool.unwrap())
}

fn with_secrets(tool: Tool) -> Engine {
    let redactor = Redactor::new(secrets());
    engine().redactor(redactor).provider(static_tools([tool])).build().unwrap()
}

#[test]
fn a_large_result_kept_the_thread_while_it_was_redacted_and_cut() {
    for (what, text) in hostile() {
        let engine = answers(text);
        let (result, cost) = measured(once(&engine, "t", json!({})));
        assert!(result.text.chars().count() < 100_000, "{what}");
        cost.is_bounded(what, MOST_MIB);
    }
}

async fn passing(engine: &Engine, args: Arguments) -> ToolResult {
    let mut call = ToolCall::new("id", "t", json!({}));
    call.arguments = args;
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.iteration().await.unwrap().execute(vec![call]).await.remove(0)
}

#[test]
fn arguments_kept_the_thread_while_they_were_read_and_redacted() {
    const REPAIRED: usize = 64 * 1024;
    let engine = with_secrets(tool("t"));
    let names: Map<_, _> = (0..90_000).map(|at| (format!("name{at:014}"), json!(1))).collect();
    for (what, text) in [
        ("repair: brackets", format!("{{a:{}1{},}}", "[".repeat(60), "]".repeat(60))),
        ("repair: open texts", filled("'", REPAIRED)),
        ("repair: objects", format!("{{{}}}", filled("a:{},", REPAIRED - 2))),
        ("repair: nested pairs", format!("{{a:[{}]}}", filled("[[[[[[]]]]]],", REPAIRED - 20))),
        ("repair: escapes", format!("{{a:'{}'}}", filled("\\x41", REPAIRED - 20))),
        ("repair: comments", format!("{{{}", filled("/**/", REPAIRED - 20))),
        ("repair: open comments", format!("{{{}", filled("/*", REPAIRED - 20))),
        ("repair: open", format!("{{{}", filled("a:{b:", 300))),
        ("repair: blanks", format!("{{{}", filled(" ", REPAIRED - 20))),
        ("repair: digits", format!("{{a:{}", filled("1", REPAIRED - 20))),
        ("repair: names", format!("{{{}:1", filled("a", REPAIRED - 20))),
        ("parse: 8 MB text", format!("{{\"a\":\"{}\"}}", filled("\\u0061", LARGE))),
        ("parse: 8 MB broken", filled("[", LARGE)),
        ("parse: 8 MB values", format!("[{}1]", filled("1,", LARGE))),
        ("parse: 8 MB of no JSON", filled("%0A", LARGE)),
        ("parse: names", Value::from(names.clone()).to_string()),
        ("parse: duplicate", format!("{{{}\"a\":1}}", filled("\"a\":1,", LARGE))),
    ] {
        let (_, cost) = measured(passing(&engine, Arguments::Text(text)));
        cost.is_bounded(what, MOST_MIB);
    }
    let closed = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false});
    let engine = with_secrets(says(builder("t").origin("hub:evil").input_schema(closed), "ran"));
    let (_, cost) = measured(passing(&engine, Arguments::Json(names.into())));
    cost.is_bounded("unknown names", MOST_MIB);
    let names: Map<_, _> = [("n".repeat(1_600_000), json!(1))].into_iter().collect();
    let (_, cost) = measured(passing(&engine, Arguments::Json(names.into())));
    cost.is_bounded("one unknown name", MOST_MIB);
    let (result, cost) = measured(once(&engine, &"n".repeat(LARGE), json!({})));
    cost.is_bounded("the name of a tool", MOST_MIB);
    assert!(result.name.len() < 100, "{} bytes", result.name.len());
}

/// Where eight secrets may begin at nearly every byte.
fn exhausting() -> (Redactor, String) {
    let redactor = Redactor::new((24..32).map(|length| "a".repeat(length)));
    (redactor, format!("{} the tail", format!("{}b", "a".repeat(23)).repeat(10_000)))
}

#[test]
fn the_work_of_a_redaction_had_no_bound_and_what_is_beyond_it_is_not_shown() {
    let (redactor, text) = exhausting();
    let shown = redactor.text(&text);
    assert!(shown.ends_with(REDACTED), "{} bytes", shown.len());
    assert!(shown.len() > text.len() / 4, "{} bytes", shown.len());
    let mut stream = redactor.stream();
    let streamed = stream.push(&text) + &stream.finish();
    assert!(!streamed.contains("the tail"));
}

#[tokio::test]
async fn arguments_that_take_too_much_work_to_search_do_not_leave_the_machine() {
    let (redactor, text) = exhausting();
    let any = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tool = says(builder("t").open_world().input_schema(any), "ran");
    let engine = engine().redactor(redactor).provider(static_tools([tool])).build().unwrap();
    let result = once(&engine, "t", json!({ "a": text })).await;
    assert_eq!(result.code, Some(ErrorCode::Denied), "{}", result.value);
}

#[test]
fn json_within_json_within_json_is_searched_in_full() {
    let rows: Vec<_> = (0..8_000).map(|at| json!({ "k": at, "n": "v\n" })).collect();
    let mut text = Value::from(rows).to_string();
    for _ in 0..2 {
        text = Value::from(text).to_string();
    }
    let redactor = Redactor::new(secrets());
    assert_eq!(redactor.text(&text), text);
    let secret = &secrets()[7];
    assert!(redactor.text(&format!("{text}{secret}")).ends_with(&format!("\"{REDACTED}")));
}
