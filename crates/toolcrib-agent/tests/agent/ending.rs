//! Every other way out: cancellation, timeouts, failed models and providers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_agent::{Agent, EndReason, RunOptions, RunOutcome, TurnLimits};
use toolcrib_core::{
    CancellationToken, ErrorCode, ListContext, Message, ModelErrorClass, StopReason, Tool,
    ToolContext, ToolResult, gated_tools, static_tools,
};
use toolcrib_engine::TurnOptions;
use toolcrib_testing::{
    Answer, EventRecorder, Fault, TestModel, assert_replayable, faulty, in_time, model, stalled,
};

use crate::support::{agent, assert_ended, builder, call, calls, endless, says, skill_id, tool};

/// Runs to the end with a listener; checks invariants of every way out.
async fn run(agent: &Agent, options: impl Into<RunOptions>) -> (RunOutcome, EventRecorder) {
    let run = agent.run("Go", options);
    let log = EventRecorder::new();
    run.on("*", log.listener()).unwrap();
    let outcome = in_time(run).await;
    assert_ended(&log, &outcome);
    assert_replayable(&outcome.messages);
    let heard = log.events().len();
    tokio::task::yield_now().await;
    assert_eq!(log.events().len(), heard, "nothing after the end");
    (outcome, log)
}

/// Runs and cancels at the first event with a name.
async fn cancelled_at(
    agent: &Agent,
    name: &'static str,
    nth: usize,
) -> (RunOutcome, EventRecorder) {
    let cancel = CancellationToken::new();
    let run = agent.run("Go", TurnOptions::default().cancellation(cancel.clone()));
    let log = EventRecorder::new();
    run.on("*", log.listener()).unwrap();
    let seen = std::sync::atomic::AtomicUsize::new(0);
    run.on(name, move |_| {
        if seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 == nth {
            cancel.cancel();
        }
    })
    .unwrap();
    let outcome = in_time(run).await;
    assert_ended(&log, &outcome);
    assert_replayable(&outcome.messages);
    assert_eq!(outcome.end_reason, EndReason::Cancelled, "{:?}", log.names());
    assert!(outcome.answer.is_none() && outcome.error.is_none());
    assert_eq!(outcome.clone().into_answer().unwrap_err().code, "cancelled");
    (outcome, log)
}

fn calling(tools: Vec<Tool>, name: &'static str) -> Agent {
    let model = model()
        .then(calls([call("a", name, json!({})), call("b", "quick", json!({}))]))
        .always(says("done"));
    agent(&model).tools(tools).tool(tool("quick")).build().unwrap()
}

#[tokio::test]
async fn cancellation_during_a_response_drops_its_stream_and_text() {
    let model = model().always(Answer::text("Well").stalls());
    let agent = agent(&model).build().unwrap();
    let (outcome, log) = cancelled_at(&agent, "model.text", 1).await;
    assert_eq!(*outcome.messages, [Message::user("Go")]);
    assert_eq!(log.json_of("model.end")[0]["error"], "the run was cancelled");
}

#[tokio::test]
async fn a_model_that_never_pauses_is_stopped_by_cancellation_and_by_the_clock() {
    let model = model().always("x ".repeat(200_000));
    let agent = agent(&model).build().unwrap();
    let cancel = CancellationToken::new();
    let run = agent.run("Go", TurnOptions::default().cancellation(cancel.clone()));
    run.on("model.text", move |_| cancel.cancel()).unwrap();
    assert_eq!(run.await.end_reason, EndReason::Cancelled);
    let options = RunOptions::default().turn_timeout(Duration::from_nanos(1));
    assert_eq!(agent.run("Go", options).await.end_reason, EndReason::Timeout);
}

#[tokio::test(start_paused = true)]
async fn after_cancellation_in_a_tool_every_call_has_one_result() {
    let agent = calling(vec![endless(builder("slow"))], "slow");
    // The second to start is the one that ends by itself.
    let (outcome, log) = cancelled_at(&agent, "tool.end", 1).await;
    let codes: Vec<_> = outcome.tool_calls.iter().map(|call| call.code).collect();
    assert_eq!(codes, [Some(ErrorCode::OutcomeUnknown), None]);
    assert_eq!(outcome.messages.len(), 4);
    assert_eq!(log.json_of("tool.end").len(), 2);
    assert_eq!(log.json_of("model.start").len(), 1, "no further model call");
}

/// Case 47 of the providers' reference.
#[tokio::test]
async fn after_cancellation_between_iterations_there_is_no_discovery_and_no_request() {
    let agent = calling(vec![tool("t")], "t");
    let (outcome, log) = cancelled_at(&agent, "agent.iteration_end", 1).await;
    assert_eq!(outcome.tool_calls.len(), 2);
    assert!(outcome.tool_calls.iter().all(ToolResult::is_ok));
    assert_eq!(log.json_of("model.start").len(), 1);
    assert_eq!(log.json_of("tools.discovery_started").len(), 1);
}

/// Case 46 of the providers' reference, for models, tools and discovery alike.
#[tokio::test]
async fn cancelled_at_any_event_the_run_ends_as_cancelled_with_a_history_that_can_be_replayed() {
    let plain = || calling(vec![tool("t")], "t");
    let (whole, log) = run(&plain(), RunOptions::default()).await;
    assert_eq!(whole.end_reason, EndReason::Answered);
    // All but the last iteration's end and the turn's: then the answer is complete.
    let until_answered = log.events().len() - 3;
    for nth in 1..=until_answered {
        let (outcome, log) = cancelled_at(&plain(), "*", nth).await;
        assert!(log.events().len() >= nth);
        assert!(outcome.messages.len() <= whole.messages.len());
    }
}

#[tokio::test]
async fn a_token_that_fired_before_ends_the_run_before_anything_is_asked() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let model = model().always(says("hi"));
    let agent = agent(&model).tool(tool("t")).build().unwrap();
    let (outcome, log) = run(&agent, TurnOptions::default().cancellation(cancel)).await;
    assert_eq!(outcome.end_reason, EndReason::Cancelled);
    assert!(model.requests().is_empty());
    assert!(log.json_of("tools.discovery_started").is_empty());
}

#[tokio::test]
async fn the_end_of_one_run_does_not_cancel_what_shares_its_token() {
    let cancel = CancellationToken::new();
    let model = model().always(says("hi"));
    let agent = agent(&model).build().unwrap();
    for _ in 0..2 {
        let (outcome, _) = run(&agent, TurnOptions::default().cancellation(cancel.clone())).await;
        assert_eq!(outcome.end_reason, EndReason::Answered);
    }
    assert!(!cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn when_time_is_up_the_run_stops_wherever_it_is() {
    let in_tool = calling(vec![endless(builder("slow").read_only())], "slow");
    let in_model = agent(&stalled()).build().unwrap();
    let never = faulty(static_tools([])).always(Fault::Never);
    let in_discovery = agent(&model()).provider(never.provider()).build().unwrap();
    let of_tool = vec![Some(ErrorCode::Cancelled), None];
    for (agent, codes) in [(in_tool, of_tool), (in_model, vec![]), (in_discovery, vec![])] {
        let options = RunOptions::default().turn_timeout(Duration::from_secs(5));
        let (outcome, log) = run(&agent, options).await;
        assert_eq!(outcome.end_reason, EndReason::Timeout);
        let error = outcome.error.unwrap();
        assert_eq!(error.code, "timeout");
        assert_eq!(error.message, "the run did not end within 5s and was stopped");
        assert!(log.json_of("agent.turn_end")[0]["error"].is_string());
        let ended: Vec<_> = outcome.tool_calls.iter().map(|call| call.code).collect();
        assert_eq!(ended, codes);
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_the_agent_applies_to_a_run_without_one() {
    let agent = agent(&stalled()).turn_timeout(Duration::from_secs(3)).build().unwrap();
    let (outcome, _) = run(&agent, RunOptions::default()).await;
    assert!(outcome.error.unwrap().message.contains("3s"));
    let quick = model().always(says("hi"));
    let agent = crate::support::agent(&quick).turn_timeout(Duration::MAX).build().unwrap();
    assert_eq!(run(&agent, RunOptions::default()).await.0.end_reason, EndReason::Answered);
}

fn failing(how: &'static str) -> TestModel {
    model().then(call("a", "t", json!({}))).then_with(move |_| match how {
        "error" => Answer::text("We").fails(ModelErrorClass::NoRule, "no rule matches"),
        "panic" => panic!("bug in a model"),
        "panic later" => Answer::text("We").panics("bug in a model"),
        "incomplete" => Answer::text("We").breaks_off(),
        _ => Answer::text("").breaks_off(),
    })
}

#[tokio::test]
async fn a_model_that_fails_fails_the_run_and_keeps_what_was_done() {
    for (how, message) in [
        ("error", "model `test:model`: no rule matches"),
        ("panic", "model `test:model`: it panicked: bug in a model"),
        ("panic later", "model `test:model`: it panicked: bug in a model"),
        ("incomplete", "model `test:model`: its response ended before it was complete"),
        ("empty", "model `test:model`: its response ended before it was complete"),
    ] {
        let agent = agent(&failing(how)).tool(tool("t")).build().unwrap();
        let (outcome, log) = run(&agent, RunOptions::default()).await;
        assert_eq!(outcome.end_reason, EndReason::Failed, "{how}");
        let error = outcome.error.clone().unwrap();
        assert_eq!((error.code, &*error.message), ("model_failed", message));
        assert_eq!(error.component.as_deref(), Some("test:model"));
        assert_eq!((outcome.tool_calls.len(), outcome.messages.len()), (1, 3));
        assert_eq!(outcome.iterations, 2);
        assert!(log.json_of("model.end")[1]["error"].is_string());
        assert_eq!(outcome.into_answer().unwrap_err(), error);
    }
}

#[tokio::test]
async fn a_discovery_that_fails_fails_the_run_and_names_the_provider() {
    let hub = faulty(static_tools([tool("t")]))
        .then(Fault::None)
        .then(Fault::Error("hunter22 refused".into()));
    let model = model().always(calls([call("a", "t", json!({}))]));
    let agent = agent(&model)
        .engine(|engine| engine.redactor(toolcrib_engine::Redactor::new(["hunter22".to_owned()])))
        .provider(gated_tools("g", hub.provider(), |_: &Tool, _: &ListContext| true))
        .build()
        .unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.end_reason, EndReason::Failed);
    let error = outcome.error.unwrap();
    assert_eq!(error.code, "discovery_failed");
    assert_eq!(error.component.as_deref(), Some("gated(g) > faulty > static"));
    assert_eq!(
        error.message,
        "the tools of this step could not be listed: \
         provider `gated(g) > faulty > static`: [redacted] refused"
    );
    assert_eq!(model.requests().len(), 1);
    assert_eq!(outcome.tool_calls.len(), 1);
    assert_eq!(log.json_of("tools.discovery_failed").len(), 1);
}

#[tokio::test]
async fn two_sources_of_one_name_fail_the_run() {
    let model = model().always(says("hi"));
    let agent = agent(&model).tool(tool("t")).provider(static_tools([tool("t")])).build().unwrap();
    let (outcome, _) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.error.unwrap().code, "name_collision");
}

#[tokio::test]
async fn an_unknown_skill_fails_the_run_before_it_begins() {
    let model = model().always(says("hi"));
    let agent = agent(&model).build().unwrap();
    let options = TurnOptions::default().skill(skill_id("billing"));
    let run = agent.run("Go", RunOptions::from(options).history(vec![Message::user("before")]));
    let mut events = run.events();
    let outcome = run.await;
    assert_eq!(outcome.end_reason, EndReason::Failed);
    assert_eq!(outcome.error.unwrap().code, "unknown_skill");
    assert_eq!(*outcome.messages, [Message::user("before"), Message::user("Go")]);
    assert!(model.requests().is_empty());
    assert!(in_time(events.next()).await.is_none());
}

/// Case 41 of the providers' reference.
#[tokio::test]
async fn a_tool_that_fails_or_panics_does_not_end_the_run() {
    let bad = builder("bad")
        .handler(|args: Value, _: ToolContext| async move {
            assert!(args["panic"] != true, "bug");
            Err::<String, _>(std::io::Error::other("no"))
        })
        .unwrap();
    let model = model()
        .then(calls([call("a", "bad", json!({})), call("b", "bad", json!({"panic": true}))]))
        .always(says("It failed."));
    let agent = agent(&model).tool(bad).build().unwrap();
    let (outcome, _) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("It failed."));
    let codes: Vec<_> = outcome.tool_calls.iter().map(|call| call.code).collect();
    assert_eq!(codes, [Some(ErrorCode::ExecutionFailed); 2]);
}

#[tokio::test]
async fn an_answer_that_reached_the_output_limit_is_a_separate_end() {
    let cut = || says("The begin").stops(StopReason::MaxTokens);
    let loops = || calls([call("a", "quick", json!({}))]);
    // The answer, and the wrap-up's.
    for (model, iterations) in [(model().then(cut()), 1), (model().then(loops()).then(cut()), 1)] {
        let agent = agent(&model).tool(tool("quick")).max_iterations(1).build().unwrap();
        let (outcome, _) = run(&agent, RunOptions::default()).await;
        assert_eq!((outcome.end_reason, outcome.iterations), (EndReason::CutOff, iterations));
        assert_eq!(outcome.answer.as_deref(), Some("The begin"));
        assert_eq!(outcome.messages.last(), Some(&Message::assistant("The begin", [])));
        assert_eq!(outcome.into_answer().unwrap_err().code, "answer_cut_off");
    }
}

#[tokio::test]
async fn calls_of_an_answer_that_was_cut_off_are_neither_made_nor_denials() {
    let ran = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ran);
    let counting = builder("count").handler(move |_: Value, _: ToolContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { "ran" }
    });
    let cut = calls([call("a", "count", json!({})), call("b", "count", json!({}))]);
    let model = model().then(cut.stops(StopReason::MaxTokens)).then(says("done"));
    let limits = TurnLimits { max_denials: Some(1), ..TurnLimits::default() };
    let agent = agent(&model).tool(counting.unwrap()).turn_limits(limits).build().unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(
        (outcome.end_reason, outcome.answer.as_deref()),
        (EndReason::Answered, Some("done"))
    );
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let codes: Vec<_> = outcome.tool_calls.iter().map(|result| result.code).collect();
    assert_eq!(codes, [Some(ErrorCode::InputInvalid); 2]);
    assert!(log.json_of("policy.denied").is_empty());
}
