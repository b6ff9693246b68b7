//! `forge_tools`: tools generated for the current artifacts.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_artifacts::{ArtifactSource, Artifacts, MemoryStore, TurnArtifacts, forge_tools};
use toolcrib_core::{
    ErrorCode, Identity, Lifetime, OnCollision, TextOrigin, ToolCall, ToolRegistry, ToolResult,
};
use toolcrib_engine::{Engine, EngineBuilder, Redactor, TurnOptions};

use crate::support::{context, keep_as, turn};

fn names(registry: &ToolRegistry) -> Vec<String> {
    registry.all().iter().map(|tool| tool.name().to_string()).collect()
}

fn ids(registry: &ToolRegistry, name: &str) -> Value {
    registry.get(name).unwrap().input_schema()["properties"]["callId"]["enum"].clone()
}

/// Calls a forged tool through an engine, which validates the arguments against the schema.
fn through_an_engine(turn: &TurnArtifacts, name: &str, args: Value) -> ToolResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::builder().redactor(Redactor::default());
        let engine = forge_tools(turn).unwrap().all().into_iter().fold(engine, EngineBuilder::tool);
        let mut turn = engine.build().unwrap().turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        iteration.execute(vec![ToolCall::new("c", name, args)]).await.remove(0)
    })
}

#[test]
fn case_44_without_artifacts_there_are_no_tools() {
    assert!(forge_tools(&turn()).unwrap().is_empty());
}

#[test]
fn case_45_a_text_has_exactly_the_seven_tools_that_all_have() {
    let turn = turn();
    keep_as(&turn, "call_1", "plain");
    let registry = forge_tools(&turn).unwrap();
    assert_eq!(
        names(&registry),
        [
            "artifact_head",
            "artifact_tail",
            "artifact_grep",
            "artifact_cat",
            "artifact_byte_length",
            "artifact_line_count",
            "artifact_estimate_tokens",
        ]
    );
    for tool in registry.all() {
        assert_eq!(tool.ephemeral(), Some(Lifetime::Iteration));
        assert_eq!(tool.on_collision(), OnCollision::Replace);
        assert!(tool.untrusted() && tool.annotations().read_only);
        assert_eq!(tool.input_schema()["required"][0], "callId", "{}", tool.name());
    }
}

#[test]
fn case_46_both_ids_are_offered_and_another_is_refused() {
    let turn = turn();
    keep_as(&turn, "call_1", "one");
    keep_as(&turn, "call_2", "two");
    let registry = forge_tools(&turn).unwrap();
    assert_eq!(ids(&registry, "artifact_head"), json!(["call_1", "call_2"]));
    let head = |id: &str| through_an_engine(&turn, "artifact_head", json!({ "callId": id }));
    assert_eq!(&*head("call_2").value, "two");
    assert_eq!(head("call_3").code, Some(ErrorCode::InputInvalid));
}

/// Case 47: the answer of an artifact tool is not stored, so it has no id.
#[test]
fn case_47_an_answer_about_an_artifact_is_no_artifact() {
    let turn = turn();
    keep_as(&turn, "call_1", "x".repeat(100_000));
    through_an_engine(&turn, "artifact_head", json!({ "callId": "call_1" }));
    assert_eq!(ids(&forge_tools(&turn).unwrap(), "artifact_head"), json!(["call_1"]));
}

#[test]
fn case_48_tools_of_a_kind_offer_only_what_is_of_it() {
    let turn = turn();
    keep_as(&turn, "plain", "plain");
    keep_as(&turn, "document", "{\"a\": 1}");
    keep_as(&turn, "records", "{\"a\": 1}\n{\"a\": 2}\n");
    let registry = forge_tools(&turn).unwrap();
    assert_eq!(ids(&registry, "artifact_head"), json!(["plain", "document", "records"]));
    assert_eq!(ids(&registry, "artifact_json_get"), json!(["document", "records"]));
    insta::assert_snapshot!(names(&registry)[7..].join(" "), @"artifact_json_type artifact_json_keys artifact_json_length artifact_json_get artifact_json_slice artifact_json_pluck artifact_json_filter artifact_json_path");
    assert!(!registry.has("artifact_md_headings"));
    keep_as(&turn, "page", "# Title\n\n## Part\n");
    let registry = forge_tools(&turn).unwrap();
    assert_eq!(ids(&registry, "artifact_md_headings"), json!(["page"]));
    let get = |id: &str| {
        let args = json!({ "callId": id, "at": if id == "records" { "/1/a" } else { "/a" } });
        through_an_engine(&turn, "artifact_json_get", args)
    };
    assert_eq!(&*get("document").value, "1");
    assert_eq!(&*get("records").value, "2");
    assert_eq!(get("plain").code, Some(ErrorCode::InputInvalid));
}

#[test]
fn case_57_what_was_handed_out_stays_what_it_was() {
    use toolcrib_core::{ArtifactMeta, ArtifactStore, OnConflict};
    let store = MemoryStore::new();
    let artifacts = Artifacts::new(store.clone());
    let owner = Arc::new(Identity::conversation("c1"));
    let turn = artifacts.turn(Arc::clone(&owner), "run-1");
    let old = turn.keep(ArtifactSource::of("t", "call"), b"old").unwrap();
    let mut writer = store.create(&owner).unwrap();
    writer.write(b"newer").unwrap();
    let note = ArtifactMeta {
        kind: "text".into(),
        tool: "t".into(),
        call_id: "call".into(),
        turn_id: "run-1".into(),
        untrusted: true,
        text_origin: TextOrigin::Foreign,
        chars: 0,
    };
    writer.commit("call", note, OnConflict::Replace).unwrap();
    assert_eq!(old.content().read(0..9).unwrap(), b"old");
    assert_eq!(turn.get("call").unwrap().content().read(0..9).unwrap(), b"newer");
}

/// Case 58, for one iteration: forged tools end with it.
#[tokio::test]
async fn case_58_forged_tools_go_with_their_iteration() {
    let turn_artifacts = turn();
    keep_as(&turn_artifacts, "call_1", "one\ntwo");
    let baseline = toolcrib_core::Tool::builder("baseline")
        .description("A tool of the baseline.")
        .handler(|_: Value, _: toolcrib_core::ToolContext| async { "ran" });
    let engine = Engine::builder().redactor(Redactor::default()).tool(baseline).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for tool in forge_tools(&turn_artifacts).unwrap().all() {
        turn.registry().overwrite(tool);
    }
    let mut iteration = turn.iteration().await.unwrap();
    assert_eq!(iteration.menu().len(), 8);
    let calls = vec![ToolCall::new("c", "artifact_tail", json!({ "callId": "call_1", "n": 1 }))];
    let results = iteration.execute(calls).await;
    assert_eq!(&*results[0].value, "two");
    drop(iteration);
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(
        iteration.menu().tools().iter().map(|tool| &**tool.name()).collect::<Vec<_>>(),
        ["baseline"]
    );
}

#[tokio::test]
async fn what_was_forged_cannot_be_called_once_the_turn_is_acked() {
    let (turn_artifacts, seen) = (turn(), Arc::new(std::sync::Mutex::new(None)));
    keep_as(&turn_artifacts, "call_1", "one\ntwo");
    let engine = Engine::builder().redactor(Redactor::default()).build().unwrap();
    let noted = Arc::clone(&seen);
    let executor = move |mut cx: toolcrib_engine::IterationContext| {
        let (forged, noted) = (forge_tools(&turn_artifacts), Arc::clone(&noted));
        async move {
            if cx.number() == 1 {
                for tool in forged?.all() {
                    cx.registry().overwrite(tool);
                }
                return Ok(());
            }
            let head = || ToolCall::new("c", "artifact_head", json!({ "callId": "call_1" }));
            let before = cx.execute(vec![head()]).await.remove(0);
            cx.ack()?;
            let after = cx.execute(vec![head()]).await.remove(0);
            *noted.lock().unwrap() = Some((before, after));
            Ok(())
        }
    };
    let runner = toolcrib_engine::TurnRunner::new(engine);
    let outcome = runner.run(TurnOptions::default(), executor).await.unwrap();
    let (before, after) = seen.lock().unwrap().take().unwrap();
    assert_eq!(&*before.value, "one\ntwo");
    assert_eq!(after.code, Some(ErrorCode::NotAvailable), "{after:?}");
    assert!(after.text.starts_with("unknown tool `artifact_head`"), "as if it had never been");
    assert!(!outcome.registry.has("artifact_head"));
}

#[test]
fn an_artifact_that_went_since_a_tool_was_made_is_said_to_be_gone() {
    use toolcrib_core::ArtifactStore;
    let store = MemoryStore::new();
    let artifacts = Artifacts::new(store.clone());
    let turn = crate::support::turn_of(&artifacts, "c1");
    keep_as(&turn, "call_1", "one");
    keep_as(&turn, "call_2", "two");
    let registry = forge_tools(&turn).unwrap();
    store.remove(&Identity::conversation("c1"), "call_1").unwrap();
    let head = registry.get("artifact_head").unwrap();
    let error =
        crate::support::call(&head, json!({ "callId": "call_1" }), context(9_000)).unwrap_err();
    assert_eq!(error.message, "artifact `call_1` does not exist; there are: call_2");
}
