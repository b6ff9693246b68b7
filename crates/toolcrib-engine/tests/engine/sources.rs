//! Sources that cannot be listed: the replacement of their tools, and the reports.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::time::{advance, sleep};
use toolcrib_core::{
    __internal::of_plugin, CacheOptions, CancellationToken, Catalog, DiscoveryError,
    DiscoveryErrorClass, Effect, ErrorCode, IdentityScope, ListContext, Listing, Preparation, Tool,
    ToolProvider, Ttl, WithheldBy, cached, concat, gated_tools, per_identity, prefixed, prepared,
    with_timeout,
};
use toolcrib_engine::{
    BuildError, Engine, Iteration, OnFailure, PluginRegistrar, Redactor, Turn, TurnError,
    TurnOptions,
};

use crate::{
    plugins::Brings,
    support::{
        Log, builder, call, engine, in_time, menu, policy, provider, rule_on, says, skill_id,
        skills, tool, why,
    },
};

/// A source's behavior when it is listed.
#[derive(Clone, Copy)]
enum Step {
    List,
    Fail,
    Panic,
    Cancelled,
    Never,
    /// Fails after this many seconds.
    FailLater(u64),
}

/// A source of `mcp__git__log` and `mcp__git__push` that fails as configured; then it lists.
struct Git {
    tools: [Tool; 2],
    script: Mutex<VecDeque<Step>>,
}

impl Git {
    fn does(script: &[Step]) -> Arc<Self> {
        let remote = |name| says(builder(name).origin("mcp:git").mcp_server("git"), "ran");
        let tools = [remote("mcp__git__log"), remote("mcp__git__push")];
        Arc::new(Self { tools, script: Mutex::new(script.iter().copied().collect()) })
    }
}

impl ToolProvider for Git {
    fn id(&self) -> &str {
        "mcp:git"
    }

    fn covers(&self) -> Option<&str> {
        Some("mcp__git__*")
    }

    fn list(self: Arc<Self>, _: &ListContext) -> Listing {
        let refused = || DiscoveryError::source_failed("connection refused (hunter22hunter22)");
        let does = self.script.lock().unwrap().pop_front();
        match does.unwrap_or(Step::List) {
            Step::List => Listing::now(self.tools.to_vec()),
            Step::Fail => Listing::failed(refused()),
            Step::Panic => panic!("bug"),
            Step::Cancelled => {
                let error = DiscoveryError::new(DiscoveryErrorClass::Cancelled, "cancelled");
                Listing::failed(error)
            }
            Step::Never => Listing::later(std::future::pending()),
            Step::FailLater(seconds) => Listing::later(async move {
                sleep(Duration::from_secs(seconds)).await;
                Listing::failed(refused()).wait().await
            }),
        }
    }
}

const BOTH: [&str; 2] = ["mcp__git__log", "mcp__git__push"];

fn with(git: Arc<dyn ToolProvider>, on_failure: OnFailure) -> Engine {
    engine().tool(tool("own")).provider_with(git, on_failure).build().unwrap()
}

fn begin(engine: &Engine) -> Turn {
    engine.turn(TurnOptions::default()).unwrap()
}

fn names(log: &Log) -> Vec<&'static str> {
    let mut names = log.names();
    names.retain(|name| !matches!(*name, "tools.discovery_started" | "tools.discovery_completed"));
    names
}

#[tokio::test(start_paused = true)]
async fn a_stale_source_offers_what_it_listed_last() {
    let git = Git::does(&[Step::List, Step::Fail, Step::Panic, Step::FailLater(3), Step::List]);
    let engine = with(git, OnFailure::Stale);
    let log = Log::of(engine.events());
    let mut turn = begin(&engine);
    let good = turn.iteration().await.unwrap();
    assert_eq!(menu(&good), ["own", BOTH[0], BOTH[1]]);
    assert!(good.notices().is_empty());
    for age in [2_000, 4_000, 9_000] {
        advance(Duration::from_secs(2)).await;
        let mut stale = turn.iteration().await.unwrap();
        assert_eq!(stale.menu().fingerprint(), good.menu().fingerprint());
        assert_eq!(stale.menu().rendering(), good.menu().rendering());
        assert!(stale.withheld().is_empty());
        let [notice] = stale.notices() else { panic!("{:?}", stale.notices()) };
        assert_eq!((&*notice.source, &*notice.name), ("mcp:git", "mcp__git__*"));
        assert_eq!(notice.outcome, OnFailure::Stale);
        let event = log.of_name("tools.provider_stale").pop().unwrap();
        assert_eq!(event["provider"], "mcp:git");
        assert_eq!((&event["age_ms"], &event["tool_count"]), (&json!(age), &json!(2)));
        assert!(stale.execute(vec![call(BOTH[0], json!({}))]).await[0].is_ok());
    }
    assert!(turn.iteration().await.unwrap().notices().is_empty());
    let mut seen = names(&log);
    seen.retain(|name| name.starts_with("tools."));
    let failed = ["tools.discovery_failed", "tools.provider_stale", "tools.offered"];
    let story = [&["tools.offered"][..], &failed, &failed, &failed, &["tools.offered"]];
    assert_eq!(seen, story.concat());
}

#[tokio::test]
async fn a_stale_source_without_a_good_listing_is_left_out() {
    let engine = with(Git::does(&[Step::Fail]), OnFailure::Stale);
    let log = Log::of(engine.events());
    assert_omitted(&begin(&engine).iteration().await.unwrap(), &[]);
    let mut seen = names(&log);
    seen.retain(|name| name.starts_with("tools."));
    assert_eq!(seen, ["tools.discovery_failed", "tools.provider_omitted", "tools.offered"]);
}

#[tokio::test]
async fn a_stale_listing_is_not_offered_to_another_identity() {
    let ada = || TurnOptions::default().tenant("acme").principal("ada");
    let others = [
        TurnOptions::default().tenant("acme").principal("bob"),
        TurnOptions::default().tenant("zeta").principal("ada"),
        TurnOptions::default().principal("ada"),
        ada().skill(skill_id("s")),
    ];
    for other in others {
        let git = Git::does(&[Step::List, Step::Fail, Step::Fail]);
        let engine = engine()
            .provider_with(git, OnFailure::Stale)
            .skills(skills([("s", &BOTH)]))
            .build()
            .unwrap();
        engine.turn(ada()).unwrap().iteration().await.unwrap();
        let other = engine.turn(other).unwrap().iteration().await.unwrap();
        assert!(!menu(&other).contains(&BOTH[0].to_owned()), "{:?}", menu(&other));
        // The conversation is another, and whose it is the same.
        let again = engine.turn(ada().conversation("next")).unwrap().iteration().await.unwrap();
        assert_eq!(menu(&again), [BOTH[0], BOTH[1], "read_skill"]);
    }
}

#[tokio::test]
async fn the_listings_of_64_identities_are_kept_and_the_oldest_is_evicted() {
    let all = (0..66).map(|n| format!("p{n}")).collect::<Vec<_>>();
    let mut script = vec![Step::List; 1 + all.len()];
    script.extend([Step::Fail, Step::Fail, Step::Fail]);
    let engine = with(Git::does(&script), OnFailure::Stale);
    let ask = |who: &str| {
        let options = TurnOptions::default().principal(who);
        let engine = &engine;
        async move { menu(&engine.turn(options).unwrap().iteration().await.unwrap()).len() == 3 }
    };
    for who in &all[..64] {
        assert!(ask(who).await);
    }
    // Listed anew, so that it is no longer the oldest.
    assert!(ask("p0").await);
    assert!(ask("p64").await && ask("p65").await);
    assert!(ask("p0").await);
    assert!(!ask("p1").await && !ask("p2").await, "the oldest made room");
    assert!(ask("p3").await);
}

fn assert_omitted(iteration: &Iteration, known: &[&str]) {
    assert_eq!(menu(iteration), ["own"]);
    let [notice] = iteration.notices() else { panic!("{:?}", iteration.notices()) };
    assert_eq!(notice.outcome, OnFailure::Omit);
    assert_eq!(notice.model_text(), "The tools of `mcp__git__*` cannot be used at the moment.");
    let withheld: Vec<_> = iteration.withheld().tools().collect();
    assert_eq!(withheld.len(), iteration.withheld().len());
    let names: Vec<_> = withheld.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, [&["mcp__git__*"], known].concat());
    for tool in withheld {
        assert_eq!((tool.by, &*tool.origin), (WithheldBy::Discovery, "mcp:git"));
        assert!(tool.reason.contains("could not be listed: "), "{}", tool.reason);
    }
}

#[tokio::test]
async fn an_omitted_source_is_missing_and_said_to_be_in_every_iteration() {
    let git = Git::does(&[Step::Fail, Step::Fail, Step::List, Step::Panic]);
    let redactor = Redactor::default();
    redactor.learn("hunter22hunter22").unwrap();
    let engine = engine()
        .redactor(redactor)
        .tool(tool("own"))
        .provider_with(git, OnFailure::Omit)
        .build()
        .unwrap();
    let log = Log::of(engine.events());
    let mut turn = begin(&engine);
    for _ in 0..2 {
        let omitted = turn.iteration().await.unwrap();
        assert_omitted(&omitted, &[]);
        let reason = "could not be listed: connection refused ([redacted])";
        assert_eq!(why(omitted.withheld(), "mcp__git__*"), reason);
    }
    let good = turn.iteration().await.unwrap();
    assert_eq!((menu(&good).len(), good.notices().len(), good.withheld().len()), (3, 0, 0));
    let mut omitted = turn.iteration().await.unwrap();
    assert_omitted(&omitted, &BOTH);
    let result = omitted.execute(vec![call(BOTH[0], json!({}))]).await.remove(0);
    assert_eq!(result.code, Some(ErrorCode::NotAvailable));
    let unknown = omitted.execute(vec![call("mcp__git__*", json!({}))]).await.remove(0);
    assert_eq!(unknown.code, Some(ErrorCode::NotAvailable));
    let events = log.of_name("tools.provider_omitted");
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["name"], "mcp__git__*");
    assert_eq!(events[0].get("tool_count"), None);
    assert_eq!(events[2]["tool_count"], 2);
    assert!(!json!(log.events()).to_string().contains("hunter22"));
    let offered = log.of_name("tools.offered");
    assert_eq!(offered.iter().map(|e| e["withheld"].clone()).collect::<Vec<_>>(), [1, 1, 0, 3]);
}

#[tokio::test]
async fn what_else_withholds_a_tool_of_an_omitted_source_is_said_too() {
    let git = Git::does(&[Step::List, Step::Fail]);
    let gate = |tool: &Tool, _: &ListContext| tool.name() != "mcp__git__push";
    let engine = engine()
        .provider_with(gated_tools("no_push", git, gate), OnFailure::Omit)
        .policy(policy([rule_on("rule 1", Effect::Deny, "*log")]))
        .build()
        .unwrap();
    let mut turn = begin(&engine);
    turn.iteration().await.unwrap();
    let omitted = turn.iteration().await.unwrap();
    let source = "its source `gated(no_push) > mcp:git` could not be listed: connection refused \
                  (hunter22hunter22); ";
    let log = why(omitted.withheld(), BOTH[0]);
    assert!(log.starts_with(&format!("{source}rule 1 denies it")), "{log}");
    let push = why(omitted.withheld(), BOTH[1]);
    assert_eq!(push, format!("{source}gate `no_push`: the gate rejected the tool"));
    assert!(omitted.withheld().names().any(|name| name == "mcp__git__*"), "through the gate");
}

#[tokio::test(start_paused = true)]
async fn notices_stand_in_the_order_of_the_sources_whoever_answers_first() {
    let id = |id: &'static str, seconds| {
        provider(id, move |_| {
            Listing::later(async move {
                sleep(Duration::from_secs(seconds)).await;
                Listing::failed(DiscoveryError::source_failed("down")).wait().await
            })
        })
    };
    let engine = engine()
        .provider_with(id("first", 3), OnFailure::Omit)
        .tool(tool("own"))
        .provider_with(id("second", 1), OnFailure::Omit)
        .provider_with(of_plugin("p", Git::does(&[Step::FailLater(2)])), OnFailure::Omit)
        .build()
        .unwrap();
    let iteration = in_time(async { begin(&engine).iteration().await }).await.unwrap();
    let names: Vec<_> = iteration.notices().iter().map(|notice| &*notice.name).collect();
    assert_eq!(names, ["first", "second", "mcp__git__*"]);
    assert_eq!(menu(&iteration), ["own"]);
}

#[tokio::test]
async fn cancellation_is_neither_stale_nor_omitted() {
    for on_failure in [OnFailure::Stale, OnFailure::Omit] {
        let engine = with(Git::does(&[Step::List, Step::Cancelled, Step::Never]), on_failure);
        let log = Log::of(engine.events());
        begin(&engine).iteration().await.unwrap();
        let cancelled = begin(&engine).iteration().await.unwrap_err();
        assert!(matches!(cancelled, TurnError::Cancelled), "{cancelled}");
        let token = CancellationToken::new();
        let mut turn = engine.turn(TurnOptions::default().cancellation(token.clone())).unwrap();
        let (asked, ()) = in_time(async {
            tokio::join!(turn.iteration(), async {
                tokio::task::yield_now().await;
                token.cancel();
            })
        })
        .await;
        assert!(matches!(asked, Err(TurnError::Cancelled)));
        assert!(log.of_name("tools.provider_stale").is_empty());
        assert!(log.of_name("tools.provider_omitted").is_empty());
    }
}

#[tokio::test]
async fn a_gate_that_fails_is_never_passed_over_by_an_old_listing() {
    fn gate() -> impl Fn(&Tool, &ListContext) -> Result<bool, &'static str> + Send + Sync + 'static
    {
        |_: &Tool, cx: &ListContext| {
            if cx.iteration() == 1 { Ok(true) } else { Err("the directory is down") }
        }
    }
    let unknown = provider("unknown", |cx| match cx.iteration() {
        1 => Listing::now([tool("t")]),
        _ => Listing::failed(DiscoveryError::new(DiscoveryErrorClass::Gate, "down")),
    });
    let engine = with(unknown, OnFailure::Stale);
    let mut stale = begin(&engine);
    stale.iteration().await.unwrap();
    let TurnError::Discovery(error) = stale.iteration().await.unwrap_err() else { panic!() };
    assert_eq!(error.class(), DiscoveryErrorClass::Gate);
    let mut omitted = begin(&with(gated_tools("acl", Git::does(&[]), gate()), OnFailure::Omit));
    omitted.iteration().await.unwrap();
    assert_eq!(menu(&omitted.iteration().await.unwrap()), ["own"]);
}

/// Admits tools in the first three iterations.
fn early(inner: Arc<dyn ToolProvider>) -> Arc<dyn ToolProvider> {
    gated_tools("early", inner, |_: &Tool, cx: &ListContext| cx.iteration() <= 3)
}

#[test]
fn an_engine_whose_old_listings_would_pass_over_a_gate_is_not_built() {
    let git = || Git::does(&[]) as Arc<dyn ToolProvider>;
    let forever = CacheOptions::new([], Ttl::forever());
    for gated in [
        early(git()),
        prepared("p", git(), |_: &Tool, _: &ListContext| Preparation::Keep),
        of_plugin("p", early(git())),
        with_timeout(early(git()), Duration::from_secs(1)),
        prefixed("p_", early(git())).unwrap(),
        cached(early(git()), forever.clone()),
        concat([git(), early(git())]),
    ] {
        let path = gated.path();
        let built = engine().provider_with(gated, OnFailure::Stale).build();
        let Err(BuildError::StaleGate { provider }) = built else { panic!("{path}") };
        assert_eq!(*provider, *path);
    }
    let other =
        engine().provider_with_alternatives(git(), [early(git())], OnFailure::Stale).build();
    insta::assert_snapshot!(other.unwrap_err(), @"source `gated(early) > mcp:git` has a gate in it and `OnFailure::Stale`: tools that the gate passed before would be offered without a new decision; put the gate outside, `gated_tools(.., cached(..), ..)` with `CacheOptions::stale_on_error`, and take `OnFailure::Fail` or `Omit`");
    assert!(engine().provider_with(cached(git(), forever), OnFailure::Stale).build().is_ok());
    let brings = |provider: Arc<dyn ToolProvider>| {
        Brings("p", move |registrar: &mut PluginRegistrar| {
            registrar.provider_with(Arc::clone(&provider), OnFailure::Stale);
            Ok(())
        })
    };
    let built = engine().plugin(brings(early(git()))).build();
    assert!(matches!(built, Err(BuildError::StaleGate { .. })), "{built:?}");
    assert!(engine().plugin(brings(git())).build().is_ok());
}

#[tokio::test]
async fn what_a_gate_withholds_by_now_does_not_come_back_when_its_source_fails() {
    let lists_and_fails = [Step::List, Step::List, Step::List, Step::FailLater(0)];
    // The gate is not known when the engine is built.
    let late = per_identity(IdentityScope::Tenant, 9, move |_| {
        Ok::<_, std::io::Error>(early(Git::does(&lists_and_fails)))
    });
    let engine = with(late, OnFailure::Stale);
    let mut turn = begin(&engine);
    for _ in 0..3 {
        assert_eq!(menu(&turn.iteration().await.unwrap()), ["own", BOTH[0], BOTH[1]]);
    }
    let TurnError::Discovery(error) = turn.iteration().await.unwrap_err() else { panic!() };
    assert_eq!(error.class(), DiscoveryErrorClass::Source);

    // The recommended way: the gate decides on the older listing.
    let options = CacheOptions::new([], Ttl::after(Duration::ZERO));
    let options = options.stale_on_error(Duration::from_secs(60));
    let engine = with(early(cached(Git::does(&lists_and_fails), options)), OnFailure::Fail);
    let mut turn = begin(&engine);
    for _ in 0..3 {
        assert_eq!(menu(&turn.iteration().await.unwrap()), ["own", BOTH[0], BOTH[1]]);
    }
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["own"]);
}

#[tokio::test]
async fn events_say_where_tools_come_from() {
    let engine = with(Git::does(&[]), OnFailure::Fail);
    let log = Log::of(engine.events());
    let calls = ["own", BOTH[0], "no_such_tool"].map(|name| call(name, json!({})));
    begin(&engine).iteration().await.unwrap().execute(calls.into()).await;
    let offered = log.of_name("tools.offered").remove(0);
    assert_eq!(offered["tools"], json!(["own", BOTH[0], BOTH[1]]));
    assert_eq!(offered["origins"], json!(["code", "mcp:git", "mcp:git"]));
    let starts = log.of_name("tool.start");
    let origins: Vec<_> = starts.iter().map(|start| start.get("origin").cloned()).collect();
    assert_eq!(origins, [Some(json!("code")), Some(json!("mcp:git")), None]);
}

#[tokio::test]
async fn a_source_that_holds_a_tool_back_is_no_gate() {
    let held = says(builder("mcp__git__odd").origin("mcp:git").mcp_server("git"), "");
    let git = provider("mcp:git", move |_| {
        let mut catalog = Catalog::new();
        catalog.withhold(
            held.clone(),
            "mcp:git".into(),
            "its input schema is not one of an object",
        );
        Listing::now(catalog)
    });
    let engine = engine().provider(git).build().unwrap();
    let iteration = begin(&engine).iteration().await.unwrap();
    assert_eq!(
        why(iteration.withheld(), "mcp__git__odd"),
        "its source `mcp:git` withholds it: its input schema is not one of an object"
    );
    let withheld: Value = json!(iteration.withheld().tools().next());
    assert_eq!((&withheld["by"], &withheld["origin"]), (&json!("gate"), &json!("mcp:git")));
}
