//! Arguments of a call that reach the program, and others that do not.

use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, ToolContextParts};
use toolcrib_tools::command::{ArgItem, CommandToolSpec, Stdin};

use crate::support::{OneSecret, call, call_in, sh, texts, tool, with_optional};

/// A program that prints each argument in brackets.
fn printing(items: &[&str], properties: Value, required: &Value) -> CommandToolSpec {
    let all: Vec<&str> = ["[%s]"].iter().chain(items).copied().collect();
    with_optional("printf", &all, properties, required)
}

async fn printed(spec: &CommandToolSpec, args: Value) -> String {
    call(spec.clone(), args).await.unwrap().value
}

async fn refused(spec: &CommandToolSpec, args: Value) -> String {
    let error = call(spec.clone(), args).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InputInvalid, "{error:?}");
    error.message
}

#[tokio::test]
async fn shell_syntax_in_a_value_is_passed_as_data() {
    let spec = printing(&["{a}", "--x={a}", "{{a}}"], texts(&["a"]), &json!(["a"]));
    for hostile in [
        "$(id)",
        "`id`",
        ";id",
        "| id",
        "a\nb",
        "--output=/etc/x",
        "{a}",
        "' \" \\",
        "*",
        "~",
        "é\u{202e}",
        "",
    ] {
        if hostile.starts_with('-') {
            let why = refused(&spec, json!({ "a": hostile })).await;
            assert_eq!(
                why,
                "`a` may not begin with `-` here: the program would take it for an option"
            );
        } else {
            let all = format!("[{hostile}][--x={hostile}][{{a}}]");
            assert_eq!(printed(&spec, json!({ "a": hostile })).await, all);
        }
    }
    let why = refused(&spec, json!({ "a": "x\0y" })).await;
    assert_eq!(why, "`a` contains a NUL character, which no program can be passed");
    let inside = printing(&["--x={a}"], texts(&["a"]), &json!(["a"]));
    assert!(refused(&inside, json!({ "a": "\0" })).await.contains("NUL"));
    let why = refused(&spec, json!({ "a": "x".repeat(4 * 1024 * 1024) })).await;
    assert!(why.contains("too long"), "{why}");
}

#[tokio::test]
async fn a_value_becomes_no_option_unless_declared() {
    let any = |items| {
        let mut spec = printing(items, json!({ "a": {}, "b": {} }), &json!([]));
        // So that no item has to use them all.
        spec.stdin = Stdin::Json;
        spec
    };
    let dashed = json!({ "a": "-rf", "b": "x" });
    // After a literal, and after the end of options.
    assert_eq!(printed(&any(&["n{a}", "-{b}"]), dashed.clone()).await, "[n-rf][-x]");
    assert_eq!(printed(&any(&["{b}", "--", "{a}"]), dashed.clone()).await, "[x][--][-rf]");
    // Numbers, elements of lists, and what several values make together.
    for args in [
        json!({ "a": "-rf" }),
        json!({ "a": -5 }),
        json!({ "a": ["x", "-rf"] }),
        json!({ "a": "--", "b": "x" }),
    ] {
        assert!(refused(&any(&["{a}"]), args).await.starts_with("`a` may not begin"));
    }
    assert!(refused(&any(&["{a}{b}"]), json!({ "a": "", "b": "-x" })).await.starts_with("`a` may"));
    assert!(refused(&any(&["{a}-x"]), json!({ "a": "" })).await.starts_with("`a` may"));
    let mut allowed = any(&["{a}"]);
    allowed.args[1].allow_leading_dash = true;
    assert_eq!(printed(&allowed, dashed.clone()).await, "[-rf]");
    // An end of options that is left out ends none, and one that came as a value ends none.
    let mut conditional = any(&["--", "{a}"]);
    conditional.args[1].when = Some("b".into());
    assert_eq!(printed(&conditional, dashed).await, "[--][-rf]");
    assert!(refused(&conditional, json!({ "a": "-rf" })).await.starts_with("`a` may"));
    let mut passed = any(&["{b}", "{a}"]);
    passed.args[1].allow_leading_dash = true;
    assert!(refused(&passed, json!({ "a": "-rf", "b": "--" })).await.starts_with("`a` may"));
}

#[tokio::test]
async fn what_is_absent_is_left_out_and_lists_become_many() {
    let properties = json!({ "a": {}, "on": { "type": "boolean" } });
    let mut spec = printing(&["{a}", "--a={a}"], properties, &json!([]));
    spec.args.push(ArgItem { when: Some("on".into()), ..ArgItem::from("--on") });
    spec.args.push(ArgItem { when: Some("a".into()), ..ArgItem::from("--with-a") });
    for (args, expected) in [
        (json!({}), "[]"),
        (json!({ "a": null, "on": null }), "[]"),
        (json!({ "a": "x", "on": false }), "[x][--a=x][--with-a]"),
        (json!({ "a": true, "on": true }), "[true][--a=true][--on][--with-a]"),
        (json!({ "a": 1.5 }), "[1.5][--a=1.5][--with-a]"),
        (json!({ "a": { "k": [1, "é"] } }), r#"[{"k":[1,"é"]}][--a={"k":[1,"é"]}][--with-a]"#),
        (json!({ "a": ["x", 2, [3]] }), r#"[x][2][[3]][--a=["x",2,[3]]][--with-a]"#),
        (json!({ "a": [] }), "[--a=[]][--with-a]"),
    ] {
        assert_eq!(printed(&spec, args).await, expected);
    }
}

#[tokio::test]
async fn json_on_stdin_is_the_whole_call() {
    let mut spec = tool("cat", &[], json!({ "text": {}, "n": {} }));
    spec.stdin = Stdin::Json;
    let args = json!({ "text": "a\0\nb", "n": [1, { "k": null }] });
    let output = call(spec, args.clone()).await.unwrap();
    assert_eq!(output.value, args.to_string());
    assert_eq!(output.structured.unwrap()["stdout"], format!("{args}\n"));
    // It need not be read.
    let mut spec = tool("true", &[], texts(&["text"]));
    spec.stdin = Stdin::Json;
    let output = call(spec, json!({ "text": "x".repeat(4 * 1024 * 1024) })).await.unwrap();
    assert_eq!(output.value, "done, without output");
}

#[tokio::test]
async fn the_environment_is_what_is_declared_and_nothing_else() {
    let mut spec = tool("/usr/bin/env", &[], json!({}));
    assert_eq!(call(spec.clone(), json!({})).await.unwrap().value, "done, without output");
    spec.env = vec![("GREETING".into(), "{{$(id)}}".into())];
    spec.inherit_env = vec!["PATH".into(), "TOOLCRIB_IS_NOT_SET".into()];
    let path = std::env::var("PATH").unwrap();
    let printed = call(spec, json!({})).await.unwrap().value;
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["GREETING={$(id)}", &format!("PATH={path}")]);
}

#[tokio::test]
async fn secrets_are_passed_only_in_the_environment() {
    let mut spec = sh("echo \"$AUTH\"", &[]);
    spec.env.push(("AUTH".into(), "Bearer {secret:TOKEN}".into()));
    let tool = spec.clone().build().unwrap();
    let with = |secret| {
        let mut parts = ToolContextParts::detached();
        parts.secrets = Some(std::sync::Arc::new(secret));
        parts.into()
    };
    let output = call_in(&tool, json!({}), with(OneSecret("TOKEN", "s3cret"))).await.unwrap();
    assert_eq!(output.value, "Bearer s3cret");
    for secret in [OneSecret("OTHER", "x"), OneSecret("TOKEN", "a\0b")] {
        let error = call_in(&tool, json!({}), with(secret)).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotAvailable);
        assert!(!error.message.contains("TOKEN") && error.source.is_some(), "{error:?}");
    }
}

#[tokio::test]
async fn an_option_that_lost_its_value_does_not_swallow_the_end_of_options() {
    let properties = json!({ "x": { "type": "string" }, "c": { "type": "string" } });
    let spec = printing(&["-e", "{x}", "--", "{c}"], properties.clone(), &json!(["c"]));
    assert_eq!(
        printed(&spec, json!({ "x": "a", "c": "--version" })).await,
        "[-e][a][--][--version]"
    );
    // Without `x`, `-e` may take `--` for its value, and `--version` would be an option.
    assert_eq!(printed(&spec, json!({ "c": "plain" })).await, "[-e][--][plain]");
    let said = refused(&spec, json!({ "c": "--version" })).await;
    assert!(said.contains("`c` may not begin with `-`"), "{said}");
    let said = refused(&spec, json!({ "x": null, "c": "-v" })).await;
    assert!(said.contains("`c` may not begin with `-`"), "{said}");
}
