//! Arguments that are almost JSON, and values that a model wrote as text: the tool receives what the
//! model wrote, or nothing runs.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, ToolCall, ToolContext, ToolResult, args_digest};
use toolcrib_engine::{CALL_TOOL, Engine, TurnOptions};

use crate::support::{Log, batch, builder, call, engine, once};

type Seen = Arc<Mutex<Vec<Value>>>;

fn spy(schema: Value, converts: bool) -> (Engine, Seen) {
    let seen = Seen::default();
    let passed = Arc::clone(&seen);
    let tool = builder("t")
        .input_schema(schema)
        .deferred(true)
        .handler(move |args: Value, _: ToolContext| {
            passed.lock().unwrap().push(args);
            async { "ran" }
        })
        .unwrap();
    (engine().tool(tool).convert_text_arguments(converts).build().unwrap(), seen)
}

async fn unparsed(engine: &Engine, text: &str) -> ToolResult {
    batch(engine, vec![ToolCall::unparsed("id", "t", text)]).await.remove(0)
}

/// Parts of a string in double quotes, with what they mean; `None` if JSON does not define it.
const PARTS: [(&str, Option<&str>); 35] = [
    ("a", Some("a")),
    ("n", Some("n")),
    ("é\u{1f600}", Some("é\u{1f600}")),
    (" // no comment ", Some(" // no comment ")),
    ("/* none */", Some("/* none */")),
    (",}", Some(",}")),
    ("```", Some("```")),
    ("\n", Some("\n")),
    ("\r\n", Some("\r\n")),
    ("\t", Some("\t")),
    ("\u{1}", Some("\u{1}")),
    ("\u{2028}", Some("\u{2028}")),
    ("\\n", Some("\n")),
    ("\\t", Some("\t")),
    ("\\\\", Some("\\")),
    ("\\/", Some("/")),
    ("\\b\\f\\r", Some("\u{8}\u{c}\r")),
    ("\\u00e9", Some("é")),
    ("\\u0000", Some("\u{0}")),
    ("\\ud83d\\ude00", Some("\u{1f600}")),
    ("\\d+", None),
    ("\\.", None),
    ("\\$", None),
    ("\\ ", None),
    ("\\a", None),
    ("\\v", None),
    ("\\0", None),
    ("\\e[0m", None),
    ("\\x41", None),
    ("\\U0001F600", None),
    ("\\u{41}", None),
    ("\\u12z", None),
    ("\\ud800z", None),
    ("\\é", None),
    ("\\\n", None),
];

/// How a model may deviate from JSON around a string.
const FRAMES: [(&str, &str, char); 6] = [
    ("{\"s\":", "}", '"'),
    ("{\"s\":", ",}", '"'),
    ("{s: ", "}", '\''),
    ("```json\n{'s':", "}\n```", '\''),
    ("{/* a ' comment */ \"s\":", "// end\n}", '"'),
    ("\u{feff}{'s' :", " , }", '\''),
];

proptest! {
    /// Found in public reports: a path, a regular expression and a script ran without their backslashes.
    #[test]
    fn a_string_arrives_with_exactly_its_characters_or_nothing_runs(
        parts in prop::collection::vec(0..PARTS.len() + 2, 0..8),
        frame in 0..FRAMES.len(),
    ) {
        let (before, after, quote) = FRAMES[frame];
        let other = if quote == '"' { "'" } else { "\"" };
        let escaped = format!("\\{quote}");
        let foreign = format!("\\{other}");
        // A quote of either kind is a part too; JSON has no escape for a single one.
        let foreign_meaning = (other == "\"").then_some("\"");
        let own = quote.to_string();
        let extra = [(&*escaped, Some(&*own)), (&*foreign, foreign_meaning)];
        let all: Vec<_> = PARTS.iter().copied().chain(extra).collect();
        let text: String = parts.iter().map(|part| all[*part].0).collect();
        let meant: Option<String> = parts.iter().map(|part| all[*part].1).collect();
        let written = format!("{before}{quote}{text}{quote}{after}");
        let schema = json!({ "type": "object", "properties": { "s": { "type": "string" } } });
        let (engine, seen) = spy(schema, true);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(unparsed(&engine, &written));
        match meant {
            Some(meant) => prop_assert_eq!(&*seen.lock().unwrap(), &[json!({ "s": meant })], "{}", written),
            None => {
                prop_assert!(seen.lock().unwrap().is_empty(), "{}: it ran", written);
                prop_assert_eq!(result.code, Some(ErrorCode::InputInvalid));
                prop_assert!(result.value.contains("line "), "{}", result.value);
            }
        }
    }
}

#[tokio::test]
async fn an_escape_that_json_lacks_is_refused_with_its_place_and_the_correct_spelling() {
    let schema = json!({ "type": "object" });
    for (text, said) in [
        (
            r#"{"s":"\d+"}"#,
            "line 1, column 7: JSON has no escape `\\d`; write `\\\\` for a backslash",
        ),
        (r#"{"s":"C:\data\app.exe"}"#, "line 1, column 9: JSON has no escape `\\d`"),
        ("{\n \"s\": \"it\\'s\"}", "line 2, column 10: JSON has no escape `\\'`"),
        (r#"{"s":"\ud800"}"#, "line 1, column 7: `\\u` needs four hexadecimal digits"),
        (r#"{"s": True}"#, "line 1, column 7: write `true`"),
        (r#"{"s": 1,"#, "line 1, column 9: EOF while parsing"),
        (r#"{'s': 1, "s": 2}"#, "duplicate key"),
        ("{'s': 123456789012345678901}", "more digits than fit 64 bits"),
        ("{'s': 0x123456789012345678901}", "line 1, column 7: this is not a number of JSON"),
        ("```json\n{\"s\":1}\n```\n```json\n{\"s\":2}\n```", "line 3, column 1"),
        ("[1,]", "they are not an object"),
    ] {
        let (engine, seen) = spy(schema.clone(), true);
        let result = unparsed(&engine, text).await;
        assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{text}");
        assert!(result.value.contains(said), "{text}: {}", result.value);
        assert!(seen.lock().unwrap().is_empty(), "{text}: it ran");
    }
}

fn typed() -> Value {
    json!({
        "type": "object",
        "$defs": { "Count": { "type": "integer" } },
        "properties": {
            "i": { "type": "integer" },
            "n": { "type": "number" },
            "b": { "type": "boolean" },
            "z": { "type": ["integer", "null"] },
            "s": { "type": "string" },
            "a": { "type": "array", "items": { "type": "string" } },
            "l": { "type": "array", "items": { "type": "integer" } },
            "o": { "type": "object", "properties": { "x": { "type": "integer" } }, "additionalProperties": false },
            "r": { "$ref": "#/$defs/Count" },
            "e": { "enum": [1, 2] },
            "t": { "enum": [1, "2"] },
            "u": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
            "w": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "free": {},
        },
        "additionalProperties": false,
    })
}

#[tokio::test]
async fn a_text_that_is_exactly_the_json_of_the_declared_type_is_read() {
    for (written, read, places) in [
        (json!({ "i": "5" }), json!({ "i": 5 }), json!(["/i"])),
        (json!({ "i": "5.0" }), json!({ "i": 5 }), json!(["/i"])),
        (json!({ "n": "-2.5e1" }), json!({ "n": -25 }), json!(["/n"])),
        (json!({ "b": "true", "z": "null" }), json!({ "b": true, "z": null }), json!(["/b", "/z"])),
        (json!({ "a": "[\"x\",\n \"5\"]" }), json!({ "a": ["x", "5"] }), json!(["/a"])),
        (json!({ "l": ["1", 2, "3"] }), json!({ "l": [1, 2, 3] }), json!(["/l/0", "/l/2"])),
        (json!({ "o": { "x": "7" } }), json!({ "o": { "x": 7 } }), json!(["/o/x"])),
        (json!({ "o": "{\"x\": 7.0}" }), json!({ "o": { "x": 7 } }), json!(["/o"])),
        (
            json!({ "r": "1", "e": "2", "w": "3" }),
            json!({ "r": 1, "e": 2, "w": 3 }),
            json!(["/r", "/e", "/w"]),
        ),
        (json!("{\"s\": \"5\"}"), json!({ "s": "5" }), json!([""])),
        (
            json!({ "s": "5", "u": "5", "free": "[1]" }),
            json!({ "s": "5", "u": "5", "free": "[1]" }),
            json!(null),
        ),
        (json!({ "t": "2" }), json!({ "t": "2" }), json!(null)),
    ] {
        for call in [
            ToolCall::new("id", "t", written.clone()),
            ToolCall::unparsed("id", "t", written.to_string()),
            ToolCall::new("id", CALL_TOOL, json!({ "tool": "t", "arguments": written })),
        ] {
            let (engine, seen) = spy(typed(), true);
            let mut turn = engine.turn(TurnOptions::default()).unwrap();
            let log = Log::of(turn.events().run());
            let result = turn.iteration().await.unwrap().execute(vec![call]).await.remove(0);
            assert!(result.is_ok(), "{written}: {}", result.value);
            assert_eq!(*seen.lock().unwrap(), std::slice::from_ref(&read), "{written}");
            assert_eq!(result.args, read);
            let start = log.of_name("tool.start").remove(0);
            assert_eq!(start["args"], read);
            assert_eq!(start["args_digest"], args_digest("t", &read).to_string());
            assert_eq!(start["converted"], places, "{written}");
        }
    }
}

#[tokio::test]
async fn anything_else_is_refused_with_the_expected_and_the_received_type() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (written, said) in [
        (json!({ "i": "five" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "5.5" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "05" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "0x5" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "+5" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "5 6" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "true" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "null" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "\"5\"" }), "`i`: expected an integer, received a string"),
        (json!({ "i": "123456789012345678901" }), "`i`: expected an integer, received a string"),
        (json!({ "b": "True" }), "`b`: expected a boolean, received a string"),
        (json!({ "b": "1" }), "`b`: expected a boolean, received a string"),
        (json!({ "z": "x" }), "`z`: expected an integer or null, received a string"),
        (json!({ "a": "['x']" }), "`a`: expected an array, received a string"),
        (json!({ "a": deep }), "`a`: expected an array, received a string"),
        (json!({ "o": "{\"x\": 1, \"x\": 2}" }), "`o`: expected an object, received a string"),
        (
            json!({ "o": "{\"$serde_json::private::RawValue\": 1}" }),
            "`o`: expected an object, received a string",
        ),
        // Once, and never within a text that was read.
        (json!({ "o": "{\"x\": \"7\"}" }), "`o.x`: expected an integer, received a string"),
        (json!({ "l": "[\"1\"]" }), "`l.0`: expected an integer, received a string"),
        (json!("{\"i\": \"5\"}"), "`i`: expected an integer, received a string"),
        (json!("\"{}\""), "expected an object, received a string"),
        (json!({ "s": 5 }), "`s`: expected a string, received an integer"),
    ] {
        for call in [
            call("t", written.clone()),
            ToolCall::unparsed("id", "t", written.to_string()),
            ToolCall::new("id", CALL_TOOL, json!({ "tool": "t", "arguments": written })),
        ] {
            let through = &*call.name == CALL_TOOL;
            let (engine, seen) = spy(typed(), true);
            let result = batch(&engine, vec![call]).await.remove(0);
            assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{written}");
            assert!(seen.lock().unwrap().is_empty(), "{written}: it ran");
            // A text that `call_tool` cannot read is refused by its own schema.
            assert!(
                result.value.contains(said) || through && written.is_string(),
                "{written}: {}",
                result.value
            );
        }
    }
}

#[tokio::test]
async fn a_switch_turns_the_reading_of_texts_off() {
    let (engine, seen) = spy(typed(), false);
    for args in [json!({ "i": "5" }), json!("{\"i\": 5}")] {
        let result = once(&engine, "t", args).await;
        assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    }
    let through = json!({ "tool": "t", "arguments": "{\"i\": 5}" });
    assert_eq!(once(&engine, CALL_TOOL, through).await.code, Some(ErrorCode::InputInvalid));
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn many_texts_and_a_wide_schema_take_limited_work() {
    let branch = json!({ "properties": { "l": { "items": { "type": "integer" } } } });
    let wide = json!({ "type": "object", "anyOf": vec![branch; 500] });
    let (engine, _) = spy(wide, true);
    let many: Vec<_> = (0..20_000).map(|number| number.to_string()).collect();
    let result = once(&engine, "t", json!({ "l": many })).await;
    assert_eq!(result.code, Some(ErrorCode::InputInvalid));
}

#[tokio::test]
async fn the_problem_is_the_one_of_the_nearest_alternative() {
    let schema = json!({ "type": "object", "$defs": {
        "Circle": { "type": "object", "properties": { "kind": { "const": "circle" }, "r": { "type": "number" } },
                    "required": ["kind", "r"], "additionalProperties": false },
        "Square": { "type": "object", "properties": { "kind": { "const": "square" }, "side": { "type": "number" } },
                    "required": ["kind", "side"], "additionalProperties": false },
        "Shape": { "oneOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Square" }] },
    }, "properties": {
        "body": { "anyOf": [
            { "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } },
            { "type": "object", "required": ["b"], "properties": { "b": { "type": "string" } } },
        ] },
        "shape": { "$ref": "#/$defs/Shape" },
        "shapes": { "type": "array", "items": { "anyOf": [{ "$ref": "#/$defs/Shape" }, { "type": "null" }] } },
        "id": { "anyOf": [{ "type": "integer" }, { "type": "array" }, { "const": "all" }] },
        "one": { "oneOf": [{ "required": ["x"] }, { "required": ["y"] }] },
    } });
    let (engine, _) = spy(schema, true);
    for (args, said) in [
        (json!({ "body": { "a": "5" } }), "\n- `body.a`: expected an integer, received a string\n"),
        (json!({ "body": { "b": 5 } }), "\n- `body.b`: expected a string, received an integer\n"),
        (json!({ "body": {} }), "\n- `body.a`: it is required\n"),
        (json!({ "body": [1] }), "\n- `body`: expected an object, received an array\n"),
        (
            json!({ "shape": { "kind": "square", "side": [] } }),
            "\n- `shape.side`: expected a number, received an array\n",
        ),
        (json!({ "shape": { "kind": "square", "r": 1 } }), "`shape.side`: it is required"),
        (
            json!({ "shape": { "kind": "oval", "r": 1 } }),
            "\n- `shape.kind`: expected \"circle\" or \"square\", received another value\n",
        ),
        (
            json!({ "shapes": [{ "kind": "circle", "r": 1 }, { "kind": "circle", "r": true }] }),
            "\n- `shapes.1.r`: expected a number, received a boolean\n",
        ),
        (
            json!({ "id": true }),
            "\n- `id`: expected an integer or an array or \"all\", received a boolean\n",
        ),
        (json!({ "one": { "x": 1, "y": 2 } }), "`one`: it fits 2 alternatives at once"),
    ] {
        let result = once(&engine, "t", args.clone()).await;
        assert_eq!(result.code, Some(ErrorCode::InputInvalid), "{args}");
        assert!(result.value.contains(said), "{args}: {}", result.value);
        assert!(!result.value.contains("alternative of"), "{args}: {}", result.value);
    }
}

/// A `default` tells the model what a tool does without the argument; nothing adds it.
#[tokio::test]
async fn a_default_of_a_schema_is_not_applied() {
    let schema =
        json!({ "type": "object", "properties": { "i": { "type": "integer", "default": 5 } } });
    let (engine, seen) = spy(schema, true);
    assert!(once(&engine, "t", json!({})).await.is_ok());
    assert_eq!(*seen.lock().unwrap(), [json!({})]);
}
