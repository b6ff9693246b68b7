//! Every other way out: cancellation, time, models and providers that fail.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use toolcrib_agent::{Agent, RunOptions, RunOutcome, Stopped};
use toolcrib_core::{
    CancellationToken, Catalog, DiscoveryError, ErrorCode, ListContext, Listing, Message,
    ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelStream, Tool, ToolContext,
    ToolProvider, ToolResult, gated_tools, static_tools,
};
use toolcrib_engine::TurnOptions;

use crate::support::{
    Log, agent, assert_replayable, builder, call, calls, endless, in_time, model, results, says,
    skill_id, tool,
};

/// Runs to the end, listening; checks what holds for every way out.
async fn run(agent: &Agent, options: impl Into<RunOptions>) -> (RunOutcome, Log) {
    let run = agent.run("Go", options);
    let log = Log::default();
    run.on("*", log.listener());
    let outcome = in_time(run).await;
    log.assert_ended(&outcome);
    assert_replayable(&outcome.messages);
    let heard = log.events().len();
    tokio::task::yield_now().await;
    assert_eq!(log.events().len(), heard, "nothing after the end");
    (outcome, log)
}

/// Runs and cancels at the first event of a name.
async fn cancelled_at(agent: &Agent, name: &'static str, nth: usize) -> (RunOutcome, Log) {
    let cancel = CancellationToken::new();
    let run = agent.run("Go", TurnOptions::default().cancellation(cancel.clone()));
    let log = Log::default();
    run.on("*", log.listener());
    let seen = std::sync::atomic::AtomicUsize::new(0);
    run.on(name, move |_| {
        if seen.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1 == nth {
            cancel.cancel();
        }
    });
    let outcome = in_time(run).await;
    log.assert_ended(&outcome);
    assert_replayable(&outcome.messages);
    assert_eq!(outcome.stopped, Stopped::Cancelled, "{:?}", log.names());
    assert!(outcome.answer.is_none() && outcome.error.is_none());
    assert_eq!(outcome.clone().into_answer().unwrap_err().code, "cancelled");
    (outcome, log)
}

fn calling(tools: Vec<Tool>, name: &'static str) -> Agent {
    let (model, _) = model(move |request| match results(request) {
        0 => calls([call("a", name, json!({})), call("b", "quick", json!({}))]),
        _ => says("done"),
    });
    agent(model).tools(tools).tool(tool("quick")).build().unwrap()
}

#[tokio::test]
async fn cancelled_in_the_model_its_stream_is_dropped_and_nothing_was_said() {
    let (model, _) = model(|_| {
        let first = stream::iter([Ok(ModelChunk::Text("Well".into()))]);
        Box::pin(first.chain(stream::pending())) as ModelStream
    });
    let agent = agent(model).build().unwrap();
    let (outcome, log) = cancelled_at(&agent, "model.text", 1).await;
    assert_eq!(*outcome.messages, [Message::user("Go")]);
    assert_eq!(log.of_name("model.end")[0]["error"], "the run was cancelled");
}

#[tokio::test]
async fn a_model_that_never_pauses_is_stopped_by_cancellation_and_by_the_clock() {
    let (model, _) = model(|_| {
        let many = (0..200_000).map(|_| Ok(ModelChunk::Text("x".into())));
        let done = [Ok(ModelChunk::Done(toolcrib_core::ModelResponse::default()))];
        Box::pin(stream::iter(many.chain(done)))
    });
    let agent = agent(model).build().unwrap();
    let cancel = CancellationToken::new();
    let run = agent.run("Go", TurnOptions::default().cancellation(cancel.clone()));
    run.on("model.text", move |_| cancel.cancel());
    assert_eq!(run.await.stopped, Stopped::Cancelled);
    let options = RunOptions::default().turn_timeout(Duration::from_nanos(1));
    assert_eq!(agent.run("Go", options).await.stopped, Stopped::Timeout);
}

#[tokio::test(start_paused = true)]
async fn cancelled_in_a_tool_every_call_has_its_one_result() {
    let agent = calling(vec![endless(builder("slow"))], "slow");
    // The second to start is the one that ends by itself.
    let (outcome, log) = cancelled_at(&agent, "tool.end", 1).await;
    let codes: Vec<_> = outcome.tool_calls.iter().map(|call| call.code).collect();
    assert_eq!(codes, [Some(ErrorCode::OutcomeUnknown), None]);
    assert_eq!(outcome.messages.len(), 4);
    assert_eq!(log.of_name("tool.end").len(), 2);
    assert_eq!(log.of_name("model.start").len(), 1, "no further model call");
}

#[tokio::test]
async fn cancelled_between_iterations_there_is_no_further_discovery_and_no_model_call() {
    let agent = calling(vec![tool("t")], "t");
    let (outcome, log) = cancelled_at(&agent, "agent.iteration_end", 1).await;
    assert_eq!(outcome.tool_calls.len(), 2);
    assert!(outcome.tool_calls.iter().all(ToolResult::is_ok));
    assert_eq!(log.of_name("model.start").len(), 1);
    assert_eq!(log.of_name("tools.discovery_started").len(), 1);
}

#[tokio::test]
async fn cancelled_at_any_event_the_run_ends_as_cancelled_with_a_history_that_can_be_replayed() {
    let plain = || calling(vec![tool("t")], "t");
    let (whole, log) = run(&plain(), RunOptions::default()).await;
    assert_eq!(whole.stopped, Stopped::Answered);
    // All but the last iteration's end and the turn's: then there is an answer.
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
    let (model, asked) = model(|_| says("hi"));
    let agent = agent(model).tool(tool("t")).build().unwrap();
    let (outcome, log) = run(&agent, TurnOptions::default().cancellation(cancel)).await;
    assert_eq!(outcome.stopped, Stopped::Cancelled);
    assert!(asked.lock().unwrap().is_empty());
    assert!(log.of_name("tools.discovery_started").is_empty());
}

#[tokio::test]
async fn the_end_of_one_run_does_not_cancel_what_shares_its_token() {
    let cancel = CancellationToken::new();
    let (model, _) = model(|_| says("hi"));
    let agent = agent(model).build().unwrap();
    for _ in 0..2 {
        let (outcome, _) = run(&agent, TurnOptions::default().cancellation(cancel.clone())).await;
        assert_eq!(outcome.stopped, Stopped::Answered);
    }
    assert!(!cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn when_time_is_up_the_run_stops_wherever_it_is() {
    let in_tool = calling(vec![endless(builder("slow").read_only())], "slow");
    let (silent, _) = model(|_| Box::pin(stream::pending()) as ModelStream);
    let in_model = agent(silent).build().unwrap();
    struct Never;
    impl ToolProvider for Never {
        fn id(&self) -> &str {
            "never"
        }
        fn list(self: Arc<Self>, _: &ListContext, _: Catalog) -> Listing {
            Listing::later(std::future::pending())
        }
    }
    let (unasked, _) = model(|_| says("hi"));
    let in_discovery = agent(unasked).tool_provider(Arc::new(Never)).build().unwrap();
    for agent in [in_tool, in_model, in_discovery] {
        let options = RunOptions::default().turn_timeout(Duration::from_secs(5));
        let (outcome, log) = run(&agent, options).await;
        assert_eq!(outcome.stopped, Stopped::Timeout);
        let error = outcome.error.unwrap();
        assert_eq!(error.code, "timeout");
        assert_eq!(error.message, "the run did not end within 5s and was stopped");
        assert!(log.of_name("agent.turn_end")[0]["error"].is_string());
        for call in &outcome.tool_calls {
            assert!(call.is_ok() || call.code == Some(ErrorCode::Cancelled));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_agents_own_time_holds_where_a_run_says_nothing() {
    let (silent, _) = model(|_| Box::pin(stream::pending()) as ModelStream);
    let agent = agent(silent).turn_timeout(Duration::from_secs(3)).build().unwrap();
    let (outcome, _) = run(&agent, RunOptions::default()).await;
    assert!(outcome.error.unwrap().message.contains("3s"));
    let (quick, _) = model(|_| says("hi"));
    let agent = crate::support::agent(quick).turn_timeout(Duration::MAX).build().unwrap();
    assert_eq!(run(&agent, RunOptions::default()).await.0.stopped, Stopped::Answered);
}

fn failing(how: &'static str) -> impl Fn(&ModelRequest) -> ModelStream + Send + Sync + 'static {
    move |request| {
        if results(request) == 0 {
            return calls([call("a", "t", json!({}))]);
        }
        match how {
            "error" => {
                let error = ModelError::new(ModelErrorClass::NoRule, "no rule matches");
                Box::pin(stream::iter([Ok(ModelChunk::Text("We".into())), Err(error)]))
            }
            "panic" => panic!("bug in a model"),
            "panic later" => Box::pin(stream::once(async { panic!("bug in a model") })),
            "incomplete" => Box::pin(stream::iter([Ok(ModelChunk::Text("We".into()))])),
            _ => Box::pin(stream::empty()),
        }
    }
}

#[tokio::test]
async fn a_model_that_fails_fails_the_run_and_keeps_what_was_done() {
    for (how, message) in [
        ("error", "model `test:model`: no rule matches"),
        ("panic", "model `test:model`: it panicked: bug in a model"),
        ("panic later", "model `test:model`: it panicked: bug in a model"),
        ("incomplete", "model `test:model`: its answer ended before it was complete"),
        ("empty", "model `test:model`: its answer ended before it was complete"),
    ] {
        let (model, _) = model(failing(how));
        let agent = agent(model).tool(tool("t")).build().unwrap();
        let (outcome, log) = run(&agent, RunOptions::default()).await;
        assert_eq!(outcome.stopped, Stopped::Failed, "{how}");
        let error = outcome.error.clone().unwrap();
        assert_eq!((error.code, &*error.message), ("model_failed", message));
        assert_eq!(error.component.as_deref(), Some("test:model"));
        assert_eq!((outcome.tool_calls.len(), outcome.messages.len()), (1, 3));
        assert_eq!(outcome.iterations, 2);
        assert!(log.of_name("model.end")[1]["error"].is_string());
        assert_eq!(outcome.into_answer().unwrap_err(), error);
    }
}

#[tokio::test]
async fn a_discovery_that_fails_fails_the_run_and_names_the_provider() {
    struct Down;
    impl ToolProvider for Down {
        fn id(&self) -> &str {
            "hub"
        }
        fn list(self: Arc<Self>, cx: &ListContext, mut into: Catalog) -> Listing {
            if cx.iteration() > 1 {
                return Listing::failed(into, DiscoveryError::source_failed("hunter22 refused"));
            }
            into.offer(tool("t"));
            Listing::now(into)
        }
    }
    let (model, asked) = model(|_| calls([call("a", "t", json!({}))]));
    let agent = agent(model)
        .engine(|engine| engine.redactor(toolcrib_engine::Redactor::new(["hunter22".to_owned()])))
        .tool_provider(gated_tools("g", Arc::new(Down), |_: &Tool, _: &ListContext| true))
        .build()
        .unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.stopped, Stopped::Failed);
    let error = outcome.error.unwrap();
    assert_eq!(error.code, "discovery_failed");
    assert_eq!(error.component.as_deref(), Some("gated(g) > hub"));
    assert_eq!(
        error.message,
        "the tools of this step could not be listed: \
         provider `gated(g) > hub`: [redacted] refused"
    );
    assert_eq!(asked.lock().unwrap().len(), 1);
    assert_eq!(outcome.tool_calls.len(), 1);
    assert_eq!(log.of_name("tools.discovery_failed").len(), 1);
}

#[tokio::test]
async fn two_sources_of_one_name_fail_the_run() {
    let (model, _) = model(|_| says("hi"));
    let agent =
        agent(model).tool(tool("t")).tool_provider(static_tools([tool("t")])).build().unwrap();
    let (outcome, _) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.error.unwrap().code, "name_collision");
}

#[tokio::test]
async fn an_unknown_skill_fails_the_run_before_it_begins() {
    let (model, asked) = model(|_| says("hi"));
    let agent = agent(model).build().unwrap();
    let options = TurnOptions::default().skill(skill_id("billing"));
    let run = agent.run("Go", RunOptions::from(options).history(vec![Message::user("before")]));
    let mut events = run.events();
    let outcome = run.await;
    assert_eq!(outcome.stopped, Stopped::Failed);
    assert_eq!(outcome.error.unwrap().code, "unknown_skill");
    assert_eq!(*outcome.messages, [Message::user("before"), Message::user("Go")]);
    assert!(asked.lock().unwrap().is_empty());
    assert!(in_time(events.next()).await.is_none());
}

#[tokio::test]
async fn a_tool_that_fails_or_panics_does_not_end_the_run() {
    let bad = builder("bad")
        .handler(|args: Value, _: ToolContext| async move {
            assert!(args["panic"] != true, "bug");
            Err::<String, _>(std::io::Error::other("no"))
        })
        .unwrap();
    let (model, _) = model(|request| match results(request) {
        0 => calls([call("a", "bad", json!({})), call("b", "bad", json!({"panic": true}))]),
        _ => says("It failed."),
    });
    let agent = agent(model).tool(bad).build().unwrap();
    let (outcome, _) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("It failed."));
    assert!(outcome.tool_calls.iter().all(|call| call.code == Some(ErrorCode::ExecutionFailed)));
}
