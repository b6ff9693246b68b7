//! Results that are too large for a model.

use serde_json::{Value, json};
use toolcrib_core::{ToolCall, ToolResult, unfence};
use toolcrib_engine::{Turn, TurnOptions};

use crate::{
    documented::block,
    folder::{Folder, RUN},
};

/// A program that writes the requested count of numbers.
const COUNT: &str = r#"
[limits]
batch_result_chars = 2000
[[tool]]
kind = "command"
name = "count"
description = "Counts."
program = "seq"
args = ["{to}"]
params = { to = { type = "integer", description = "Up to." } }
"#;

fn turn(folder: &Folder, options: TurnOptions) -> Turn {
    let project = folder.load_as(RUN).unwrap();
    project.engine_builder().build().unwrap().turn(options).unwrap()
}

async fn call(turn: &mut Turn, name: &str, args: Value) -> ToolResult {
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call_1", name, args)]).await.remove(0)
}

#[tokio::test]
async fn a_section_is_what_makes_artifacts_and_the_documented_one_loads() {
    let offered = async |folder: Folder| {
        let mut turn = turn(&folder, TurnOptions::default());
        let iteration = turn.iteration().await.unwrap();
        iteration.menu().names().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(offered(Folder::with(COUNT)).await, ["count"]);
    let all = ["count", "artifact_read", "artifact_search", "artifact_query"];
    let documented = block("## Artifacts");
    assert_eq!(offered(Folder::with(&format!("{documented}{COUNT}"))).await, all);
    assert_eq!(offered(Folder::with(&format!("{COUNT}[artifacts]\n"))).await, all);

    let limits = |text: &str| Folder::with(text).load().artifacts().unwrap().limits();
    assert_eq!(limits(documented), limits("[artifacts]"), "what is documented is the default");
    let in_memory = limits("artifacts = { store = 'memory', max_turn_bytes = '1KiB' }");
    assert_eq!((in_memory.turn_bytes, in_memory.session_bytes), (1_024, 512 << 20));
}

#[tokio::test]
async fn what_is_cut_lies_in_the_state_folder_which_is_made_only_then() {
    let folder = Folder::with(&format!("{COUNT}[artifacts]\n"));
    let named = || TurnOptions::default().conversation("c");
    let mut first = turn(&folder, named());
    call(&mut first, "count", json!({ "to": 5 })).await;
    assert!(!folder.path().join(".toolcrib").exists(), "nothing had to be kept");
    let cut = call(&mut first, "count", json!({ "to": 5_000 })).await;
    assert!(cut.text.ends_with("the rest: artifact_read call_1]"), "{}", cut.text);
    let state = folder.path().join(".toolcrib");
    assert_eq!(std::fs::read_to_string(state.join(".gitignore")).unwrap(), "*\n");

    // Another process of the same conversation reads on.
    let mut later = turn(&folder, named());
    let args = json!({ "id": "call_1", "tail": 2 });
    let read = call(&mut later, "artifact_read", args.clone()).await;
    assert_eq!(unfence(&read.text).0, "4999\n5000");
    for other in [TurnOptions::default(), named().principal("ben"), named().tenant("acme")] {
        assert!(!call(&mut turn(&folder, other), "artifact_read", args.clone()).await.is_ok());
    }
    // And one without a name leaves nothing behind.
    let before = folder.listing();
    let mut unnamed = turn(&folder, TurnOptions::default());
    call(&mut unnamed, "count", json!({ "to": 5_000 })).await;
    assert_ne!(folder.listing(), before);
    drop(unnamed);
    assert_eq!(folder.listing(), before);
}

#[tokio::test]
async fn a_store_in_memory_writes_nothing_and_a_tool_may_want_or_refuse_it() {
    let store = "\n[artifacts]\nstore = 'memory'\n";
    let always =
        COUNT.replace("args =", "artifact_policy = 'always'\nartifact_kind = 'csv'\nargs =");
    let never = COUNT.replace("args =", "artifact_policy = 'never'\nargs =");
    for (text, ends) in [
        (COUNT, "chars total; the rest: artifact_read call_1]"),
        (&always, "\n5\n…"),
        (&never, "chars total; the rest was not kept]"),
    ] {
        let folder = Folder::with(&format!("{text}{store}"));
        let before = folder.listing();
        let mut turn = turn(&folder, TurnOptions::default());
        let result = call(&mut turn, "count", json!({ "to": 900 })).await;
        assert!(
            unfence(&result.text).0.ends_with(ends) || result.text.ends_with(ends),
            "{}",
            result.text
        );
        assert_eq!(folder.listing(), before);
    }
}

#[test]
fn what_cannot_be_is_reported_where_it_stands() {
    let folder = Folder::with(
        r#"
[artifacts]
store = "disk"
keep_for = "400 days"
max_turn_bytes = 0
max_answer_chars = 10
enabled = true
[[tool]]
kind = "command"
name = "artifact_read"
description = "Reads."
program = "true"
artifact_policy = "sometimes"
artifact_kind = "cvs"
"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:3:9: `store` cannot be `disk`
        help: the values are `files`, `memory`
    toolcrib.toml:4:12: `keep_for` is longer than a year
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:5:18: `max_turn_bytes` must be from 1 byte up
    toolcrib.toml:6:20: `max_answer_chars` must be from 500 to 10000000
    toolcrib.toml:7:1: unknown key `enabled` in `[artifacts]`
        help: the keys here are `store`, `keep_for`, `max_turn_bytes`, `max_session_bytes`, `max_answer_chars`
    toolcrib.toml:10:8: `artifact_read` is a tool that Toolcrib has for artifacts
        help: give the tool another name
    toolcrib.toml:13:19: `artifact_policy` cannot be `sometimes`
        help: the values are `when_cut`, `always`, `never`
    toolcrib.toml:14:17: there is no kind of artifact `cvs`
        help: did you mean `csv`?
    "#);
    let without =
        COUNT.replace("args =", "artifact_policy = 'always'\nartifact_kind = 'csv'\nargs =");
    insta::assert_snapshot!(Folder::with(&without).problems(), @r"
    toolcrib.toml:9:19: this project keeps no artifacts
        help: add a section `[artifacts]`, which may be empty, or take this out
    toolcrib.toml:10:17: this project keeps no artifacts
        help: add a section `[artifacts]`, which may be empty, or take this out
    ");
    // To keep nothing of a tool needs no section.
    Folder::with(&COUNT.replace("args =", "artifact_policy = 'never'\nargs =")).load();
}
