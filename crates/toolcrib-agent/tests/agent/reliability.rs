//! Failed models and sources over whole runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{Instant, advance};
use toolcrib_agent::{Agent, AgentError, EndReason, RunOptions, RunOutcome};
use toolcrib_core::{
    BreakerConfig, ModelError, ModelErrorClass, ModelResponse, ReliabilityAction, ReliabilityRule,
    Retry, Stage, ToolChoice, Usage, static_tools,
};
use toolcrib_engine::RetryBudget;
use toolcrib_testing::{
    Answer, EventRecorder, Fault, TestModel, assert_replayable, faulty, in_time, model,
};

use crate::support::{USAGE, agent, assert_ended, call, calls, says, tool};

fn retry(attempts: u32) -> ReliabilityRule {
    ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(attempts)))
}

fn other() -> ReliabilityRule {
    ReliabilityRule::new(ReliabilityAction::RetryOther)
}

fn fails(class: ModelErrorClass) -> Answer {
    Answer::text("").fails(class, "no").usage(USAGE)
}

fn overloaded() -> Answer {
    fails(ModelErrorClass::Overloaded)
}

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

fn moves(log: &EventRecorder) -> Vec<String> {
    let told = log.json_of("reliability.retried");
    told.iter().map(|e| format!("{} {} {}", e["then"], e["provider"], e["to"])).collect()
}

fn why(outcome: &RunOutcome) -> (&str, Option<&str>, Option<u32>) {
    let error = outcome.error.as_ref().unwrap();
    (error.code, error.kind.as_deref(), error.attempts)
}

fn text(log: &EventRecorder) -> String {
    let told = log.json_of("model.text");
    told.iter().map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

/// W1: rules apply to discovery too, and the run's error shows the outcome.
#[tokio::test(start_paused = true)]
async fn a_hub_that_is_down_for_a_moment_does_not_end_a_run() {
    let down = || Fault::Error("hub unreachable".into());
    let hub = faulty(static_tools([tool("t")])).then(down()).then(down());
    let rule = retry(9)
        .stage(Stage::Discover)
        .when(|state| state.message.contains("hub unreachable") && state.attempt < 3)
        .kind("discovery-transient");
    let agent = |hub: &toolcrib_testing::FaultyProvider| {
        agent(&model().always(says("Done.")))
            .provider(hub.provider())
            .reliability([rule.clone()])
            .build()
            .unwrap()
    };
    let (outcome, log) = run(&agent(&hub), RunOptions::default()).await;
    assert_eq!(outcome.end_reason, EndReason::Answered);
    log.assert_order(["tools.discovery_failed", "reliability.retried", "reliability.recovered"]);

    let hub = faulty(static_tools([tool("t")])).always(down());
    let (outcome, _) = run(&agent(&hub), RunOptions::default()).await;
    assert_eq!(hub.listings(), 3);
    assert_eq!(why(&outcome), ("discovery_failed", Some("discovery-transient"), Some(3)));
    let error = json!(outcome.error);
    assert_eq!(
        error,
        json!({
            "code": "discovery_failed",
            "message": "the tools of this step could not be listed: provider `faulty > \
                static`: hub unreachable (given up after 3 attempts by reliability rule 1: discovery-transient \
                (retries_exhausted))",
            "source": "faulty > static",
            "kind": "discovery-transient",
            "attempts": 3,
        })
    );
}

/// Case 49 and W4: given `retry other` with two models, the second is really called and the event
/// shows it. The run keeps it, and the next starts with the first again.
#[tokio::test(start_paused = true)]
async fn retry_other_really_asks_the_next_model_and_stays_with_it() {
    let first = model().named("first").then(overloaded()).always(says("From the first."));
    let second = model()
        .named("second")
        .then(calls([call("a", "t", json!({}))]))
        .always(says("From the second."));
    let agent = agent(&first)
        .fallback_model(second.clone())
        .tool(tool("t"))
        .reliability([other().error_class("overloaded")])
        .build()
        .unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("From the second."));
    assert_eq!(moves(&log), [r#""retry_other" "first" "second""#]);
    let asked: Vec<_> = log.json_of("model.start").iter().map(|e| e["model"].clone()).collect();
    assert_eq!(asked, ["first", "second", "second"]);
    assert_eq!(log.json_of("reliability.recovered")[0]["via"], "retry_other");

    let (outcome, _) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("From the first."));
}

#[tokio::test(start_paused = true)]
async fn each_model_is_asked_once_by_retry_other_and_then_there_is_no_other() {
    let models = ["a", "b", "c"].map(|name| model().named(name).always(overloaded()));
    let [a, b, c] = &models;
    let agent = agent(a)
        .fallback_model(b.clone())
        .fallback_model(c.clone())
        .reliability([other()])
        .build()
        .unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(models.map(|model| model.requests().len()), [1, 1, 1]);
    assert_eq!(moves(&log).len(), 2);
    assert_eq!(why(&outcome), ("model_failed", Some("no_other"), Some(3)));
}

/// Case 51 and W6: given a fallback that fails, rules see the fallback's error, and the first model
/// gets no further request.
#[tokio::test(start_paused = true)]
async fn a_fallback_that_fails_is_put_to_the_rules() {
    let first = model().named("first").always(overloaded());
    let small = model().named("small").always(fails(ModelErrorClass::Auth));
    let agent = agent(&first)
        .fallback_model(small.clone())
        .reliability([
            ReliabilityRule::new(ReliabilityAction::FailFast).error_class("auth").kind("no-key"),
            ReliabilityRule::new(ReliabilityAction::fallback_model("small")),
        ])
        .build()
        .unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(why(&outcome), ("model_failed", Some("no-key"), Some(2)));
    assert_eq!(outcome.error.unwrap().component.as_deref(), Some("small"));
    assert_eq!((first.requests().len(), small.requests().len()), (1, 1));
    assert_eq!(moves(&log), [r#""fallback" "first" "small""#]);
}

#[tokio::test(start_paused = true)]
async fn a_fallback_in_code_answers_and_its_error_is_put_to_the_rules() {
    let down = model().always(overloaded());
    let answers = ReliabilityAction::fallback_answer(|request, error: &ModelError| {
        let text =
            format!("Sorry ({}, {} messages).", error.class.as_str(), request.messages.len());
        async move { Ok(ModelResponse { text, ..ModelResponse::default() }) }
    });
    let sorry = agent(&down).reliability([ReliabilityRule::new(answers)]).build().unwrap();
    let (outcome, log) = run(&sorry, RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("Sorry (overloaded, 1 messages)."));
    assert_eq!(text(&log), "Sorry (overloaded, 1 messages).", "it is shown like any answer");

    let panics = ReliabilityAction::fallback_answer(|_, _: &ModelError| async { panic!("bug") });
    let classes: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&classes);
    let watch = ReliabilityRule::new(ReliabilityAction::Continue).when(move |state| {
        seen.lock().unwrap().push(format!("{} {}", state.provider, state.error_class));
        true
    });
    let broken = agent(&down).reliability([watch, ReliabilityRule::new(panics)]).build().unwrap();
    let (outcome, _) = run(&broken, RunOptions::default()).await;
    assert_eq!(why(&outcome), ("model_failed", Some("retries_exhausted"), Some(2)));
    assert_eq!(*classes.lock().unwrap(), ["test:model overloaded", "answer incomplete"]);
}

#[test]
fn a_fallback_on_a_model_that_is_not_there_fails_the_build() {
    let model = model().named("first").always(says("Hi."));
    let rule = ReliabilityRule::new(ReliabilityAction::fallback_model("secnd"));
    let error = agent(&model).reliability([rule]).build().unwrap_err();
    assert!(matches!(error, AgentError::UnknownFallback { .. }));
    assert_eq!(
        error.to_string(),
        "a reliability rule uses the fallback model `secnd`, which the agent does not have; it has \
         `first`; add it with `.fallback_model(..)`"
    );
}

/// W7: a complete but unusable response is requested again although the model streams, and its text
/// is removed.
#[tokio::test(start_paused = true)]
async fn a_useless_answer_is_asked_for_again_though_it_was_streamed() {
    let model = model()
        .then(says("I would rather talk."))
        .then(calls([call("a", "t", json!({}))]))
        .always(says("Done."));
    let rule = retry(2).when(|state| state.validation_error.is_some());
    let agent = agent(&model).tool(tool("t")).reliability([rule]).build().unwrap();
    let options = RunOptions::default().tool_choices([ToolChoice::Required]);
    let (outcome, log) = run(&agent, options).await;
    assert_eq!((outcome.answer.as_deref(), outcome.tool_calls.len()), (Some("Done."), 1));
    log.assert_order(["model.text", "model.end", "model.superseded", "model.start", "model.text"]);
    log.assert_count("model.superseded", 1);
    assert_eq!(outcome.usage.input_tokens, 3 * USAGE.input_tokens, "it is paid for all the same");
    let said: Vec<_> = outcome.messages.iter().map(|message| json!(message)).collect();
    assert!(!json!(said).to_string().contains("rather talk"), "it is no part of the history");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_broke_off_after_it_was_shown_is_not_asked_for_again() {
    let broken = || says("It is on its").fails(ModelErrorClass::Incomplete, "cut");
    let first = model().named("first").always(broken());
    let agent = agent(&first)
        .fallback_model(model().named("second").always(says("Twice.")))
        .reliability([retry(3), other()])
        .build()
        .unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(why(&outcome), ("model_failed", Some("mid_stream"), Some(1)));
    assert_eq!((first.requests().len(), text(&log).as_str()), (1, "It is on its"));

    // No text was shown: reasoning is not part of an answer.
    let model = model()
        .then(Answer::text("").reasoning("Hm").fails(ModelErrorClass::Incomplete, "cut"))
        .always(says("Done."));
    let agent = crate::support::agent(&model).reliability([retry(3)]).build().unwrap();
    assert_eq!(run(&agent, RunOptions::default()).await.0.answer.as_deref(), Some("Done."));
}

#[tokio::test(start_paused = true)]
async fn ok_accepts_a_partial_answer_and_needs_one() {
    let accept = || [ReliabilityRule::new(ReliabilityAction::Ok)];
    let cut = model().always(says("It is on its").fails(ModelErrorClass::Incomplete, "cut"));
    let (outcome, log) =
        run(&agent(&cut).reliability(accept()).build().unwrap(), RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("It is on its"));
    assert_eq!(log.json_of("reliability.recovered")[0]["via"], "ok");

    let silent = model().always(overloaded());
    let (outcome, _) =
        run(&agent(&silent).reliability(accept()).build().unwrap(), RunOptions::default()).await;
    assert_eq!(why(&outcome), ("model_failed", Some("nothing_to_accept"), Some(1)));

    // Also a complete answer that ignores the tool choice.
    let talks = model().always(says("I would rather talk."));
    let agent = agent(&talks).tool(tool("t")).reliability(accept()).build().unwrap();
    let options = RunOptions::default().tool_choices([ToolChoice::Required]);
    let (outcome, _) = run(&agent, options).await;
    assert_eq!(outcome.answer.as_deref(), Some("I would rather talk."));
}

fn guarded(model: &TestModel, rules: impl IntoIterator<Item = ReliabilityRule>) -> Agent {
    let config = BreakerConfig { failures: 2, open_for: Duration::from_secs(20) };
    agent(model)
        .reliability(rules)
        .engine(|engine| engine.breaker(Stage::Model, config))
        .build()
        .unwrap()
}

/// Case 50 and W5: a breaker's state outlives a run, and a retry that waits until it half-opens
/// reaches the model within the same answer.
#[tokio::test(start_paused = true)]
async fn a_breaker_outlives_runs_and_a_patient_retry_outlasts_it() {
    let down = model().then(overloaded()).then(overloaded()).always(says("Back."));
    let agent = guarded(&down, []);
    for _ in 0..2 {
        run(&agent, RunOptions::default()).await;
    }
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    let error = outcome.error.unwrap();
    assert_eq!((error.class, down.requests().len()), (Some(ModelErrorClass::BreakerOpen), 2));
    log.assert_none("model.start");
    advance(Duration::from_secs(20)).await;
    assert_eq!(run(&agent, RunOptions::default()).await.0.answer.as_deref(), Some("Back."));

    let down = model().then(overloaded()).then(overloaded()).always(says("Back."));
    let patient = Retry { attempts: 4, base: Duration::ZERO, cap: Duration::from_secs(60) };
    let agent = guarded(&down, [ReliabilityRule::new(ReliabilityAction::Retry(patient))]);
    let began = Instant::now();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("Back."));
    assert_eq!((began.elapsed().as_secs(), down.requests().len()), (20, 3));
    assert_eq!(log.json_of("reliability.recovered")[0]["attempts"], 4);
    log.assert_order(["breaker.changed", "breaker.changed", "breaker.changed"]);
}

#[tokio::test(start_paused = true)]
async fn retries_of_all_runs_share_one_budget() {
    let down = model().always(overloaded());
    let quick = Retry { base: Duration::ZERO, ..Retry::attempts(2) };
    let budget = RetryBudget { share: 0.0, per_second: 0.0, burst: 3 };
    let agent = agent(&down)
        .reliability([ReliabilityRule::new(ReliabilityAction::Retry(quick)).kind("transient")])
        .engine(|engine| engine.retry_budget(budget))
        .build()
        .unwrap();
    for _ in 0..10 {
        let (outcome, _) = run(&agent, RunOptions::default()).await;
        assert_eq!(why(&outcome).1, Some("transient"));
    }
    assert_eq!(down.requests().len(), 10 + 3);
}

#[tokio::test(start_paused = true)]
async fn rules_see_tokens_and_cost_of_the_run() {
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let states = Arc::clone(&seen);
    let watch = ReliabilityRule::new(ReliabilityAction::Continue).when(move |state| {
        states.lock().unwrap().push(json!([state.tokens, state.cost_usd]));
        true
    });
    let model = model().then(calls([call("a", "t", json!({}))])).then(fails(ModelErrorClass::Auth));
    let agent = agent(&model).tool(tool("t")).reliability([watch]).build().unwrap();
    let (outcome, _) = run(&agent, RunOptions::default()).await;
    // No rule applied: the error is the model's own.
    assert_eq!(why(&outcome), ("model_failed", None, None));
    let Usage { input_tokens, output_tokens, cost_usd, .. } = USAGE;
    assert_eq!(*seen.lock().unwrap(), [json!([input_tokens + output_tokens, cost_usd])]);
}

/// W19: a discovery that ends itself is reported as cancelled, and not as a model's failure.
#[tokio::test(start_paused = true)]
async fn a_failure_names_its_stage() {
    let hub = faulty(static_tools([tool("t")])).always(Fault::Error("aborted".into()));
    let agent = agent(&model().always(says("Done.")))
        .provider(hub.provider())
        .reliability([ReliabilityRule::new(ReliabilityAction::FailFast).kind("mine")])
        .build()
        .unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(why(&outcome), ("discovery_failed", Some("mine"), Some(1)));
    assert_eq!(log.json_of("reliability.fail_fast")[0]["stage"], "discover");
    log.assert_none("model.*");
}

/// W11: a tool has a separate deadline, retry and breaker, and the model reads one result.
#[tokio::test(start_paused = true)]
async fn a_reading_tool_that_fails_once_is_read_once_more_and_the_model_sees_one_result() {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let flaky = crate::support::builder("t")
        .read_only()
        .handler(move |_: Value, _: toolcrib_core::ToolContext| {
            let first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            async move { if first { Err(toolcrib_core::err("busy")) } else { Ok("read") } }
        })
        .unwrap();
    let model = model().then(calls([call("a", "t", json!({}))])).always(says("Done."));
    let agent =
        agent(&model).tool(flaky).reliability([retry(2).stage(Stage::Tool)]).build().unwrap();
    let (outcome, log) = run(&agent, RunOptions::default()).await;
    assert_eq!(outcome.tool_calls.iter().map(|call| &*call.value).collect::<Vec<_>>(), ["read"]);
    log.assert_order(["tool.start", "reliability.retried", "reliability.recovered", "tool.end"]);
    log.assert_count("tool.end", 1);
}
