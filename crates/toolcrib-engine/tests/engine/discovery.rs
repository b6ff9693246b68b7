//! Sources that are queried: the events about their listings, caches that turns share, and changes
//! between listings.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::{advance, sleep};
use toolcrib_core::{
    BoxFuture, CacheOptions, CancellationToken, Catalog, CatalogRequest, DiscoveryError, KeyField,
    ListContext, Listing, Tool, ToolHub, ToolProvider, Ttl, cached, discovery, gated_tools,
    static_tools, with_timeout,
};
use toolcrib_engine::{Engine, OnFailure, Redactor, TurnError, TurnOptions};

use crate::support::{
    Log, builder, call, engine, in_time, menu, offered, provider, says, skill_id, skills, tool,
};

/// A hub whose catalog is a function of the number of queries.
struct Hub<F> {
    answer: F,
    asked: Arc<AtomicUsize>,
}

impl<F> ToolHub for Hub<F>
where
    F: Fn(usize) -> Result<Vec<Tool>, DiscoveryError> + Send + Sync + 'static,
{
    fn fetch_catalog<'a>(
        &'a self,
        _: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
        Box::pin(async move {
            let n = self.asked.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
            (self.answer)(n).map(Catalog::from_iter)
        })
    }
}

fn hub<F>(answer: F) -> (Arc<dyn ToolProvider>, Arc<AtomicUsize>)
where
    F: Fn(usize) -> Result<Vec<Tool>, DiscoveryError> + Send + Sync + 'static,
{
    let asked = Arc::new(AtomicUsize::new(0));
    let provider = discovery(Hub { answer, asked: Arc::clone(&asked) }).id("rube").build();
    (provider, asked)
}

fn options(seconds: u64) -> CacheOptions {
    CacheOptions::new([], Ttl::after(Duration::from_secs(seconds))).jitter(0.0)
}

/// The fields of each event of a name.
fn fields(log: &Log, event: &str, names: &[&str]) -> Vec<Value> {
    let pick = |event: Value| -> Value {
        names.iter().map(|name| event.get(*name).cloned().unwrap_or_default()).collect()
    };
    log.of_name(event).into_iter().map(pick).collect()
}

#[tokio::test(start_paused = true)]
async fn cases_16_and_21_what_a_hub_lists_is_offered_and_runs_in_that_iteration_asked_once_each() {
    let found = tool("found");
    let (hub, asked) = hub(move |_| Ok(vec![found.clone()]));
    let engine = engine().provider(hub).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for times in 1..=2 {
        let mut iteration = turn.iteration().await.unwrap();
        assert!(iteration.execute(vec![call("found", json!({}))]).await[0].is_ok());
        assert_eq!(asked.load(Ordering::SeqCst), times);
    }
}

#[tokio::test(start_paused = true)]
async fn case_24_two_iterations_within_the_time_are_one_fetch_and_two_pairs_of_events() {
    let tools = vec![tool("a"), tool("b"), tool("c")];
    let (hub, asked) = hub(move |_| Ok(tools.clone()));
    let engine = engine().tool(tool("own")).provider(cached(hub, options(60))).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let first = turn.iteration().await.unwrap();
    advance(Duration::from_secs(5)).await;
    let second = turn.iteration().await.unwrap();
    assert!(Arc::ptr_eq(first.menu(), second.menu()), "the menu is not composed again");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let of = ["provider", "leaf", "tool_count", "cache", "age_ms"];
    let completed = fields(&log, "tools.discovery_completed", &of);
    let own = json!(["registry", "registry", 1, "none", null]);
    assert_eq!(
        completed,
        [
            own.clone(),
            json!(["cached > rube", "rube", 3, "miss", null]),
            own,
            json!(["cached > rube", "rube", 3, "hit", 5000]),
        ],
        "case 19"
    );
    assert_eq!(log.of_name("tools.discovery_started").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_older_answer_is_told_with_its_age_and_the_error_that_it_stands_in_for() {
    let found = tool("t");
    let (hub, _) = hub(move |n| match n {
        0 => Ok(vec![found.clone()]),
        _ => Err(DiscoveryError::source_failed("no route (hunter22hunter22)")),
    });
    let cache = cached(hub, options(60).stale_on_error(Duration::from_secs(60)));
    let redactor = toolcrib_engine::Redactor::default();
    redactor.learn("hunter22hunter22").unwrap();
    let engine = engine().redactor(redactor).provider(cache).build().unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.iteration().await.unwrap();
    advance(Duration::from_secs(90)).await;
    turn.iteration().await.unwrap();
    let told = fields(&log, "tools.discovery_completed", &["cache", "age_ms", "error"]);
    assert_eq!(told[1], json!(["stale", 91_000, "no route ([redacted])"]));
    advance(Duration::from_secs(60)).await;
    let Err(TurnError::Discovery(_)) = turn.iteration().await else { panic!() };
    let told = fields(&log, "tools.discovery_failed", &["provider", "leaf", "error_class"]);
    assert_eq!(told, [json!(["rube", "rube", "source"])]);
}

#[tokio::test(start_paused = true)]
async fn case_59_a_hub_that_never_answers_fails_with_a_timeout_after_its_time() {
    let never = provider("never", |_| Listing::later(std::future::pending()));
    let engine = engine().provider(with_timeout(never, Duration::from_secs(30))).build().unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let began = tokio::time::Instant::now();
    let Err(TurnError::Discovery(error)) = turn.iteration().await else { panic!() };
    assert_eq!(began.elapsed(), Duration::from_secs(30));
    assert_eq!(error.message(), "it did not answer within 30s");
    let told = fields(&log, "tools.discovery_failed", &["provider", "leaf", "error_class"]);
    assert_eq!(told, [json!(["timeout(30s) > never", "never", "timeout"])]);
}

#[tokio::test]
async fn what_changed_in_a_source_is_told_once_and_by_name() {
    let described = |text: &str| says(builder("b").description(text), "ran");
    let (a, old, new, c) = (tool("a"), described("Old."), described("New."), tool("c"));
    let answers = [
        vec![a.clone(), old.clone()],
        vec![a.clone(), old.clone()],
        vec![new.clone(), c.clone()],
        // The same text from other tools, and another order, are not a different listing.
        vec![tool("c"), described("New.")],
        vec![],
    ];
    let n = AtomicUsize::new(0);
    let source =
        provider("s", move |_| Listing::now(answers[n.fetch_add(1, Ordering::SeqCst)].to_vec()));
    let engine = engine().tool(tool("own")).provider(source).build().unwrap();
    let log = Log::of(engine.events());
    for _ in 0..5 {
        engine.turn(TurnOptions::default()).unwrap().iteration().await.unwrap();
    }
    let changes = fields(&log, "tools.changed", &["provider", "added", "removed", "changed"]);
    assert_eq!(changes, [json!(["s", ["c"], ["a"], ["b"]]), json!(["s", [], ["c", "b"], []])],);
    let names = log.names();
    let at = names.iter().position(|name| *name == "tools.changed").unwrap();
    assert_eq!(names[at - 1], "tools.discovery_completed");
}

#[tokio::test]
async fn a_listing_for_another_identity_is_not_reported_as_a_change() {
    let by_tenant =
        provider("s", |cx| Listing::now([tool(cx.identity().tenant.as_deref().unwrap())]));
    let scoped = toolcrib_core::skill_scoped_tools("billing", [tool("refund")]).unwrap();
    let engine = engine()
        .provider(by_tenant)
        .provider(scoped)
        .skills(skills([("billing", &[])]).focus(false))
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    for tenant in ["acme", "zeta", "acme"] {
        let options = || TurnOptions::default().tenant(tenant);
        offered(&engine, options()).await;
        offered(&engine, options().skill(skill_id("billing"))).await;
    }
    assert!(log.of_name("tools.changed").is_empty());
}

#[tokio::test]
async fn without_a_listener_no_listing_is_remembered_for_changes() {
    let n = AtomicUsize::new(0);
    let source = provider("s", move |_| {
        Listing::now([tool(&format!("t{}", n.fetch_add(1, Ordering::SeqCst)))])
    });
    let engine = engine().provider(source).build().unwrap();
    offered(&engine, TurnOptions::default()).await;
    let log = Log::of(engine.events());
    offered(&engine, TurnOptions::default()).await;
    assert!(log.of_name("tools.changed").is_empty(), "t0 was never heard of");
    offered(&engine, TurnOptions::default()).await;
    assert_eq!(fields(&log, "tools.changed", &["added", "removed"]), [json!([["t2"], ["t1"]])]);
}

#[tokio::test]
async fn case_23_turns_that_share_a_provider_see_each_its_own_iteration() {
    let by_iteration = provider("n", |cx| {
        let name = format!("t{}", cx.iteration());
        Listing::later(async move {
            tokio::task::yield_now().await;
            Ok([tool(&name)].into())
        })
    });
    let engine = engine().provider(by_iteration).build().unwrap();
    let steps = |count: usize| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut turn = engine.turn(TurnOptions::default()).unwrap();
            for n in 1..=count {
                assert_eq!(menu(&turn.iteration().await.unwrap()), [format!("t{n}")]);
            }
        })
    };
    let all = [steps(5), steps(2), steps(9)];
    for one in all {
        in_time(one).await.unwrap();
    }
}

#[tokio::test]
async fn case_22_a_provider_always_has_a_token_and_it_is_the_turns() {
    // There it is absent without a handle; here it is always present, and fires with the turn.
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&tokens);
    let spy = provider("spy", move |cx: &ListContext| {
        seen.lock().unwrap().push(cx.cancellation().clone());
        Listing::now(Catalog::new())
    });
    let engine = engine().provider(spy).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.iteration().await.unwrap();
    let token = tokens.lock().unwrap().remove(0);
    assert!(!token.is_cancelled());
    drop(turn);
    assert!(token.is_cancelled());
}

#[tokio::test]
async fn cases_17_and_18_a_failure_is_told_with_all_that_is_known_and_ends_the_iteration() {
    let fails = |later: bool| {
        let error = || DiscoveryError::source_failed("no route to host").with_code("E_ROUTE");
        provider("rube", move |_| match later {
            false => Listing::failed(error()),
            true => Listing::later(async move { Listing::failed(error()).wait().await }),
        })
    };
    for later in [false, true] {
        let engine = engine().provider(fails(later)).build().unwrap();
        let mut turn = begin(&engine);
        let log = Log::of(turn.events().run());
        let Err(TurnError::Discovery(error)) = turn.iteration().await else { panic!() };
        assert_eq!((error.message(), error.code()), ("no route to host", Some("E_ROUTE")));
        assert_eq!(log.names(), ["tools.discovery_started", "tools.discovery_failed"]);
        let of = ["provider", "leaf", "error", "error_class", "iteration"];
        let told = json!(["rube", "rube", "no route to host", "source", 1]);
        assert_eq!(fields(&log, "tools.discovery_failed", &of), [told]);
        assert!(log.of_name("tools.discovery_failed")[0]["duration_ms"].is_u64());
    }
}

#[tokio::test]
async fn case_26_after_read_skill_the_provider_is_asked_with_that_skill_as_the_active_one() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let spy = {
        let seen = Arc::clone(&seen);
        provider("spy", move |cx| {
            seen.lock().unwrap().push(cx.active_skill().map(ToString::to_string));
            Listing::now(Catalog::new())
        })
    };
    let engine = engine().provider(spy).skills(skills([("billing", &[])])).build().unwrap();
    let mut turn = begin(&engine);
    let read = call("read_skill", json!({ "id": "billing" }));
    assert!(turn.iteration().await.unwrap().execute(vec![read]).await[0].is_ok());
    turn.iteration().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [None, Some("billing".to_owned())]);
}

#[tokio::test]
async fn case_31_a_call_of_a_gated_tool_is_answered_with_an_error_and_the_turn_goes_on() {
    let gate =
        gated_tools("none", static_tools([tool("secret")]), |_: &Tool, _: &ListContext| false);
    let engine = engine().tool(tool("own")).provider(gate).build().unwrap();
    let mut turn = begin(&engine);
    let calls = vec![call("secret", json!({})), call("own", json!({}))];
    let results = turn.iteration().await.unwrap().execute(calls).await;
    assert_eq!(results[0].code, Some(toolcrib_core::ErrorCode::NotAvailable));
    assert!(results[1].is_ok());
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["own"]);
}

fn begin(engine: &Engine) -> toolcrib_engine::Turn {
    engine.turn(TurnOptions::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn gates_commute(admitted in prop::collection::vec(any::<[bool; 6]>(), 1..5), turn in 0..5_usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let through = |gates: &[[bool; 6]]| {
            let all = static_tools((0..6).map(|n| tool(&format!("t{n}"))));
            let stack = gates.iter().fold(all, |inner, admits| {
                let admits = *admits;
                gated_tools("g", inner, move |tool: &Tool, _: &ListContext| {
                    admits[usize::from(tool.name().as_bytes()[1] - b'0')]
                })
            });
            runtime.block_on(offered(&engine().provider(stack).build().unwrap(), TurnOptions::default()))
        };
        let mut turned = admitted.clone();
        turned.rotate_left(turn % admitted.len());
        prop_assert_eq!(through(&admitted), through(&turned));
    }
}

/// A hub that returns a tenant's tools after some time.
struct TenantHub {
    asked: Mutex<Vec<String>>,
    /// Fetches that have begun and not ended.
    under_way: Arc<AtomicUsize>,
}

struct Ends(Arc<AtomicUsize>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ToolHub for TenantHub {
    fn fetch_catalog<'a>(
        &'a self,
        request: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
        Box::pin(async move {
            let tenant = request.identity().tenant.clone().unwrap();
            self.asked.lock().unwrap().push(tenant.to_string());
            self.under_way.fetch_add(1, Ordering::SeqCst);
            let _ends = Ends(Arc::clone(&self.under_way));
            sleep(Duration::from_millis(200)).await;
            Ok(Catalog::from_iter([tool(&format!("of_{tenant}"))]))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn eight_hundred_of_a_thousand_runs_on_one_cache_succeed_while_the_others_are_cancelled() {
    let hub = Arc::new(TenantHub { asked: Mutex::default(), under_way: Arc::default() });
    let cache = cached(
        discovery(Arc::clone(&hub)).id("hub").build(),
        CacheOptions::new([KeyField::Tenant], Ttl::after(Duration::from_secs(3600))).jitter(0.0),
    );
    let engine = engine().provider_with(Arc::clone(&cache) as _, OnFailure::Fail).build().unwrap();
    let tasks_before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // A fixed pseudorandom mix: when each run begins, its identity, and which are cancelled.
    let mut chance = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % below
    };
    let runs: Vec<_> = (0..1000)
        .map(|n| {
            let (engine, tenant) = (engine.clone(), format!("t{}", next(5)));
            let (begins, cancelled_after) = (next(400), (n % 5 == 0).then(|| next(300)));
            tokio::spawn(async move {
                sleep(Duration::from_millis(begins)).await;
                let token = CancellationToken::new();
                let options =
                    TurnOptions::default().tenant(tenant.as_str()).cancellation(token.clone());
                let mut turn = engine.turn(options).unwrap();
                let cancels = async {
                    match cancelled_after {
                        Some(after) => {
                            sleep(Duration::from_millis(after)).await;
                            token.cancel();
                        }
                        None => std::future::pending().await,
                    }
                };
                let iteration = turn.iteration();
                tokio::pin!(iteration);
                let outcome = tokio::select! {
                    biased;
                    outcome = &mut iteration => outcome,
                    () = cancels => iteration.await,
                };
                match outcome {
                    Ok(iteration) => assert_eq!(menu(&iteration), [format!("of_{tenant}")]),
                    Err(TurnError::Cancelled) => assert!(cancelled_after.is_some()),
                    Err(other) => panic!("{other}"),
                }
            })
        })
        .collect();
    for run in runs {
        in_time(run).await.unwrap();
    }
    let mut asked = hub.asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["t0", "t1", "t2", "t3", "t4"], "one fetch per key in its time");
    assert_eq!(hub.under_way.load(Ordering::SeqCst), 0);
    assert_eq!(cache.len(), 5);
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks, tasks_before, "no task is left");
    // Only our two handles keep the cache: no waiter, no fetch.
    drop(engine);
    assert_eq!(Arc::strong_count(&cache), 1);
}

/// A secret that only an error's cause quotes does not leave the engine through the chain.
#[tokio::test]
async fn the_chain_of_an_error_that_quotes_a_secret_goes_no_further() {
    #[derive(Debug, thiserror::Error)]
    #[error("registry unreachable")]
    struct Unreachable(#[source] std::io::Error);
    let provider = provider("registry", |_| {
        let cause = std::io::Error::other("GET https://hub.test/?key=swordfish-4711 failed");
        Listing::failed(DiscoveryError::source_failed(Unreachable(cause)))
    });
    let redactor = Redactor::new([SECRET_IN_CHAIN.to_owned()]);
    let engine = Engine::builder().redactor(redactor).provider(provider).build().unwrap();
    let error = engine.turn(TurnOptions::default()).unwrap().iteration().await.unwrap_err();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text.push_str(&error.to_string());
        source = error.source();
    }
    assert!(text.contains("registry unreachable"), "{text}");
    assert!(!text.contains(SECRET_IN_CHAIN), "{text}");
}

const SECRET_IN_CHAIN: &str = "swordfish-4711";
