//! Your own loop's handling of failed models, with a turn's recovery.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use toolcrib_core::{
    BreakerConfig, BreakerOpenError, CancellationToken, DiscoveryError, DiscoveryErrorClass,
    Fallback, ModelError, ModelErrorClass, ReliabilityAction, ReliabilityRule, Retry, Stage,
    static_tools,
};
use toolcrib_engine::{
    Attempts, Engine, EngineBuilder, ExhaustedReason, FailedAttempt, Health, RecoveryStep,
    RetryBudget, RetryExhausted, Turn, TurnOptions,
};

use crate::support::{Log, engine, in_time};

fn rule(then: ReliabilityAction) -> ReliabilityRule {
    ReliabilityRule::new(then)
}

fn at_once(attempts: u32) -> ReliabilityAction {
    ReliabilityAction::Retry(Retry { attempts, base: Duration::ZERO, ..Retry::default() })
}

fn with(rules: impl IntoIterator<Item = ReliabilityRule>) -> EngineBuilder {
    let budget = RetryBudget { burst: 1000, ..RetryBudget::default() };
    engine().reliability(rules).retry_budget(budget)
}

/// A turn, and attempts at the models `a`, `b` and `c`.
fn begun(engine: &Engine) -> (Turn, Attempts) {
    let turn = engine.turn(TurnOptions::default()).unwrap();
    let names = ["a", "b", "c"].map(Arc::<str>::from);
    let attempts = turn.recovery().attempts(Stage::Model, names);
    (turn, attempts)
}

fn down() -> ModelError {
    ModelError::new(ModelErrorClass::Network, "down")
}

/// One attempt that fails, and what is done then.
async fn fails(attempts: &mut Attempts) -> RecoveryStep {
    attempts.begin().unwrap();
    in_time(attempts.failed(&FailedAttempt::of_model(&down()))).await
}

async fn gives_up(attempts: &mut Attempts) -> RetryExhausted {
    match fails(attempts).await {
        RecoveryStep::RetryExhausted(exhausted) => exhausted,
        other => panic!("{other:?}"),
    }
}

/// As [`RecoveryStep`] prints.
async fn steps(attempts: &mut Attempts, count: usize) -> Vec<String> {
    let mut steps = Vec::new();
    for _ in 0..count {
        steps.push(match fails(attempts).await {
            RecoveryStep::RetryExhausted(exhausted) => exhausted.code.to_string(),
            step => format!("{step:?}"),
        });
    }
    steps
}

#[tokio::test(start_paused = true)]
async fn every_other_model_is_asked_once_round_the_end() {
    let engine = with([rule(ReliabilityAction::RetryOther)]).build().unwrap();
    let (_turn, attempts) = begun(&engine);
    let mut attempts = attempts.beginning_with(1);
    assert_eq!((attempts.choice(), attempts.attempts()), (Some(1), 0));
    assert_eq!(steps(&mut attempts, 3).await, ["Other(2)", "Other(0)", "no_other"]);
    assert_eq!((attempts.choice(), attempts.attempts()), (Some(0), 3));
    let (_turn, mut from_the_first) = begun(&engine);
    assert_eq!(steps(&mut from_the_first, 3).await, ["Other(1)", "Other(2)", "no_other"]);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_takes_the_place_of_another_is_asked_once() {
    let engine = with([rule(ReliabilityAction::fallback_model("c"))]).build().unwrap();
    let (_turn, mut attempts) = begun(&engine);
    assert_eq!(steps(&mut attempts, 2).await, ["Other(2)", "retries_exhausted"]);
    let (_turn, attempts) = begun(&engine);
    assert_eq!(steps(&mut attempts.beginning_with(2), 1).await, ["no_other"], "it is that one");
    let engine = with([rule(ReliabilityAction::fallback_model("elsewhere"))]).build().unwrap();
    assert_eq!(steps(&mut begun(&engine).1, 1).await, ["no_other"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_place_of_a_model_is_none_of_the_models_and_is_not_repeated() {
    let answer = || ReliabilityAction::fallback_answer(|_, _| async { Err(down()) });
    let engine = with([rule(answer()), rule(at_once(9))]).build().unwrap();
    let log = Log::of(engine.events());
    let (_turn, mut attempts) = begun(&engine);
    let step = fails(&mut attempts).await;
    assert!(matches!(step, RecoveryStep::Fallback(Fallback::Answer(_))), "{step:?}");
    assert_eq!(attempts.choice(), None);
    let exhausted = gives_up(&mut attempts).await;
    assert_eq!(
        (exhausted.code, &*exhausted.provider),
        (ExhaustedReason::RetriesExhausted, "answer")
    );
    assert_eq!(log.of_name("reliability.retried")[0]["to"], "answer");
    // Another model may still be asked, from where the models were left.
    let engine = with([rule(answer()), rule(ReliabilityAction::RetryOther)]).build().unwrap();
    let (_turn, attempts) = begun(&engine);
    let mut attempts = attempts.beginning_with(1);
    assert_eq!(
        steps(&mut attempts, 4).await,
        ["Fallback(Answer(..))", "Other(2)", "Other(0)", "retries_exhausted"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_can_do_nothing_at_a_stage_is_not_about_it() {
    let engine = with([rule(ReliabilityAction::fallback_provider(static_tools([])))]);
    let engine = engine.build().unwrap();
    let by_default = steps(&mut begun(&engine).1, 3).await;
    assert_eq!(by_default, ["Retry", "Retry", "retries_exhausted"]);
    let engine = with([rule(ReliabilityAction::RetryOther)]).build().unwrap();
    let turn = engine.turn(TurnOptions::default()).unwrap();
    let names = ["a"].map(Arc::<str>::from);
    let mut of_tool = turn.recovery().attempts(Stage::Tool, names);
    assert_eq!(steps(&mut of_tool, 1).await, ["Failed"]);
}

#[tokio::test(start_paused = true)]
async fn however_many_attempts_are_allowed_there_are_no_more_than_fifty() {
    let engine = with([rule(at_once(1000))]).build().unwrap();
    let (_turn, mut attempts) = begun(&engine);
    let steps = steps(&mut attempts, 50).await;
    assert!(steps[..49].iter().all(|step| step == "Retry"), "{steps:?}");
    assert_eq!(steps[49], "retries_exhausted");
}

#[tokio::test(start_paused = true)]
async fn an_unrepeatable_failure_is_not_retried_and_a_partial_result_can_be_accepted() {
    let engine = with([rule(at_once(9))]).build().unwrap();
    let error = down();
    let mut failure = FailedAttempt::of_model(&error);
    failure.unrepeatable = Some(ExhaustedReason::MidStream);
    let (_turn, mut attempts) = begun(&engine);
    attempts.begin().unwrap();
    let RecoveryStep::RetryExhausted(exhausted) = attempts.failed(&failure).await else {
        panic!("again")
    };
    assert_eq!(exhausted.code, ExhaustedReason::MidStream);
    assert_eq!(exhausted.to_string(), "given up after 1 attempt by reliability rule 1: mid_stream");

    let engine = with([rule(ReliabilityAction::Continue)]).build().unwrap();
    let (_turn, mut attempts) = begun(&engine);
    attempts.begin().unwrap();
    let error = ModelError::new(ModelErrorClass::Auth, "no key");
    let refused = FailedAttempt::of_model(&error);
    assert!(matches!(attempts.failed(&refused).await, RecoveryStep::Failed), "no rule is about it");

    let engine =
        with([rule(ReliabilityAction::Ok).kind("enough"), rule(at_once(2))]).build().unwrap();
    let log = Log::of(engine.events());
    let (_turn, attempts) = begun(&engine);
    let mut attempts = attempts.in_iteration(Some(7));
    assert_eq!(steps(&mut attempts, 1).await, ["Retry"]);
    let exhausted = gives_up(&mut attempts).await;
    assert_eq!(
        exhausted.to_string(),
        "given up after 2 attempts by reliability rule 1: enough (nothing_to_accept)"
    );
    failure.unrepeatable = None;
    failure.acceptable = true;
    attempts.begin().unwrap();
    assert!(matches!(attempts.failed(&failure).await, RecoveryStep::Accept));
    let recovered = log.events();
    let recovered = recovered.last().unwrap();
    assert_eq!(recovered.kind.name(), "reliability.recovered");
    assert_eq!(recovered.iteration, Some(7));
}

#[tokio::test(start_paused = true)]
async fn what_was_tried_again_and_succeeds_has_recovered() {
    let engine = with([rule(at_once(2))]).build().unwrap();
    let log = Log::of(engine.events());
    let (_turn, mut attempts) = begun(&engine);
    fails(&mut attempts).await;
    attempts.begin().unwrap();
    attempts.succeeded();
    let [recovered] = &log.of_name("reliability.recovered")[..] else { panic!("once") };
    assert_eq!((&recovered["via"], &recovered["attempts"]), (&"retry".into(), &2.into()));
    let (_turn, mut attempts) = begun(&engine);
    attempts.begin().unwrap();
    attempts.succeeded();
    assert_eq!(log.of_name("reliability.recovered").len(), 1, "there was nothing to recover from");
}

#[tokio::test(start_paused = true)]
async fn a_token_of_ones_own_ends_the_wait_and_asks_no_rule() {
    let engine = with([rule(ReliabilityAction::Retry(Retry::attempts(9)))])
        .breaker(Stage::Model, BreakerConfig { failures: 1, ..BreakerConfig::default() })
        .build()
        .unwrap();
    let own = CancellationToken::new();
    let (turn, attempts) = begun(&engine);
    let mut attempts = attempts.cancelled_by(own.clone());
    own.cancel();
    assert!(matches!(fails(&mut attempts).await, RecoveryStep::Cancelled));
    assert!(!turn.cancellation().is_cancelled());
    attempts.begin().expect("what was cancelled says nothing of the model");
    drop(attempts);

    let own = CancellationToken::new();
    let (_turn, attempts) = begun(&engine);
    let mut attempts = attempts.cancelled_by(own.clone());
    attempts.begin().unwrap();
    let mut error = down();
    error.retry_after = Some(Duration::from_secs(9));
    let failure = FailedAttempt::of_model(&error);
    let mut waiting = Box::pin(attempts.failed(&failure));
    assert!((&mut waiting).now_or_never().is_none());
    own.cancel();
    assert!(matches!(waiting.now_or_never(), Some(RecoveryStep::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn each_model_has_a_breaker_of_its_own() {
    let engine = with([rule(ReliabilityAction::RetryOther)])
        .breaker(Stage::Model, BreakerConfig { failures: 1, ..BreakerConfig::default() })
        .build()
        .unwrap();
    let (_turn, mut attempts) = begun(&engine);
    assert_eq!(steps(&mut attempts, 1).await, ["Other(1)"]);
    attempts.begin().unwrap();
    attempts.succeeded();
    let (_turn, mut attempts) = begun(&engine);
    let open = attempts.begin().unwrap_err();
    assert_eq!(open.retry_in, Some(Duration::from_secs(30)));
    let error = open.into_model_error();
    assert_eq!(error.class, ModelErrorClass::BreakerOpen);
    assert_eq!(error.retry_after, Some(Duration::from_secs(30)));
    let under_way = BreakerOpenError { retry_in: None }.into_model_error();
    assert_eq!(under_way.retry_after, None);
    assert!(under_way.message.ends_with("one attempt is under way"), "{}", under_way.message);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_nobody_ends_gives_its_place_back_and_says_so() {
    let open_for = Duration::from_secs(30);
    let engine =
        with([]).breaker(Stage::Model, BreakerConfig { failures: 1, open_for }).build().unwrap();
    let log = Log::of(engine.events());
    let (_turn, mut attempts) = begun(&engine);
    fails(&mut attempts).await;
    tokio::time::advance(open_for).await;
    attempts.begin().unwrap();
    drop(attempts);
    let changes = log.of_name("breaker.changed");
    let changes: Vec<_> =
        changes.iter().map(|event| format!("{} {}", event["from"], event["to"])).collect();
    assert_eq!(changes, [r#""closed" "open""#, r#""open" "half_open""#, r#""half_open" "open""#]);
    begun(&engine).1.begin().expect("the next attempt is let through in its place");
}

#[test]
fn each_error_class_is_evidence_about_the_health_of_its_model() {
    use ModelErrorClass::{
        Auth, BadRequest, ContentFilter, ContextOverflow, EmptyAnswer, Quota, ToolChoiceIgnored,
    };
    let expected = |class| match class {
        Auth | BadRequest | ContentFilter | ContextOverflow | EmptyAnswer | Quota
        | ToolChoiceIgnored => Health::Healthy,
        ModelErrorClass::NoRule | ModelErrorClass::BreakerOpen => Health::Unknown,
        _ => Health::Unhealthy,
    };
    for class in ModelErrorClass::ALL {
        let mut error = ModelError::new(class, "no");
        error.status = Some(529);
        error.retry_after = Some(Duration::from_secs(3));
        let failure = FailedAttempt::of_model(&error);
        assert_eq!((failure.error_class, failure.message), (class.as_str(), "no"));
        assert_eq!((failure.http_status, failure.retry_after), (error.status, error.retry_after));
        assert_eq!(failure.health, expected(class), "{class:?}");
        assert_eq!(failure.validation_error, matches!(class, EmptyAnswer | ToolChoiceIgnored));
        assert_eq!((failure.acceptable, failure.unrepeatable), (false, None));
    }
    for class in DiscoveryErrorClass::ALL {
        let error = DiscoveryError::new(class, "no")
            .with_code("odd")
            .with_status(503)
            .with_retry_after(Duration::from_secs(3));
        let failure = FailedAttempt::of_discovery(&error);
        let expected = match class {
            DiscoveryErrorClass::Gate => Health::Healthy,
            DiscoveryErrorClass::Cancelled | DiscoveryErrorClass::BreakerOpen => Health::Unknown,
            _ => Health::Unhealthy,
        };
        assert_eq!((failure.error_class, failure.code), (class.as_str(), Some("odd")));
        assert_eq!((failure.http_status, failure.retry_after), (Some(503), error.retry_after()));
        assert_eq!((failure.health, failure.acceptable), (expected, true), "{class:?}");
    }
    let inside = DiscoveryError::source_failed("no").in_provider(&*static_tools([]));
    assert_eq!(FailedAttempt::of_discovery(&inside).leaf, Some("static"));
    let missing = DiscoveryError::source_failed("no tenant").with_code("identity_missing");
    assert_eq!(FailedAttempt::of_discovery(&missing).health, Health::Unknown);
}

#[tokio::test(start_paused = true)]
async fn each_stage_pays_for_its_own_retries() {
    let budget = RetryBudget { share: 0.0, per_second: 0.0, burst: 1 };
    let engine = with([rule(at_once(9))]).retry_budget(budget).build().unwrap();
    assert_eq!(engine.reliability().len(), 1);
    let turn = engine.turn(TurnOptions::default()).unwrap();
    for stage in [Stage::Model, Stage::Tool, Stage::Discover] {
        let names = ["a"].map(Arc::<str>::from);
        let mut attempts = turn.recovery().attempts(stage, names);
        let expected = ["Retry", "retry_budget_exhausted"];
        assert_eq!(steps(&mut attempts, 2).await, expected, "{stage:?}");
    }
}
