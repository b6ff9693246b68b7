//! Tool choice, reasoning, and the vendor's prompt cache.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_agent::{Agent, EndReason, RunOptions};
use toolcrib_core::{
    ErrorCode, Message, ModelErrorClass, ModelResponse, StopReason, ToolCall, ToolChoice,
    ToolContext, VendorContent,
};
use toolcrib_engine::{Redactor, TurnOptions};
use toolcrib_testing::{Answer, EventRecorder, assert_replayable, model};

use crate::support::{USAGE, agent, builder, call, calls, says, skills, tool};

fn only(name: &str) -> ToolChoice {
    ToolChoice::Tool(toolcrib_core::ToolName::new(name).unwrap())
}

async fn forced(model: toolcrib_testing::TestModel, choices: &[ToolChoice]) -> (EndReason, String) {
    let agent = agent(&model).tool(tool("t")).tool(tool("u")).build().unwrap();
    let outcome = agent.run("Go", RunOptions::default().tool_choices(choices)).await;
    assert_replayable(&outcome.messages);
    (outcome.end_reason, outcome.error.map(|error| error.message).unwrap_or_default())
}

#[tokio::test]
async fn each_iteration_may_have_a_choice_of_its_own_and_later_ones_are_free() {
    let model = model()
        .then(calls([call("a", "t", json!({}))]))
        .then(calls([call("b", "u", json!({})), call("c", "u", json!({}))]))
        .then(calls([call("d", "t", json!({}))]))
        .always(says("Done."));
    let (stopped, _) = forced(model.clone(), &[ToolChoice::Required, only("u")]).await;
    assert_eq!(stopped, EndReason::Answered);
    let choices: Vec<_> = model.requests().iter().map(|asked| asked.tool_choice.clone()).collect();
    let free = ToolChoice::Auto;
    assert_eq!(choices, [ToolChoice::Required, only("u"), free.clone(), free]);
}

#[tokio::test]
async fn a_response_that_ignores_the_tool_choice_is_an_error() {
    let cases = [
        (
            ToolChoice::Required,
            says("No."),
            "it had to call a tool, and it called none; its server may not enforce the choice of tools",
        ),
        (
            only("t"),
            says("No."),
            "it had to call `t` and no other tool, and it called none; its server may not enforce the choice of tools",
        ),
        (
            only("t"),
            calls([call("a", "u", json!({}))]),
            "it had to call `t` and no other tool, and it called `u`",
        ),
        (
            only("t"),
            calls([call("a", "t", json!({})), call("b", "u\u{1b}", json!({}))]),
            "it had to call `t` and no other tool, and it called `t`, `u\\u{1b}`",
        ),
        (
            only("gone"),
            says("never asked"),
            "it must call `gone`, which is not offered in this iteration; offered: t, u",
        ),
    ];
    for (choice, answer, expected) in cases {
        let (stopped, message) = forced(model().always(answer), &[choice]).await;
        assert_eq!(stopped, EndReason::Failed);
        assert_eq!(message, format!("model `test:model`: {expected}"));
    }
}

#[tokio::test]
async fn reasoning_is_an_event_and_not_a_part_of_the_answer() {
    let answer =
        Answer::text("The key is s3cret-key-1.").reasoning("I know s3cret-key-1 by heart.");
    let model = model().always(answer.stops(StopReason::MaxTokens));
    let agent = agent(&model)
        .engine(|engine| engine.redactor(Redactor::new(["s3cret-key-1".to_owned()])))
        .build()
        .unwrap();
    let run = agent.run("Go", RunOptions::default());
    let seen = EventRecorder::new();
    run.on("model.*", seen.listener()).unwrap();
    let outcome = run.await;
    assert_eq!(outcome.answer.as_deref(), Some("The key is [redacted]."));
    let thought: String = seen
        .json_of("model.reasoning")
        .iter()
        .map(|event| event["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(thought, "I know [redacted] by heart.");
    assert_eq!(seen.json_of("model.end")[0]["stop"], "max_tokens");
}

#[tokio::test]
async fn a_failed_request_has_its_error_class() {
    let model = model().always(Answer::text("We").fails(ModelErrorClass::RateLimit, "slow down"));
    let agent = agent(&model).build().unwrap();
    let run = agent.run("Go", RunOptions::default());
    let seen = EventRecorder::new();
    run.on("model.end", seen.listener()).unwrap();
    run.await;
    assert_eq!(seen.json_of("model.end")[0]["error_class"], "rate_limit");
    assert_eq!(seen.json_of("model.end")[0].get("stop"), None);
}

#[tokio::test]
async fn vendor_content_is_sent_back_and_contains_no_secret() {
    let content = json!({ "signature": "abc", "thinking": "use s3cret-key-1" });
    let vendor = Some(Arc::new(VendorContent { vendor: "test".into(), content }));
    let response =
        ModelResponse { calls: vec![call("a", "t", json!({}))], vendor, ..Default::default() };
    let model = model().then(response).always(says("Done."));
    let agent = agent(&model)
        .tool(tool("t"))
        .engine(|engine| engine.redactor(Redactor::new(["s3cret-key-1".to_owned()])))
        .build()
        .unwrap();
    agent.run("Go", RunOptions::default()).await;
    let Message::Assistant { vendor: Some(kept), .. } = &model.requests()[1].messages[1] else {
        panic!("nothing was kept");
    };
    assert_eq!(kept.content, json!({ "signature": "abc", "thinking": "use [redacted]" }));
}

#[tokio::test]
async fn a_secret_in_a_response_is_in_no_event_and_in_no_history() {
    let call = |id: &str, name: &str, arguments: &str| ToolCall::unparsed(id, name, arguments);
    let model = model()
        .then(calls([
            call("s3cret-key-1", "t", "{}"),
            call("b", "s3cret-key-1", "{}"),
            call("c", "t", r#"{"a": "\u00733cret-key-1"}"#),
            call("d", "t", r#"{"a": "s3cret-key-1"#),
        ]))
        .always(says("Done."));
    let agent = agent(&model)
        .tool(tool("t"))
        .engine(|engine| engine.redactor(Redactor::new(["s3cret-key-1".to_owned()])))
        .build()
        .unwrap();
    let run = agent.run("Go", RunOptions::default());
    let seen = EventRecorder::new();
    run.on("*", seen.listener()).unwrap();
    let outcome = run.await;
    let all = format!("{:?} {:?} {outcome:?}", seen.events(), model.requests()[1].messages);
    assert!(!all.contains("3cret-key-1"), "{all}");
    assert!(outcome.tool_calls[0].is_ok() && outcome.tool_calls[2].is_ok());
    assert_replayable(&outcome.messages);
}

/// The prefix changes that a run reports, without the common fields of events.
async fn changes(agent: &Agent, options: RunOptions) -> (Vec<Value>, Vec<Message>) {
    let run = agent.run("Go", options);
    let seen = EventRecorder::new();
    run.on("model.prefix_changed", seen.listener()).unwrap();
    let outcome = run.await;
    let mut events = seen.json_of("model.prefix_changed");
    for event in &mut events {
        let event = event.as_object_mut().unwrap();
        for common in ["type", "turn_id", "seq", "iteration", "at_ms", "identity"] {
            event.remove(common);
        }
    }
    (events, outcome.messages.to_vec())
}

#[tokio::test]
async fn an_unchanged_prefix_is_not_reported() {
    let model = model().then(calls([call("a", "t", json!({}))])).always(says("Done."));
    let agent = agent(&model).tool(tool("t")).build().unwrap();
    let conversation = || TurnOptions::default().conversation("c");
    let (first, history) = changes(&agent, conversation().into()).await;
    let (second, _) = changes(&agent, RunOptions::from(conversation()).history(history)).await;
    assert_eq!((first, second), (vec![], vec![]));
}

#[tokio::test]
async fn changes_that_miss_the_prompt_cache_within_a_run_are_reported() {
    let model = model()
        .then(calls([call("a", "read_skill", json!({"id": "billing"}))]))
        .always(says("Done."));
    let agent = agent(&model)
        .tool(tool("refund"))
        .tool(tool("weather"))
        .skills(skills([("billing", &["refund"][..])]))
        .build()
        .unwrap();
    let (changes, _) = changes(&agent, RunOptions::default()).await;
    assert_eq!(changes, [json!({ "tools_removed": ["weather"] })]);
}

#[tokio::test]
async fn changes_that_miss_the_prompt_cache_between_two_runs_are_reported() {
    let model = model().always(says("Done."));
    let first = agent(&model).system("Be kind.").tool(tool("a")).tool(tool("b")).tool(tool("c"));
    let first = first.build().unwrap();
    let conversation = |name: &str| TurnOptions::default().conversation(name);
    let (_, mut history) = changes(&first, conversation("one").into()).await;
    changes(&first, conversation("two").into()).await;

    let changed = toolcrib_core::Tool::builder("b")
        .description("Something else.")
        .handler(|_: Value, _| async { "ok" })
        .unwrap();
    let engine =
        toolcrib_engine::Engine::builder().tools([tool("d"), changed, tool("a")]).build().unwrap();
    let second = first.with_engine(engine);
    // Its last answer has not been sent yet, so that it can change.
    history[1] = Message::assistant("Not what it said.", []);
    let options = RunOptions::from(conversation("one")).history(history.clone());
    let (found, _) = changes(&first, options).await;
    assert_eq!(found, Vec::<Value>::new());
    history[0] = Message::user("Not what was asked.");
    let options = RunOptions::from(conversation("one")).history(history);
    let (found, _) = changes(&second, options).await;
    assert_eq!(
        found,
        [json!({
            "tools_added": ["d"], "tools_removed": ["c"], "tools_changed": ["b"],
            "tools_reordered": true, "messages_from": 0,
        })]
    );
    // A conversation without a name is not compared.
    let (found, _) = changes(&second, RunOptions::default()).await;
    assert_eq!(found, Vec::<Value>::new());
}

#[tokio::test]
async fn a_choice_of_tools_is_told_and_another_tenants_conversation_is_not() {
    let model = model().then(calls([call("a", "t", json!({}))])).always(says("Done."));
    let first = agent(&model).tool(tool("t")).build().unwrap();
    let of = |tenant: &str| TurnOptions::default().conversation("c").tenant(tenant);
    let options = RunOptions::from(of("acme")).tool_choices([only("t"), ToolChoice::None]);
    let (found, _) = changes(&first, options).await;
    assert_eq!(found, [json!({ "tool_choice_changed": true })]);
    let second = agent(&model).tool(tool("u")).build().unwrap();
    let second = first.with_engine(second.engine().clone());
    let (found, _) = changes(&second, of("other").into()).await;
    assert_eq!(found, Vec::<Value>::new());
    let (found, _) = changes(&second, of("acme").into()).await;
    assert_eq!(
        found,
        [json!({
            "tools_added": ["u"], "tools_removed": ["t"], "tool_choice_changed": true,
            // The earlier messages were not passed on.
            "messages_from": 1,
        })]
    );
}

#[tokio::test]
async fn calls_despite_the_choice_none_are_refused_and_the_text_is_the_answer() {
    let ran = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let runs = Arc::clone(&ran);
    let delete = builder("delete_all")
        .handler(move |_: Value, _: ToolContext| {
            runs.store(true, std::sync::atomic::Ordering::Relaxed);
            async { "deleted" }
        })
        .unwrap();
    let model = model().always(calls([call("a", "delete_all", json!({}))]));
    let agent = agent(&model).tool(delete).build().unwrap();
    let options = RunOptions::default().tool_choices([ToolChoice::None]);
    let outcome = agent.run("Go", options).await;
    assert_eq!(
        (outcome.end_reason, outcome.answer.as_deref()),
        (EndReason::Answered, Some("One moment."))
    );
    assert_eq!(outcome.tool_calls[0].code, Some(ErrorCode::NotAvailable));
    assert!(!ran.load(std::sync::atomic::Ordering::Relaxed));
    assert_replayable(&outcome.messages);
}

#[tokio::test]
async fn an_outcome_says_why_the_model_stopped_or_failed_and_counts_what_was_used() {
    let cut = model().always(says("I can look u").stops(StopReason::MaxTokens));
    let outcome = agent(&cut).build().unwrap().run("Go", RunOptions::default()).await;
    assert_eq!(outcome.stop, Some(StopReason::MaxTokens));

    let ignores = model().always(says("No."));
    let ignoring = agent(&ignores).tool(tool("t")).build().unwrap();
    let options = RunOptions::default().tool_choices([ToolChoice::Required]);
    let outcome = ignoring.run("Go", options).await;
    assert_eq!((outcome.usage, outcome.stop), (USAGE, None));
    let error = outcome.error.unwrap();
    assert_eq!(error.class, Some(ModelErrorClass::ToolChoiceIgnored));
    assert_eq!(json!(error)["class"], "tool_choice_ignored");
}
