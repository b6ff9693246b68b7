//! Failed requests of models without a rule: the failures that are retried, the number of attempts, and the
//! failures that end a run at once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::stream;
use serde_json::json;
use tokio::time::Instant;
use toolcrib_agent::{Agent, EndReason, RunOptions, RunOutcome};
use toolcrib_core::{
    CancellationToken, Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
    ModelStream, ReliabilityAction, ReliabilityRule, Retry, Stage, ToolChoice,
};
use toolcrib_engine::{RetryBudget, TurnOptions};
use toolcrib_testing::{Answer, EventRecorder, TestModel, in_time, model};

use crate::support::{agent, call, calls, says, tool};

/// Responds with these errors, then with a text.
struct Refusing {
    errors: Mutex<VecDeque<ModelError>>,
    requests: Mutex<Vec<Instant>>,
}

impl Refusing {
    fn with(errors: impl IntoIterator<Item = ModelError>) -> Arc<Self> {
        let errors = Mutex::new(errors.into_iter().collect());
        Arc::new(Self { errors, requests: Mutex::default() })
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    fn agent(self: &Arc<Self>) -> toolcrib_agent::AgentBuilder {
        Agent::builder().model(Arc::clone(self) as Arc<dyn Model>)
    }
}

impl Model for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn respond(self: Arc<Self>, _: ModelRequest) -> ModelStream {
        self.requests.lock().unwrap().push(Instant::now());
        let answer = match self.errors.lock().unwrap().pop_front() {
            Some(error) => Err(error),
            None => {
                Ok(ModelChunk::Done(ModelResponse { text: "Here.".into(), ..Default::default() }))
            }
        };
        Box::pin(stream::iter([answer]))
    }
}

fn refusal(class: ModelErrorClass, status: Option<u16>, wait: Option<Duration>) -> ModelError {
    let mut error = ModelError::new(class, "no");
    (error.status, error.retry_after) = (status, wait);
    error
}

fn busy() -> ModelError {
    refusal(ModelErrorClass::Overloaded, Some(503), None)
}

async fn run(agent: &Agent) -> (RunOutcome, EventRecorder) {
    let run = agent.run("Go", RunOptions::default());
    let log = EventRecorder::new();
    run.on("*", log.listener()).unwrap();
    (run.await, log)
}

fn class(outcome: &RunOutcome) -> Option<ModelErrorClass> {
    outcome.error.as_ref().and_then(|error| error.class)
}

#[tokio::test(start_paused = true)]
async fn failures_that_pass_get_two_more_attempts_and_others_none() {
    use ModelErrorClass as Class;
    let retried = [
        (Class::Overloaded, Some(408)),
        (Class::RateLimit, Some(429)),
        (Class::Server, Some(500)),
        (Class::Overloaded, Some(502)),
        (Class::Overloaded, Some(503)),
        (Class::Overloaded, Some(504)),
        (Class::Overloaded, Some(529)),
        (Class::Network, None),
        (Class::Overloaded, None),
    ];
    let final_ones = [
        (Class::Quota, Some(429)),
        (Class::Quota, None),
        (Class::Overloaded, Some(409)),
        (Class::Server, Some(501)),
        (Class::BadRequest, Some(400)),
        (Class::Auth, Some(401)),
        (Class::ContextOverflow, Some(500)),
        (Class::ContentFilter, None),
        (Class::Incomplete, None),
        (Class::Protocol, None),
        (Class::Timeout, None),
    ];
    let all = retried.iter().map(|one| (one, 3)).chain(final_ones.iter().map(|one| (one, 1)));
    for ((class, status), attempts) in all {
        let model = Refusing::with((0..3).map(|_| refusal(*class, *status, None)));
        let (outcome, _) = run(&model.agent().build().unwrap()).await;
        assert_eq!(self::class(&outcome), Some(*class));
        assert_eq!(model.requests(), attempts, "{class:?} {status:?}");
        // The third attempt may succeed.
        let model = Refusing::with((0..2).map(|_| refusal(*class, *status, None)));
        let (outcome, log) = run(&model.agent().build().unwrap()).await;
        assert_eq!(outcome.answer.is_some(), attempts == 3, "{class:?} {status:?}");
        assert_eq!(log.json_of("reliability.retried").len(), attempts - 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_requested_wait_is_kept_and_one_above_the_cap_ends_the_turn() {
    let wait = |seconds| {
        refusal(ModelErrorClass::RateLimit, Some(429), Some(Duration::from_secs(seconds)))
    };
    let model = Refusing::with([wait(20), wait(60)]);
    let began = Instant::now();
    let (outcome, log) = run(&model.agent().build().unwrap()).await;
    assert_eq!(outcome.answer.as_deref(), Some("Here."));
    assert_eq!(began.elapsed().as_secs(), 80);
    let waits = log.json_of("reliability.retried");
    assert_eq!((&waits[0]["wait_ms"], &waits[1]["wait_ms"]), (&json!(20_000), &json!(60_000)));
    assert_eq!(
        (&waits[0]["error_class"], &waits[0]["rule"]),
        (&json!("rate_limit"), &json!("the default rule"))
    );

    let model = Refusing::with([wait(61)]);
    let began = Instant::now();
    let (outcome, _) = run(&model.agent().build().unwrap()).await;
    let error = outcome.error.unwrap();
    assert_eq!((model.requests(), began.elapsed()), (1, Duration::ZERO));
    assert_eq!(error.retry_after, Some(Duration::from_secs(61)));
    assert!(error.message.contains("it can be asked again in 1m 1s, at 2"), "{error}");
    assert_eq!(error.kind.as_deref(), Some("wait_too_long"));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_the_turn_and_at_its_cancellation() {
    let limited = || refusal(ModelErrorClass::RateLimit, Some(429), Some(Duration::from_secs(50)));
    let model = Refusing::with([limited()]);
    let cancel = CancellationToken::new();
    let agent = model.agent().build().unwrap();
    let waiting = agent.run("Go", TurnOptions::default().cancellation(cancel.clone()));
    waiting.on("reliability.retried", move |_| cancel.cancel()).unwrap();
    let log = EventRecorder::new();
    waiting.on("*", log.listener()).unwrap();
    let began = Instant::now();
    let outcome = waiting.await;
    assert_eq!((outcome.end_reason, began.elapsed()), (EndReason::Cancelled, Duration::ZERO));
    assert_eq!(log.names().last(), Some(&"agent.turn_end"));

    let model = Refusing::with([limited()]);
    let agent = model.agent().turn_timeout(Duration::from_secs(5)).build().unwrap();
    let (outcome, _) = run(&agent).await;
    assert_eq!((outcome.end_reason, began.elapsed().as_secs()), (EndReason::Timeout, 5));
    assert_eq!(model.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn retries_without_a_rule_use_the_retry_budget() {
    let budget = RetryBudget { share: 0.0, per_second: 0.0, burst: 3 };
    let model = Refusing::with((0..100).map(|_| busy()));
    let agent = model.agent().engine(|engine| engine.retry_budget(budget)).build().unwrap();
    for _ in 0..5 {
        run(&agent).await;
    }
    assert_eq!(model.requests(), 5 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_rule_replaces_the_default_for_the_failures_that_it_matches() {
    let quick = |attempts| {
        ReliabilityAction::Retry(Retry { base: Duration::ZERO, ..Retry::attempts(attempts) })
    };
    let limited = || refusal(ModelErrorClass::RateLimit, Some(429), None);
    let of_limits = |then| ReliabilityRule::new(then).error_class("rate_limit");
    let mut below = of_limits(quick(9));
    below.when.attempt_below = Some(2);
    let in_code = of_limits(quick(9)).when(|state| state.attempt < 2);
    let continues = of_limits(ReliabilityAction::Continue);
    let other_stage = ReliabilityRule::new(ReliabilityAction::FailFast).stage(Stage::Tool);
    let cases = [
        (of_limits(ReliabilityAction::FailFast), 1, 3),
        (of_limits(quick(2)), 2, 3),
        (of_limits(quick(5)), 5, 3),
        (below, 2, 3),
        (in_code, 2, 3),
        (continues, 3, 3),
        (other_stage, 3, 3),
        (ReliabilityRule::new(ReliabilityAction::FailFast).stage(Stage::Model), 1, 1),
    ];
    for (rule, of_limits, of_others) in cases {
        let attempts = async |error: &dyn Fn() -> ModelError| {
            let model = Refusing::with((0..9).map(|_| error()));
            let agent = model.agent().reliability([rule.clone()]).build().unwrap();
            run(&agent).await;
            model.requests()
        };
        assert_eq!(attempts(&limited).await, of_limits, "{rule:?}");
        assert_eq!(attempts(&busy).await, of_others, "{rule:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_begun_is_not_requested_again() {
    for class in [ModelErrorClass::Overloaded, ModelErrorClass::Network] {
        let model = model().then(Answer::text("We").fails(class, "no")).always(says("Again."));
        let (outcome, log) = run(&agent(&model).build().unwrap()).await;
        assert_eq!((self::class(&outcome), model.requests().len()), (Some(class), 1));
        log.assert_none("model.superseded");
    }
}

fn empty_ones() -> [Answer; 4] {
    [
        Answer::text(""),
        Answer::text(" \n\t"),
        Answer::text("").reasoning("It is four."),
        Answer::text("").stops(toolcrib_core::StopReason::MaxTokens),
    ]
}

/// K6 in the library.
#[tokio::test(start_paused = true)]
async fn an_empty_answer_is_requested_again_and_is_an_error_at_last() {
    for empty in empty_ones() {
        let model = model().then(empty.clone()).then(empty.clone()).always(says("Here."));
        let (outcome, _) = run(&agent(&model).build().unwrap()).await;
        assert_eq!(outcome.answer.as_deref(), Some("Here."));

        let model = toolcrib_testing::model().always(empty);
        let (outcome, _) = run(&agent(&model).build().unwrap()).await;
        assert_eq!((outcome.end_reason, outcome.answer.as_deref()), (EndReason::Failed, None));
        assert_eq!(class(&outcome), Some(ModelErrorClass::EmptyAnswer));
        assert_eq!(model.requests().len(), 3);
        // Nothing of it is in the history.
        assert_eq!(outcome.messages.len(), 1);
    }
}

fn fails_fast(model: &TestModel) -> toolcrib_agent::AgentBuilder {
    let rule = ReliabilityRule::new(ReliabilityAction::FailFast).stage(Stage::Model);
    agent(model).tool(tool("t")).reliability([rule])
}

#[tokio::test(start_paused = true)]
async fn an_empty_answer_names_the_calls_before_it() {
    let model = model()
        .then(calls([call("a", "t", json!({})), call("b", "t", json!({}))]))
        .then(calls([call("c", "missing", json!({}))]))
        .then(says(" "));
    let (outcome, _) = run(&fails_fast(&model).build().unwrap()).await;
    let message = outcome.error.unwrap().message;
    assert!(
        message.ends_with("; calls before it: `t` (2 calls), `missing` (1 call, 1 failed)"),
        "{message}"
    );
    assert_eq!(outcome.tool_calls.len(), 3);
}

/// The wrap-up's text is the answer; calls that it may not make are none.
#[tokio::test(start_paused = true)]
async fn a_wrap_up_of_nothing_but_calls_is_an_empty_answer() {
    let model = model().always(Answer::calls([call("a", "t", json!({}))]));
    let agent = fails_fast(&model).max_iterations(1).build().unwrap();
    let (outcome, _) = run(&agent).await;
    assert_eq!(class(&outcome), Some(ModelErrorClass::EmptyAnswer));
    assert!(outcome.error.unwrap().message.contains("only calls, which were not allowed"));

    let mut options = RunOptions::default();
    options.tool_choices = vec![ToolChoice::None];
    let outcome = in_time(agent.run("Go", options)).await;
    assert_eq!(class(&outcome), Some(ModelErrorClass::EmptyAnswer));
}

/// A rule that accepts what there is has nothing to accept.
#[tokio::test(start_paused = true)]
async fn no_rule_accepts_an_empty_answer() {
    let model = model().always(says(" "));
    let rule = ReliabilityRule::new(ReliabilityAction::Ok);
    let (outcome, _) = run(&agent(&model).reliability([rule]).build().unwrap()).await;
    assert_eq!(class(&outcome), Some(ModelErrorClass::EmptyAnswer));
    assert_eq!(outcome.error.unwrap().kind.as_deref(), Some("nothing_to_accept"));

    let cut = Answer::text(" ").fails(ModelErrorClass::Incomplete, "no");
    let model = toolcrib_testing::model().always(cut);
    let rule = ReliabilityRule::new(ReliabilityAction::Ok);
    let (outcome, _) = run(&agent(&model).reliability([rule]).build().unwrap()).await;
    assert_eq!(class(&outcome), Some(ModelErrorClass::Incomplete), "white space is no answer");
}
