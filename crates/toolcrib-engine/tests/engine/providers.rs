//! Providers, gates and their combination. The numbers of cases are those of the reference report
//! on agentfootprint; more of them are in `discovery`.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use toolcrib_core::{
    CancellationToken, Catalog, DiscoveryError, DiscoveryErrorClass, GateDecision, ListContext,
    Listing, Reason, SkillId, Tool, ToolProvider, concat, gated_tools, skill_scoped_tools,
    static_tools,
};
use toolcrib_engine::{TurnError, TurnOptions};

use crate::support::{
    Log, catalog_names, cx, cx_with_skill, engine, in_time, listed, menu, offered, provider,
    reading, skill_id, skills, tool, why,
};

fn discovery_error(error: TurnError) -> DiscoveryError {
    match error {
        TurnError::Discovery(error) => error,
        other => panic!("{other:?}"),
    }
}

/// A provider that answers once it is released.
fn waiting(
    id: &'static str,
    tools: &[&str],
    released: &CancellationToken,
) -> Arc<dyn ToolProvider> {
    let (tools, released) = (names_to_tools(tools), released.clone());
    provider(id, move |_| {
        let (tools, released) = (tools.clone(), released.clone());
        Listing::later(async move {
            released.cancelled().await;
            Ok(tools.into())
        })
    })
}

fn names_to_tools(names: &[&str]) -> Vec<Tool> {
    names.iter().map(|name| tool(name)).collect()
}

fn only(name: &'static str) -> impl Fn(&Tool, &ListContext) -> bool {
    move |tool, _| *tool.name() == name
}

// Cases 1 to 4. Two lists are equal and separate. That they contain the same tools is our decision:
// changes are detected by content, so the same set is the same list (case 2).
#[tokio::test]
async fn a_static_list_keeps_its_order_and_gives_a_list_of_its_own_each_time() {
    let mut source = names_to_tools(&["c", "a", "b"]);
    let provider = static_tools(source.clone());
    source.clear();
    let first = Arc::clone(&provider).list(&cx()).wait().await.unwrap();
    let mut second = Arc::clone(&provider).list(&cx()).wait().await.unwrap();
    assert_eq!(catalog_names(&first), ["c", "a", "b"]);
    assert!(first.same(&second));
    second.offer(tool("d"));
    assert_eq!(listed(&provider, &cx()).await, ["c", "a", "b"]);
    assert_eq!(listed(&static_tools([]), &cx()).await, [""; 0]);
}

// Cases 5 and 6.
#[tokio::test]
async fn a_gate_admits_in_order_all_or_nothing() {
    let all = || static_tools(names_to_tools(&["read_a", "write_b", "read_c"]));
    let reads = gated_tools("reads", all(), |tool: &Tool, _: &ListContext| {
        tool.name().starts_with("read_")
    });
    assert_eq!(listed(&reads, &cx()).await, ["read_a", "read_c"]);
    let nothing = gated_tools("no", all(), |_: &Tool, _: &ListContext| false);
    assert_eq!(listed(&nothing, &cx()).await, [""; 0]);
    let everything = gated_tools("yes", all(), |_: &Tool, _: &ListContext| true);
    assert_eq!(listed(&everything, &cx()).await, ["read_a", "write_b", "read_c"]);
}

// Case 8; case 7 is `seed_002` below.
#[tokio::test]
async fn stacked_gates_let_through_what_all_let_through_and_the_outer_sees_what_is_left() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let inner = gated_tools("inner", static_tools(names_to_tools(&["a", "z"])), only("a"));
    let outer = gated_tools("outer", inner, {
        let seen = Arc::clone(&seen);
        move |tool: &Tool, _: &ListContext| {
            seen.lock().unwrap().push(tool.name().to_string());
            tool.name().starts_with('z')
        }
    });
    let catalog = outer.list(&cx()).wait().await.unwrap();
    assert_eq!(catalog_names(&catalog), [""; 0]);
    assert_eq!(*seen.lock().unwrap(), ["a"]);
    let held: Vec<_> = catalog
        .withheld_by_provider()
        .iter()
        .map(|held| (held.tool.name().to_string(), held.gate.to_string()))
        .collect();
    assert_eq!(held, [("z".into(), "inner".into()), ("a".into(), "outer".into())]);
}

#[tokio::test]
async fn a_gate_judges_only_what_its_own_provider_offers() {
    let gate = gated_tools("no", static_tools([tool("mine")]), |_: &Tool, _: &ListContext| false);
    let both = concat([static_tools([tool("theirs")]), gate]);
    assert_eq!(listed(&both, &cx()).await, ["theirs"]);
}

#[tokio::test]
async fn a_gate_gives_each_caller_its_own_list_and_an_unchanged_one_again() {
    let gate = gated_tools(
        "late",
        static_tools(names_to_tools(&["a", "b", "c", "d"])),
        |tool: &Tool, cx: &ListContext| cx.iteration() > 1 || !"bd".contains(&**tool.name()),
    );
    let (first, later) = (cx().with_iteration(1), cx().with_iteration(2));
    for _ in 0..2 {
        assert_eq!(listed(&gate, &first).await, ["a", "c"]);
        assert_eq!(listed(&gate, &later).await, ["a", "b", "c", "d"]);
    }
    let again = || async { Arc::clone(&gate).list(&first).wait().await.unwrap() };
    let (before, after) = (again().await, again().await);
    assert!(std::ptr::eq(before.offered(), after.offered()), "the same instance of the list");
    assert_eq!(after.withheld_by_provider().len(), 2);
}

// Case 9.
#[tokio::test]
async fn a_gate_sees_the_iteration_the_skills_and_the_identity_as_they_are() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let gate = {
        let seen = Arc::clone(&seen);
        gated_tools("spy", static_tools([tool("a")]), move |_: &Tool, cx: &ListContext| {
            let skills: Vec<_> = cx.active_skills().iter().map(SkillId::to_string).collect();
            let identity = cx.identity();
            seen.lock().unwrap().push((
                cx.iteration(),
                skills,
                identity.tenant.as_deref().map(str::to_owned),
                identity.principal.as_deref().map(str::to_owned),
                identity.conversation.to_string(),
            ));
            true
        })
    };
    let engine = engine()
        .provider(gate)
        .skills(skills([("billing", &[]), ("Health", &[])]).focus(false))
        .build()
        .unwrap();
    let options = TurnOptions::default()
        .tenant("acme")
        .conversation("c-1")
        .skill(skill_id("billing"))
        .skill(skill_id("Health"));
    let mut turn = engine.turn(options).unwrap();
    turn.iteration().await.unwrap();
    turn.iteration().await.unwrap();
    let row = |iteration| {
        let skills = vec!["billing".to_owned(), "Health".to_owned()];
        (iteration, skills, Some("acme".to_owned()), None, "c-1".to_owned())
    };
    assert_eq!(*seen.lock().unwrap(), [row(1), row(2)]);
}

// Case 10.
#[tokio::test]
async fn a_gate_that_fails_or_panics_ends_the_iteration_and_names_gate_tool_and_provider() {
    let failing = gated_tools(
        "inner",
        static_tools(names_to_tools(&["a", "b"])),
        |tool: &Tool, _: &ListContext| match tool.name().as_str() {
            "b" => Err("the directory is down"),
            _ => Ok(true),
        },
    );
    let panicking = gated_tools(
        "inner",
        static_tools(names_to_tools(&["a", "b"])),
        |tool: &Tool, _: &ListContext| {
            assert!(*tool.name() != "b", "bug");
            true
        },
    );
    for (gate, problem) in [
        (failing, "gate `inner` failed on tool `b`: the directory is down"),
        (panicking, "gate `inner` failed on tool `b`: it panicked: bug"),
    ] {
        let outer = gated_tools("outer", gate, |_: &Tool, _: &ListContext| true);
        let engine = engine().tool(tool("mine")).provider(outer).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let log = Log::of(turn.events().run());
        let error = discovery_error(turn.iteration().await.unwrap_err());
        assert_eq!(error.class(), DiscoveryErrorClass::Gate);
        assert_eq!(error.message(), problem);
        assert_eq!(error.provider(), Some("gated(inner) > static"));
        assert_eq!(
            log.names(),
            [
                "tools.discovery_started",
                "tools.discovery_completed",
                "tools.discovery_started",
                "tools.discovery_failed"
            ]
        );
        let failed = &log.of_name("tools.discovery_failed")[0];
        assert_eq!(failed["error_class"], "gate");
        assert_eq!(failed["provider"], "gated(inner) > static");
        assert_eq!(failed["iteration"], 1);
    }
}

#[tokio::test]
async fn a_gate_that_fails_lets_nothing_through() {
    let gate = gated_tools(
        "g",
        static_tools(names_to_tools(&["a", "b", "c"])),
        |tool: &Tool, _: &ListContext| if *tool.name() == "b" { Err("no") } else { Ok(true) },
    );
    let Listing::Now(Err(error)) = gate.list(&cx()) else {
        panic!("a sync provider answers at once");
    };
    assert_eq!(error.message(), "gate `g` failed on tool `b`: no");
}

// Case 11.
#[tokio::test]
async fn a_gate_compares_names_literally() {
    // A tool's name cannot contain metacharacters, the compared text can.
    let gate = gated_tools("g", static_tools(names_to_tools(&["read_a", "axb"])), only("a.b"));
    assert_eq!(listed(&gate, &cx()).await, [""; 0]);
    assert!(
        Tool::builder("a.*")
            .description("d")
            .handler(|_: serde_json::Value, _: toolcrib_core::ToolContext| async { "" })
            .is_err()
    );
}

// Case 12.
#[tokio::test]
async fn a_ready_listing_stays_ready_and_a_pending_one_pending_in_every_combinator() {
    let all = || names_to_tools(&["a", "b"]);
    let now = concat([
        gated_tools("g", static_tools(all()), only("a")),
        skill_scoped_tools("billing", all()).unwrap(),
    ]);
    assert!(matches!(now.list(&cx()), Listing::Now(Ok(_))));
    let released = CancellationToken::new();
    let later = gated_tools("g", concat([waiting("w", &["a", "b"], &released)]), only("a"));
    let listing = later.list(&cx());
    assert!(matches!(listing, Listing::Later(_)));
    released.cancel();
    assert_eq!(catalog_names(&listing.wait().await.unwrap()), ["a"]);
}

// Case 13.
#[tokio::test]
async fn skill_scoped_tools_need_exactly_their_skill_as_the_active_one() {
    let provider = skill_scoped_tools("billing", [tool("refund")]).unwrap();
    assert_eq!(listed(&provider, &cx_with_skill("billing")).await, ["refund"]);
    for other in ["Billing", "billing ", "health"] {
        assert_eq!(listed(&provider, &cx_with_skill(other)).await, [""; 0]);
    }
    let not_last = cx().with_active_skills(Arc::from([skill_id("billing"), skill_id("health")]));
    assert_eq!(listed(&provider, &not_last).await, [""; 0]);
    let catalog = provider.list(&cx()).wait().await.unwrap();
    assert_eq!(catalog.withheld_by_provider()[0].reason, Reason::NeedsSkill(skill_id("billing")));
}

// Case 14.
#[test]
fn a_blank_skill_is_refused_when_the_provider_is_made() {
    for blank in ["", " ", "\t\n"] {
        let Err(error) = skill_scoped_tools(blank, []) else {
            panic!("{blank:?} passed");
        };
        assert_eq!(error.to_string(), "the id of a skill must not be blank");
    }
}

#[tokio::test]
async fn concat_keeps_its_order_whatever_order_the_answers_come_in() {
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let provider = concat([
        static_tools(names_to_tools(&["s1"])),
        waiting("w1", &["l1"], &first),
        static_tools(names_to_tools(&["s2"])),
        waiting("w2", &["l2"], &second),
        static_tools(names_to_tools(&["s3"])),
    ]);
    for order in [[&first, &second], [&second, &first]] {
        let listing = Arc::clone(&provider).list(&cx());
        let waiting = tokio::spawn(listing.wait());
        for release in order {
            release.cancel();
            tokio::task::yield_now().await;
        }
        let catalog = in_time(waiting).await.unwrap().unwrap();
        assert_eq!(catalog_names(&catalog), ["s1", "l1", "s2", "l2", "s3"]);
    }
}

#[tokio::test]
async fn providers_that_answer_later_are_waited_for_together() {
    // Each answers only once the other is waited for: one after the other would never end.
    let meet = Arc::new(tokio::sync::Barrier::new(3));
    let meeting = |id| {
        let meet = Arc::clone(&meet);
        provider(id, move |_| {
            let meet = Arc::clone(&meet);
            Listing::later(async move {
                meet.wait().await;
                Ok([tool(id)].into())
            })
        })
    };
    let engine = engine()
        .provider(concat([meeting("a"), meeting("b")]))
        .provider(meeting("c"))
        .build()
        .unwrap();
    let offered = in_time(offered(&engine, TurnOptions::default())).await;
    assert_eq!(offered, ["a", "b", "c"]);
}

#[tokio::test]
async fn a_failure_is_reported_after_those_that_were_asked_are_heard_and_nobody_else_is_asked() {
    let heard = Arc::new(AtomicBool::new(false));
    let asked = Arc::new(AtomicUsize::new(0));
    let released = CancellationToken::new();
    let slow = {
        let (heard, released) = (Arc::clone(&heard), released.clone());
        provider("slow", move |_| {
            let (heard, released) = (Arc::clone(&heard), released.clone());
            Listing::later(async move {
                released.cancelled().await;
                heard.store(true, Ordering::SeqCst);
                Ok(Catalog::new())
            })
        })
    };
    let failing =
        provider("failing", |_| Listing::failed(DiscoveryError::source_failed("no route to host")));
    let behind = {
        let asked = Arc::clone(&asked);
        provider("behind", move |_| {
            asked.fetch_add(1, Ordering::SeqCst);
            Listing::now(Catalog::new())
        })
    };
    let engine = engine().provider(slow).provider(failing).provider(behind).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    let begun = async {
        let error = discovery_error(turn.iteration().await.unwrap_err());
        assert!(heard.load(Ordering::SeqCst));
        error
    };
    let (error, ()) = in_time(async { tokio::join!(begun, async { released.cancel() }) }).await;
    assert_eq!(error.to_string(), "provider `failing`: no route to host");
    assert_eq!(error.class(), DiscoveryErrorClass::Source);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert_eq!(log.of_name("tools.discovery_started").len(), 2);
    assert_eq!(log.of_name("tools.discovery_completed").len(), 1);
}

#[tokio::test]
async fn a_failed_iteration_offers_nothing_and_the_next_may_succeed() {
    let down = Arc::new(AtomicBool::new(true));
    let flaky = {
        let down = Arc::clone(&down);
        provider("flaky", move |_| {
            if down.load(Ordering::SeqCst) {
                return Listing::failed(DiscoveryError::source_failed("down"));
            }
            Listing::now([tool("late")])
        })
    };
    let engine = engine().tool(tool("mine")).provider(flaky).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.iteration().await.unwrap_err();
    down.store(false, Ordering::SeqCst);
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(iteration.number(), 2);
    assert_eq!(menu(&iteration), ["mine", "late"]);
}

#[tokio::test]
async fn a_provider_that_panics_now_or_later_fails_and_is_named() {
    let now = provider("now", |_| panic!("bug {}", 1));
    let later = provider("later", |_| Listing::later(async { panic!("bug {}", 1) }));
    for (panicking, id) in [(now, "now"), (later, "later")] {
        let engine = engine()
            .tool(tool("mine"))
            .provider(gated_tools("g", panicking, |_: &Tool, _: &ListContext| true))
            .build()
            .unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let log = Log::of(turn.events().run());
        let error = discovery_error(in_time(turn.iteration()).await.unwrap_err());
        assert_eq!(error.class(), DiscoveryErrorClass::Panic);
        assert_eq!(error.to_string(), format!("provider `gated(g) > {id}`: it panicked: bug 1"));
        let last = log.events().pop().unwrap();
        assert_eq!(last.kind.name(), "tools.discovery_failed");
    }
}

#[tokio::test]
async fn cancellation_ends_a_discovery_that_never_would() {
    let dropped = Arc::new(AtomicBool::new(false));
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let never = {
        let dropped = Arc::clone(&dropped);
        provider("never", move |_| {
            let flag = Flag(Arc::clone(&dropped));
            Listing::later(async move {
                let _flag = flag;
                std::future::pending().await
            })
        })
    };
    let engine = engine().provider(never).build().unwrap();
    let cancel = CancellationToken::new();
    let options = TurnOptions::default().cancellation(cancel.clone());
    let mut turn = engine.turn(options).unwrap();
    let log = Log::of(turn.events().run());
    let cancelling = async {
        tokio::task::yield_now().await;
        cancel.cancel();
    };
    let (outcome, ()) = in_time(async { tokio::join!(turn.iteration(), cancelling) }).await;
    assert!(matches!(outcome, Err(TurnError::Cancelled)));
    assert!(dropped.load(Ordering::SeqCst));
    assert_eq!(log.of_name("tools.discovery_failed")[0]["error_class"], "cancelled");
}

// Case 20.
#[tokio::test]
async fn without_a_provider_there_is_no_discovery() {
    let engine = engine().build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    assert!(turn.iteration().await.unwrap().menu().is_empty());
    assert_eq!(log.names(), ["tools.offered"]);
}

// Case 25.
#[tokio::test]
async fn what_a_provider_offered_to_one_run_is_not_seen_by_the_next() {
    let answers = Arc::new(AtomicUsize::new(0));
    let changing = provider("changing", move |_| {
        let n = answers.fetch_add(1, Ordering::SeqCst);
        Listing::now([tool(&format!("tool_{n}"))])
    });
    let engine = engine().provider(changing).build().unwrap();
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["tool_0"]);
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["tool_1"]);
}

/// The composition of seed 002: the tools that a skill's map admits out of the read-only ones.
mod seed_002 {
    use super::{
        Arc, GateDecision, HashMap, ListContext, Reason, Tool, ToolProvider, TurnOptions, engine,
        gated_tools, offered, reading, skill_id, skills, static_tools, tool, why,
    };

    fn composition() -> Arc<dyn ToolProvider> {
        let by_skill = HashMap::from([
            ("billing", vec!["read_billing", "write_billing"]),
            ("health", vec!["read_health"]),
        ]);
        let all = static_tools([
            reading("read_billing"),
            tool("write_billing"),
            reading("read_health"),
            tool("write_health"),
        ]);
        let read_only = gated_tools("read_only", all, |tool: &Tool, _: &ListContext| {
            tool.annotations().read_only
        });
        gated_tools("skill", read_only, move |tool: &Tool, cx: &ListContext| {
            let Some(skill) = cx.active_skill() else {
                return GateDecision::Offer;
            };
            let listed = by_skill.get(skill.as_str());
            if listed.is_some_and(|names| names.contains(&tool.name().as_str())) {
                GateDecision::Offer
            } else {
                GateDecision::Withhold(Reason::from(format!("not a tool of {skill}")))
            }
        })
    }

    fn with_skills() -> toolcrib_engine::Engine {
        engine()
            .provider(composition())
            .skills(skills([("billing", &[]), ("health", &[])]).focus(false))
            .build()
            .unwrap()
    }

    #[tokio::test]
    async fn seed_002_with_billing_exactly_read_billing_is_offered() {
        let billing = TurnOptions::default().skill(skill_id("billing"));
        assert_eq!(offered(&with_skills(), billing).await, ["read_billing", "read_skill"]);
        let health = TurnOptions::default().skill(skill_id("health"));
        assert_eq!(offered(&with_skills(), health).await, ["read_health", "read_skill"]);
    }

    #[tokio::test]
    async fn seed_002_without_a_skill_the_read_only_tools_alone_are_offered() {
        let engine = engine().provider(composition()).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let iteration = turn.iteration().await.unwrap();
        assert_eq!(super::menu(&iteration), ["read_billing", "read_health"]);
        assert_eq!(
            why(iteration.withheld(), "write_billing"),
            "gate `read_only`: the gate rejected the tool"
        );
    }
}
