//! Reliability of sources: rules, the retry budget, breakers. That of models is tested in the
//! agent, which calls them.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, advance, sleep};
use toolcrib_core::{
    BreakerConfig, CancellationToken, DiscoveryError, DiscoveryErrorClass, Listing,
    ReliabilityAction, ReliabilityRule, Retry, Stage, Tool, ToolProvider, Usage, gated_tools,
    static_tools,
};
use toolcrib_engine::{
    Engine, EngineBuilder, ExhaustedReason, OnFailure, Redactor, RetryBudget, RetryExhausted,
    TurnError, TurnOptions,
};

use crate::support::{Log, engine, menu, offered, provider, tool};

/// A source's behavior when it is listed.
#[derive(Clone)]
enum Step {
    List,
    Fail(DiscoveryError),
    Panic,
    Nonsense,
}

fn unreachable() -> Step {
    Step::Fail(DiscoveryError::source_failed("hub unreachable"))
}

fn class(class: DiscoveryErrorClass) -> Step {
    Step::Fail(DiscoveryError::new(class, "no"))
}

/// A source of one tool with a configured name, which fails as configured and then lists. It counts
/// its listings.
struct Hub {
    provider: Arc<dyn ToolProvider>,
    asked: Arc<AtomicUsize>,
}

impl Hub {
    fn does(name: &'static str, script: impl IntoIterator<Item = Step>) -> Self {
        let script: Mutex<VecDeque<_>> = Mutex::new(script.into_iter().collect());
        let asked: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&asked);
        let provider = provider(name, move |_| {
            count.fetch_add(1, SeqCst);
            let does = script.lock().unwrap().pop_front();
            match does.unwrap_or(Step::List) {
                Step::List => Listing::now([tool(name)]),
                Step::Fail(error) => Listing::failed(error),
                Step::Panic => panic!("bug"),
                Step::Nonsense => Listing::later(async move {
                    let error = DiscoveryError::source_failed("this is no catalog");
                    Listing::failed(error).wait().await
                }),
            }
        });
        Self { provider, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

fn retry() -> ReliabilityRule {
    ReliabilityRule::new(ReliabilityAction::Retry(Retry::default()))
}

fn fail_fast() -> ReliabilityRule {
    ReliabilityRule::new(ReliabilityAction::FailFast)
}

fn over(hub: &Hub, rules: impl IntoIterator<Item = ReliabilityRule>) -> EngineBuilder {
    engine().provider(Arc::clone(&hub.provider)).reliability(rules)
}

/// The offer of the first iteration of a fresh turn.
async fn offers(engine: &Engine) -> Result<Vec<String>, TurnError> {
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    Ok(menu(&turn.iteration().await?))
}

async fn gives_up(engine: &Engine) -> RetryExhausted {
    match offers(engine).await {
        Err(TurnError::Reliability { exhausted, .. }) => exhausted,
        other => panic!("{other:?}"),
    }
}

/// The two rules of the discovery guide, in code.
fn seed_rules_in_code() -> [ReliabilityRule; 2] {
    [
        ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(10)))
            .when(|state| state.message.contains("hub unreachable") && state.attempt < 3)
            .kind("discovery-transient"),
        fail_fast().when(|state| state.error_name() == "AbortError").kind("cancelled"),
    ]
}

/// The same as data.
fn seed_rules_as_data() -> [ReliabilityRule; 2] {
    let mut transient = ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(10)));
    transient.when.message_contains = Some("hub unreachable".into());
    transient.when.attempt_below = Some(3);
    [transient.kind("discovery-transient"), fail_fast().error_name("AbortError").kind("cancelled")]
}

/// Case 45 and W1: given a discovery failure and a matching rule with a bound, the source is asked
/// again and the iteration begins; without a rule it fails at once.
#[tokio::test(start_paused = true)]
async fn a_discovery_that_fails_is_retried_by_a_rule_and_fails_at_once_without_one() {
    for rules in [seed_rules_in_code(), seed_rules_as_data()] {
        let hub = Hub::does("hub", [unreachable(), unreachable()]);
        assert_eq!(offers(&over(&hub, rules).build().unwrap()).await.unwrap(), ["hub"]);
        assert_eq!(hub.asked(), 3);
    }

    let hub = Hub::does("hub", [unreachable()]);
    let error = offers(&over(&hub, []).build().unwrap()).await.unwrap_err();
    assert!(matches!(error, TurnError::Discovery(_)), "{error:?}");
    assert_eq!(hub.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_the_discovery_guide_give_up_at_their_bound_and_fail_fast_on_an_abort() {
    for rules in [seed_rules_in_code(), seed_rules_as_data()] {
        let hub = Hub::does("hub", [unreachable(), unreachable(), unreachable()]);
        let error = offers(&over(&hub, rules.clone()).build().unwrap()).await.unwrap_err();
        assert_eq!(hub.asked(), 3);
        assert_eq!(
            error.to_string(),
            "the tools of this step could not be listed: provider `hub`: hub unreachable (given up \
             after 3 attempts by reliability rule 1: discovery-transient (retries_exhausted))"
        );
        let cause = std::error::Error::source(&error).unwrap();
        assert_eq!(cause.to_string(), "provider `hub`: hub unreachable");

        // The source gave up by itself; the run was not cancelled.
        let hub = Hub::does("hub", [class(DiscoveryErrorClass::Cancelled)]);
        let error = gives_up(&over(&hub, rules).build().unwrap()).await;
        assert_eq!(
            (&*error.kind, error.code, error.attempts),
            ("cancelled", ExhaustedReason::FailFast, 1)
        );
        assert_eq!(hub.asked(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_or_answers_nonsense_or_too_late_has_failed() {
    let hub = Hub::does("hub", [Step::Panic, Step::Nonsense, class(DiscoveryErrorClass::Timeout)]);
    let engine = over(&hub, [ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(4)))])
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    assert_eq!(offers(&engine).await.unwrap(), ["hub"]);
    let failed: Vec<_> = log
        .of_name("tools.discovery_failed")
        .iter()
        .map(|event| (event["attempt"].clone(), event["error_class"].clone()))
        .collect();
    assert_eq!(
        failed,
        [(json!(1), json!("panic")), (json!(2), json!("source")), (json!(3), json!("timeout"))]
    );
    let started: Vec<_> = log
        .of_name("tools.discovery_started")
        .iter()
        .map(|event| event["attempt"].clone())
        .collect();
    assert_eq!(started, [Value::Null, json!(2), json!(3), json!(4)], "the first is not numbered");
}

#[tokio::test(start_paused = true)]
async fn only_the_source_that_failed_is_asked_again_and_the_order_stays() {
    let first = Hub::does("first", []);
    let broken = Hub::does("broken", [unreachable(), Step::Panic]);
    let last = Hub::does("last", []);
    let engine = over(&first, [retry()])
        .tool(tool("own"))
        .provider(Arc::clone(&broken.provider))
        .provider(Arc::clone(&last.provider))
        .build()
        .unwrap();
    assert_eq!(offers(&engine).await.unwrap(), ["own", "first", "broken", "last"]);
    assert_eq!((first.asked(), broken.asked(), last.asked()), (1, 3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_fails_is_retried_only_by_a_rule_that_names_it() {
    for (rule, calls, offered) in
        [(retry(), 1, false), (retry().error_class("gate"), 2, true), (fail_fast(), 1, false)]
    {
        let asked: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&asked);
        let gate = gated_tools("flaky", static_tools([tool("t")]), move |_: &Tool, _: &_| {
            if count.fetch_add(1, SeqCst) == 0 { Err("policy service down") } else { Ok(true) }
        });
        let engine = engine().provider(gate).reliability([rule]).build().unwrap();
        assert_eq!(offers(&engine).await.is_ok(), offered);
        assert_eq!(asked.load(SeqCst), calls);
    }
}

#[tokio::test(start_paused = true)]
async fn ok_goes_on_without_the_source_and_says_so() {
    let hub = Hub::does("hub", [unreachable()]);
    let engine = over(&hub, [ReliabilityRule::new(ReliabilityAction::Ok)])
        .tool(tool("own"))
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["own"]);
    let [notice] = iteration.notices() else { panic!("{:?}", iteration.notices()) };
    assert_eq!((&*notice.source, notice.outcome), ("hub", OnFailure::Omit));
    assert_eq!(log.of_name("tools.provider_omitted").len(), 1);
    assert_eq!(log.of_name("reliability.recovered")[0]["via"], "ok");
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["own", "hub"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_rule_that_matches_decides_and_continue_has_no_opinion() {
    let hub = Hub::does("hub", [unreachable()]);
    let seen: Arc<AtomicUsize> = Arc::default();
    let count = Arc::clone(&seen);
    let watch = ReliabilityRule::new(ReliabilityAction::Continue).when(move |_| {
        count.fetch_add(1, SeqCst);
        true
    });
    let rules = [watch, fail_fast().stage(Stage::Model), fail_fast().kind("mine"), retry()];
    let error = gives_up(&over(&hub, rules).build().unwrap()).await;
    assert_eq!((&*error.kind, &*error.rule), ("mine", "reliability rule 3"));
    assert_eq!((seen.load(SeqCst), hub.asked()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_panics_or_fails_does_not_match_is_reported_and_swallows_nothing() {
    let hub = Hub::does("hub", [unreachable()]);
    let rules = [
        retry().when(|_| -> bool { panic!("bug with hunter22hunter22") }).label("buggy"),
        retry().when(|_| Err::<bool, _>("no database")),
    ];
    let redactor = Redactor::new(["hunter22hunter22".to_owned()]);
    let engine = over(&hub, rules).redactor(redactor).build().unwrap();
    let log = Log::of(engine.events());
    let error = offers(&engine).await.unwrap_err();
    assert!(matches!(error, TurnError::Discovery(_)), "{error:?}");
    assert_eq!(hub.asked(), 1);
    let reported: Vec<_> = log
        .of_name("reliability.rule_failed")
        .iter()
        .map(|event| format!("{}: {}", event["rule"], event["error"]))
        .collect();
    assert_eq!(
        reported,
        [
            r#""buggy": "it panicked: bug with [redacted]""#,
            r#""reliability rule 2": "no database""#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn retry_other_asks_the_sources_alternatives_and_fallback_another_source() {
    let (hub, mirror) = (Hub::does("hub", [unreachable()]), Hub::does("mirror", [unreachable()]));
    let last = Hub::does("last", []);
    let rules = [
        ReliabilityRule::new(ReliabilityAction::RetryOther),
        ReliabilityRule::new(ReliabilityAction::fallback_provider(Arc::clone(&last.provider))),
    ];
    let alternatives = [Arc::clone(&mirror.provider)];
    let engine = engine()
        .provider_with_alternatives(Arc::clone(&hub.provider), alternatives, OnFailure::Fail)
        .reliability(rules)
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    assert_eq!(offers(&engine).await.unwrap(), ["last"]);
    assert_eq!((hub.asked(), mirror.asked(), last.asked()), (1, 1, 1));
    let moves: Vec<_> = log
        .of_name("reliability.retried")
        .iter()
        .map(|event| format!("{} {} {}", event["then"], event["provider"], event["to"]))
        .collect();
    assert_eq!(moves, [r#""retry_other" "hub" "mirror""#, r#""fallback" "mirror" "last""#]);
    assert_eq!(log.of_name("reliability.recovered")[0]["provider"], "last");
}

/// Case 51 and W6, for sources: given a fallback that fails, rules see the fallback's error, and
/// other sources are not listed again.
#[tokio::test(start_paused = true)]
async fn a_fallback_source_that_fails_is_put_to_the_rules() {
    let hub = Hub::does("hub", [unreachable()]);
    let broken = Step::Fail(DiscoveryError::source_failed("mirror on fire").with_code("fire"));
    let mirror = Hub::does("mirror", [broken]);
    let rules = [
        fail_fast().when(|state| state.code == Some("fire")).kind("both-down"),
        ReliabilityRule::new(ReliabilityAction::fallback_provider(Arc::clone(&mirror.provider))),
    ];
    let failed = offers(&over(&hub, rules).build().unwrap()).await.unwrap_err();
    let TurnError::Reliability { exhausted, source } = failed else { panic!("{failed:?}") };
    assert_eq!((&*exhausted.kind, exhausted.attempts), ("both-down", 2));
    assert_eq!(source.to_string(), "provider `mirror`: mirror on fire");
    assert_eq!((hub.asked(), mirror.asked()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_source_says_of_its_failures_counts_once_rules_gave_up_but_not_against_fail_fast() {
    let many = || vec![unreachable(); 9];
    for (rule, is_offered) in [(retry(), true), (fail_fast(), false)] {
        let hub = Hub::does("hub", many());
        let engine = engine()
            .tool(tool("own"))
            .provider_with(Arc::clone(&hub.provider), OnFailure::Omit)
            .reliability([rule])
            .build()
            .unwrap();
        match offers(&engine).await {
            Ok(offered) => {
                assert_eq!((is_offered, hub.asked(), offered), (true, 3, vec!["own".into()]));
            }
            Err(error) => {
                assert!(!is_offered && matches!(error, TurnError::Reliability { .. }), "{error:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_sources_that_fail_the_first_in_order_says_why() {
    let plain = Hub::does("plain", [class(DiscoveryErrorClass::Source)]);
    let given_up = Hub::does("given_up", [unreachable()]);
    let rules = || [fail_fast().when(|state| state.provider == "given_up").kind("mine")];
    let engine = over(&plain, rules()).provider(Arc::clone(&given_up.provider)).build().unwrap();
    let error = offers(&engine).await.unwrap_err();
    assert!(matches!(error, TurnError::Discovery(_)), "{error:?}");

    let plain = Hub::does("plain", [class(DiscoveryErrorClass::Source)]);
    let given_up = Hub::does("given_up", [unreachable()]);
    let engine = over(&given_up, rules()).provider(Arc::clone(&plain.provider)).build().unwrap();
    assert_eq!(&*gives_up(&engine).await.kind, "mine");
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_as_long_as_asked_for_and_never_longer_than_the_cap() {
    let asks = |seconds| {
        let error = DiscoveryError::source_failed("busy").with_status(429);
        Step::Fail(error.with_retry_after(Duration::from_secs(seconds)))
    };
    let hub = Hub::does("hub", [asks(7)]);
    let began = Instant::now();
    offers(&over(&hub, [retry()]).build().unwrap()).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 7);

    let hub = Hub::does("hub", [asks(21)]);
    let engine = over(&hub, [retry(), fail_fast().stage(Stage::Model)]).build().unwrap();
    let error = gives_up(&engine).await;
    assert_eq!((error.code, error.attempts), (ExhaustedReason::WaitTooLong, 1));
    assert_eq!(began.elapsed().as_secs(), 7, "nobody waited");
}

/// Case 46, for waits: cancellation during one ends the iteration at once, without another attempt.
#[tokio::test(start_paused = true)]
async fn cancellation_ends_a_wait_at_once() {
    let hub = Hub::does("hub", [unreachable()]);
    let forever = Duration::from_secs(1_000_000);
    let slow = ReliabilityAction::Retry(Retry { base: forever, cap: forever, attempts: 3 });
    let engine = over(&hub, [ReliabilityRule::new(slow)]).build().unwrap();
    let cancellation = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancellation.clone());
    let mut turn = engine.turn(options).unwrap();
    let began = Instant::now();
    let (error, ()) = tokio::join!(turn.iteration(), async {
        sleep(Duration::from_millis(1)).await;
        cancellation.cancel();
    });
    assert!(matches!(error, Err(TurnError::Cancelled)), "{error:?}");
    assert_eq!((began.elapsed(), hub.asked()), (Duration::from_millis(1), 1));
}

#[tokio::test(start_paused = true)]
async fn retries_are_a_share_of_what_is_asked_for_and_a_few_more() {
    let hub = Hub::does("hub", vec![unreachable(); 10_000]);
    let budget = RetryBudget { share: 0.2, per_second: 1.0, burst: 10 };
    let quick = Retry { base: Duration::ZERO, ..Retry::attempts(3) };
    let rule = ReliabilityRule::new(ReliabilityAction::Retry(quick));
    let engine = over(&hub, [rule]).retry_budget(budget).build().unwrap();
    let mut codes = Vec::new();
    for _ in 0..100 {
        codes.push(gives_up(&engine).await.code);
    }
    // No time has passed: ten at first, then one for five; what the full bucket has no room for is
    // lost.
    let retries = hub.asked() - 100;
    assert!((28..=30).contains(&retries), "{retries}");
    assert!(codes.contains(&ExhaustedReason::RetryBudgetExhausted));

    advance(Duration::from_secs(5)).await;
    let before = hub.asked();
    for _ in 0..5 {
        gives_up(&engine).await;
    }
    assert_eq!(hub.asked() - before, 5 + 6, "one a second, and one for five");
}

const OPEN_FOR: Duration = Duration::from_secs(30);

fn breaker() -> BreakerConfig {
    BreakerConfig { failures: 2, open_for: OPEN_FOR }
}

/// Case 50, second half: a breaker's state outlives a call and a turn, and all turns share it.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_keeps_all_turns_from_asking() {
    let hub = Hub::does("hub", vec![unreachable(); 2]);
    let engine = over(&hub, []).breaker(Stage::Discover, breaker()).build().unwrap();
    let log = Log::of(engine.events());
    offers(&engine).await.unwrap_err();
    offers(&engine).await.unwrap_err();
    let refused = offers(&engine).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the tools of this step could not be listed: provider `hub`: not tried, because it failed \
         several times in a row; it is tried again in 30.0s"
    );
    assert_eq!(hub.asked(), 2);
    advance(OPEN_FOR).await;
    assert_eq!(offers(&engine).await.unwrap(), ["hub"]);
    let changes: Vec<_> = log
        .of_name("breaker.changed")
        .iter()
        .map(|event| format!("{} {} -> {}", event["of"], event["from"], event["to"]))
        .collect();
    assert_eq!(
        changes,
        [
            r#""hub" "closed" -> "open""#,
            r#""hub" "open" -> "half_open""#,
            r#""hub" "half_open" -> "closed""#
        ]
    );
}

/// Case 50, first half, and W5: given an open breaker whose time passes inside the same listing,
/// the next retry reaches the source; while it is open the loop is not busy.
#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_an_open_breaker_and_does_not_spin() {
    let patient = Retry { attempts: 5, base: Duration::ZERO, cap: OPEN_FOR };
    let hub = Hub::does("hub", vec![unreachable(); 2]);
    let engine = over(&hub, [ReliabilityRule::new(ReliabilityAction::Retry(patient))])
        .breaker(Stage::Discover, breaker())
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let began = Instant::now();
    assert_eq!(offers(&engine).await.unwrap(), ["hub"]);
    assert_eq!((began.elapsed(), hub.asked()), (OPEN_FOR, 3));
    let classes: Vec<_> = log
        .of_name("reliability.retried")
        .iter()
        .map(|event| event["error_class"].clone())
        .collect();
    assert_eq!(classes, ["source", "source", "breaker_open"]);

    // One that would not wait for so long gives up instead.
    let hub = Hub::does("hub", vec![unreachable(); 50]);
    let hasty = Retry { attempts: 5, base: Duration::ZERO, cap: Duration::from_secs(1) };
    let engine = over(&hub, [ReliabilityRule::new(ReliabilityAction::Retry(hasty))])
        .breaker(Stage::Discover, breaker())
        .build()
        .unwrap();
    let error = gives_up(&engine).await;
    assert_eq!((error.code, hub.asked()), (ExhaustedReason::WaitTooLong, 2));
}

/// Two sources of one name have separate breakers, and so has each tenant: a failure of one does
/// not affect the other.
#[tokio::test(start_paused = true)]
async fn each_source_and_each_tenant_has_a_breaker_of_its_own() {
    let by_tenant = |name: &'static str, asked: &Arc<AtomicUsize>| {
        let asked = Arc::clone(asked);
        provider("hub", move |cx| {
            asked.fetch_add(1, SeqCst);
            if name == "up" || cx.identity().tenant.as_deref() == Some("b") {
                return Listing::now([tool(name)]);
            }
            Listing::failed(DiscoveryError::source_failed("no such client"))
        })
    };
    let (up, down) = (Arc::default(), Arc::default());
    let engine = engine()
        .provider_with(by_tenant("up", &up), OnFailure::Omit)
        .provider_with(by_tenant("down", &down), OnFailure::Omit)
        .breaker(Stage::Discover, breaker())
        .build()
        .unwrap();
    let of = |tenant: &str| offered(&engine, TurnOptions::default().tenant(tenant));
    for _ in 0..3 {
        assert_eq!(of("a").await, ["up"]);
    }
    assert_eq!((up.load(SeqCst), down.load(SeqCst)), (3, 2));
    assert_eq!(of("b").await, ["up", "down"]);
}

/// A caller without an identity is refused, which says nothing about the source.
#[tokio::test(start_paused = true)]
async fn a_missing_identity_and_a_gate_that_fails_open_no_breaker() {
    let missing = DiscoveryError::source_failed("no tenant").with_code("identity_missing");
    for does in [Step::Fail(missing), class(DiscoveryErrorClass::Gate)] {
        let hub = Hub::does("hub", vec![does; 5]);
        let engine = over(&hub, []).breaker(Stage::Discover, breaker()).build().unwrap();
        for _ in 0..5 {
            offers(&engine).await.unwrap_err();
        }
        assert_eq!(hub.asked(), 5);
        assert_eq!(offers(&engine).await.unwrap(), ["hub"]);
    }
}

/// Rules and breakers of other stages cost nothing where sources are listed.
#[test]
fn rules_about_models_and_tools_cost_an_unchanged_menu_no_allocation() {
    let engine = engine()
        .provider(static_tools([tool("a"), tool("b")]))
        .reliability([retry().stage(Stage::Model), retry().stage(Stage::Tool)])
        .breaker(Stage::Model, breaker())
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let counted: Vec<_> = (0..5)
        .map(|_| {
            let allocations = allocation_counter::measure(|| {
                let iteration = turn.iteration().now_or_never().expect("no future is waited for");
                assert_eq!(iteration.unwrap().menu().len(), 2);
            });
            allocations.count_total
        })
        .collect();
    assert!(counted[0] > 0, "the counter counts");
    assert_eq!(counted[2..], [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn rules_look_at_what_the_run_has_used_so_far() {
    let hub = Hub::does("hub", [unreachable(), unreachable()]);
    let cheap = ReliabilityRule::new(ReliabilityAction::Retry(Retry::attempts(9)))
        .when(|state| state.tokens < 100 && state.cost_usd.is_some_and(|cost| cost < 1.0));
    let engine = over(&hub, [cheap]).tool(tool("own")).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let usage = Usage { input_tokens: 90, output_tokens: 10, ..Usage::NOTHING };
    turn.recovery().used(usage);
    assert!(matches!(turn.iteration().await, Err(TurnError::Discovery(_))));
    assert_eq!(hub.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn events_tell_the_story_of_a_retry_and_of_giving_up() {
    let hub = Hub::does("hub", vec![unreachable(); 4]);
    let quick = Retry { base: Duration::ZERO, ..Retry::attempts(2) };
    let rule = ReliabilityRule::new(ReliabilityAction::Retry(quick))
        .kind("transient")
        .label("hub retries");
    let engine = over(&hub, [rule]).build().unwrap();
    let log = Log::of(engine.events());
    offers(&engine).await.unwrap_err();
    let told: Vec<_> = log
        .events()
        .into_iter()
        .filter(|event| event.kind.name().starts_with("reliability."))
        .map(|event| json!(event.kind).to_string())
        .collect();
    assert_eq!(
        told,
        [
            r#"{"type":"reliability.retried","stage":"discover","then":"retry","provider":"hub","attempt":1,"wait_ms":0,"rule":"hub retries","error_class":"source"}"#,
            r#"{"type":"reliability.fail_fast","stage":"discover","provider":"hub","kind":"transient","code":"retries_exhausted","rule":"hub retries","attempts":2,"error":"hub unreachable","error_class":"source"}"#,
        ]
    );
}
