//! The loop as the executor of its turn: middleware around it, and edits of the turn's tools.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolcrib_agent::{EndReason, RunOptions};
use toolcrib_core::{
    Arguments, BoxFuture, ErrorCode, HookResult, Lifetime, Middleware, ToolCall, ToolContext,
    TurnContext,
};
use toolcrib_testing::{EventRecorder, assert_replayable, in_time, model};

use crate::support::{agent, assert_ended, builder, call, calls, says, tool};

/// Runs a function after each iteration and after the turn.
struct After<F>(F);

impl<F> Middleware for After<F>
where
    F: Fn(&'static str, TurnContext<'_>) -> HookResult + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "after"
    }
    fn after_iteration<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async move { (self.0)("iteration", cx) })
    }
    fn after_turn<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async move { (self.0)("turn", cx) })
    }
}

// Case 73.
#[tokio::test]
async fn a_call_of_nothing_and_one_without_json_are_results_and_the_run_goes_on() {
    let mut garbled = call("b", "t", json!({}));
    garbled.arguments = Arguments::Text("{\"order\": 10 42}".into());
    let model =
        model().then(calls([call("a", "nothing", json!({})), garbled])).always(says("Sorry."));
    let agent = agent(&model).tool(tool("t")).build().unwrap();
    let outcome = in_time(agent.run("Go", RunOptions::default())).await;
    assert_eq!(outcome.answer.as_deref(), Some("Sorry."));
    let codes: Vec<_> = outcome.tool_calls.iter().map(|call| call.code).collect();
    assert_eq!(codes, [Some(ErrorCode::NotAvailable), Some(ErrorCode::InputInvalid)]);
    assert!(outcome.tool_calls[0].value.starts_with("unknown tool `nothing`"));
    assert!(outcome.tool_calls[1].value.contains("not valid JSON"));
    assert_replayable(&outcome.messages);
}

#[tokio::test]
async fn what_a_middleware_puts_into_the_registry_is_offered_in_the_next_iteration() {
    let adds = After(|place, cx: TurnContext<'_>| {
        if place == "iteration" {
            let name = format!("for_{}", cx.iteration + 1);
            let brief = builder(&name).ephemeral(Lifetime::Iteration);
            cx.registry
                .register(brief.handler(|_: serde_json::Value, _: ToolContext| async { "" })?)?;
        }
        Ok(())
    });
    let model = model()
        .then(calls([call("a", "t", json!({}))]))
        .then(calls([call("b", "for_2", json!({}))]))
        .always(says("ok"));
    let agent =
        agent(&model).tool(tool("t")).engine(|engine| engine.middleware(adds)).build().unwrap();
    let outcome = agent.run("Go", RunOptions::default()).await;
    assert!(outcome.tool_calls.iter().all(toolcrib_core::ToolResult::is_ok));
    let menus: Vec<Vec<_>> = outcome
        .menus
        .iter()
        .map(|menu| menu.offered.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(menus, [vec!["t"], vec!["t", "for_2"], vec!["t", "for_3"]]);
}

#[tokio::test]
async fn a_middleware_may_end_the_run_in_place_of_the_model() {
    for (nacks, stopped) in [(false, EndReason::Answered), (true, EndReason::Failed)] {
        let enough = After(move |place, cx: TurnContext<'_>| {
            if place == "iteration" && cx.iteration == 2 {
                if nacks { cx.signals.nack("two are enough")? } else { cx.signals.ack()? }
            }
            Ok(())
        });
        let model = model().always(calls([call("", "t", json!({}))]));
        let agent = agent(&model)
            .tool(tool("t"))
            .engine(|engine| engine.middleware(enough))
            .build()
            .unwrap();
        let run = agent.run("Go", RunOptions::default());
        let log = EventRecorder::new();
        run.on("*", log.listener()).unwrap();
        let outcome = in_time(run).await;
        assert_ended(&log, &outcome);
        assert_eq!((outcome.end_reason, outcome.iterations), (stopped, 2));
        assert_eq!(model.requests().len(), 2);
        // Its last text is the answer.
        assert_eq!(outcome.answer.as_deref(), (!nacks).then_some("One moment."));
        let error = outcome.error.map(|error| (error.code, error.message));
        assert_eq!(error, nacks.then(|| ("turn_failed", "two are enough".to_owned())));
    }
}

#[tokio::test]
async fn a_middleware_that_fails_fails_the_run_and_is_named() {
    let fails = After(|place, _: TurnContext<'_>| match place {
        "turn" => Err("the ledger is closed".into()),
        _ => Ok(()),
    });
    let model = model().always(says("Hello."));
    let agent = agent(&model).engine(|engine| engine.middleware(fails)).build().unwrap();
    let outcome = agent.run("Go", RunOptions::default()).await;
    assert_eq!(outcome.end_reason, EndReason::Failed);
    let error = outcome.error.unwrap();
    assert_eq!(error.code, "middleware_failed");
    assert_eq!(error.component.as_deref(), Some("middleware `after`"));
    assert_eq!(error.message, "middleware `after` failed after the turn: the ledger is closed");
    assert_eq!(outcome.messages.len(), 2, "what was said is kept");
}

#[tokio::test]
async fn the_end_of_a_turn_follows_its_wrap_up() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let places = Arc::clone(&seen);
    let notes = After(move |place, cx: TurnContext<'_>| {
        places.lock().unwrap().push((place, cx.iteration));
        Ok(())
    });
    let asked = Arc::clone(&seen);
    let model = model().always_with(move |_| {
        asked.lock().unwrap().push(("model", 0));
        calls([ToolCall::new("", "t", json!({}))])
    });
    let agent = agent(&model)
        .tool(tool("t"))
        .max_iterations(1)
        .engine(|engine| engine.middleware(notes))
        .build()
        .unwrap();
    assert_eq!(agent.run("Go", RunOptions::default()).await.end_reason, EndReason::MaxIterations);
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [("model", 0), ("iteration", 1), ("model", 0), ("turn", 1)]);
}
