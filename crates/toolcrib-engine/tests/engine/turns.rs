//! Turns that an executor drives: every way out, the hooks of middleware, the turn's tools
//! afterwards.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::json;
use toolcrib_core::{
    BoxFuture, CancellationToken, DiscoveryError, ErrorCode, HookResult, Lifetime, Listing,
    Middleware, Policy, Rule, Tool, ToolRegistry, TurnContext, args_digest,
};
use toolcrib_engine::{
    Engine, EngineBuilder, ExecutorResult, IterationContext, Limits, TurnEnd, TurnError,
    TurnOptions, TurnOutcome, TurnRunner,
};

use crate::support::{Log, builder, call, engine, in_time, menu, provider, says, tool};

fn brief(name: &str) -> Tool {
    says(builder(name).ephemeral(Lifetime::Iteration), "ran")
}

fn names(tools: &[Tool]) -> Vec<String> {
    tools.iter().map(|tool| tool.name().to_string()).collect()
}

async fn acks(cx: IterationContext) -> ExecutorResult {
    Ok(cx.ack()?)
}

async fn run<F, Fut>(engine: EngineBuilder, executor: F) -> (TurnOutcome, Log)
where
    F: FnMut(IterationContext) -> Fut + Send,
    Fut: Future<Output = ExecutorResult> + Send,
{
    let engine = engine.build().unwrap();
    let log = Log::of(engine.events());
    let runner = TurnRunner::new(engine).max_iterations(4);
    let outcome = in_time(runner.run(TurnOptions::default(), executor)).await.unwrap();
    if let TurnEnd::Nacked(error) = &outcome.end {
        // A failed assertion in an executor is a panic, which is a nack.
        assert!(!error.to_string().contains("panicked"), "{error}");
    }
    let ends = log.names();
    assert_eq!((ends.first(), ends.last()), (Some(&"agent.turn_start"), Some(&"agent.turn_end")));
    let end = &log.of_name("agent.turn_end")[..];
    assert_eq!(end.len(), 1);
    assert_eq!(end[0]["stopped"], outcome.end.as_str());
    assert_eq!(end[0]["iterations"], outcome.iterations);
    let count = |name| log.of_name(name).len();
    assert_eq!(count("agent.iteration_start"), count("agent.iteration_end"));
    assert_eq!(count("agent.iteration_start"), outcome.iterations as usize);
    (outcome, log)
}

/// The configured behavior at a hook.
type AtPlace = Arc<dyn Fn(&'static str, TurnContext<'_>) -> HookResult + Send + Sync>;

struct Placed {
    name: &'static str,
    does: AtPlace,
}

impl Middleware for Placed {
    fn name(&self) -> &str {
        self.name
    }
    fn before_turn<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async move { (self.does)("before_turn", cx) })
    }
    fn after_turn<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async move { (self.does)("after_turn", cx) })
    }
    fn before_iteration<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async move { (self.does)("before_iteration", cx) })
    }
    fn after_iteration<'a>(&'a self, cx: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        Box::pin(async move { (self.does)("after_iteration", cx) })
    }
}

type Seen = Arc<Mutex<Vec<String>>>;

/// Records each hook, and then behaves as configured.
fn placed(
    name: &'static str,
    seen: &Seen,
    does: impl Fn(&'static str, TurnContext<'_>) -> HookResult + Send + Sync + 'static,
) -> Placed {
    let seen = Arc::clone(seen);
    let does: AtPlace = Arc::new(move |place, cx: TurnContext<'_>| {
        seen.lock().unwrap().push(format!("{name} {place} {}", cx.iteration));
        does(place, cx)
    });
    Placed { name, does }
}

fn taken(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut seen.lock().unwrap())
}

// Case 58.
#[tokio::test]
async fn a_bound_registry_has_only_its_baseline_left_after_an_ack() {
    for bound in [true, false] {
        let main = Arc::new(ToolRegistry::try_from(vec![tool("main")]).unwrap());
        let used = Arc::clone(&main);
        let (outcome, _) = run(engine(), move |cx| {
            let main = Arc::clone(&used);
            async move {
                let forged = ToolRegistry::try_from(vec![brief("forged")])?;
                let offered = ToolRegistry::merge([&main, &forged])?;
                main.register(brief("forged_too"))?;
                if bound {
                    main.bind_context(&cx);
                }
                assert_eq!(names(&offered.all()), ["main", "forged"]);
                cx.ack()?;
                assert_eq!(main.has("forged_too"), !bound, "gone when ack returns");
                Ok(())
            }
        })
        .await;
        assert!(matches!(outcome.end, TurnEnd::Acked));
        let left: &[&str] = if bound { &["main"] } else { &["main", "forged_too"] };
        assert_eq!(names(&main.all()), left);
    }
}

// Case 59. `agent.iteration_end` of the iteration that acked is said too, and it is counted.
#[tokio::test]
async fn an_executor_that_acks_has_one_iteration_from_its_start_to_its_end() {
    let (outcome, log) = run(engine(), acks).await;
    assert!(matches!(outcome.end, TurnEnd::Acked));
    assert_eq!(outcome.iterations, 1);
    let told = log.names();
    let frame = ["agent.turn_start", "agent.iteration_start"];
    assert_eq!(told[..2], frame);
    assert_eq!(told[told.len() - 2..], ["agent.iteration_end", "agent.turn_end"]);
    assert!(log.of_name("agent.turn_end")[0].get("error").is_none());
}

// Case 60.
#[tokio::test]
async fn a_nack_ends_the_turn_with_that_very_error_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("no more hunter22")]
    struct Mine;
    let secret = toolcrib_engine::Redactor::new(["hunter22".to_owned()]);
    let (outcome, log) =
        run(engine().redactor(secret), |cx| async move { Ok(cx.nack(Mine)?) }).await;
    let TurnEnd::Nacked(error) = outcome.end else { panic!("{outcome:?}") };
    assert!(error.is::<Mine>());
    assert_eq!(log.of_name("agent.turn_end")[0]["error"], "no more [redacted]");
    assert_eq!(log.names().iter().filter(|name| **name == "agent.turn_end").count(), 1);
}

// Case 61.
#[tokio::test]
async fn calls_then_an_ack_take_two_iterations() {
    let (outcome, log) = run(engine().tool(tool("t")), |mut cx| async move {
        if cx.number() == 2 {
            return Ok(cx.ack()?);
        }
        assert!(cx.execute(vec![call("t", json!({}))]).await[0].is_ok());
        Ok(())
    })
    .await;
    assert_eq!((outcome.end.as_str(), outcome.iterations), ("acked", 2));
    assert_eq!((log.of_name("tool.start").len(), log.of_name("tool.end").len()), (1, 1));
    let calls: Vec<_> =
        log.of_name("agent.iteration_end").iter().map(|end| end["tool_calls"].clone()).collect();
    assert_eq!(calls, [1, 0]);
}

// Case 62. There a middleware that does not call what is next; ours says why it does not go on.
#[tokio::test]
async fn a_middleware_that_fails_before_the_turn_keeps_it_from_beginning() {
    let seen = Seen::default();
    let fails = |name, at: &'static str| {
        placed(name, &seen, move |place, _| match place == at {
            true => Err("hunter22 is closed".into()),
            false => Ok(()),
        })
    };
    for (at, what, iterations) in [
        ("before_turn", "before the turn", 0),
        ("before_iteration", "before the iteration", 1),
        ("after_iteration", "after the iteration", 1),
        ("after_turn", "after the turn", 1),
    ] {
        let (ran, redactor) = (
            Arc::new(AtomicUsize::new(0)),
            toolcrib_engine::Redactor::new(["hunter22".to_owned()]),
        );
        let counted = Arc::clone(&ran);
        let engine = engine()
            .redactor(redactor)
            .middleware(fails("outer", "never"))
            .middleware(fails("inner", at));
        let (outcome, log) = run(engine, move |cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            acks(cx)
        })
        .await;
        let TurnEnd::Failed(failure @ TurnError::Middleware(_)) = outcome.end else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!(
            failure.to_string(),
            format!("middleware `inner` failed {what}: [redacted] is closed")
        );
        assert_eq!(outcome.iterations, iterations);
        assert_eq!(ran.load(Ordering::Relaxed), usize::from(at.starts_with("after")));
        assert!(log.of_name("agent.turn_end")[0]["error"].is_string());
        // A middleware whose *before* succeeded gets its *after*; one whose *before* failed does
        // not.
        let seen = taken(&seen);
        assert_eq!(seen.last().unwrap(), &format!("outer after_turn {iterations}"));
        assert_eq!(seen.iter().any(|one| one.starts_with("inner after_turn")), at != "before_turn");
    }
}

// Case 63.
#[tokio::test]
async fn a_middleware_that_cancels_has_its_after_and_those_behind_it_nothing() {
    let seen = Seen::default();
    let cancels = |at: &'static str| {
        placed("cancels", &seen, move |place, cx| {
            if place == at {
                cx.cancellation.cancel();
            }
            Ok(())
        })
    };
    for (at, told) in [
        ("before_turn", vec!["cancels before_turn 0", "cancels after_turn 0"]),
        (
            "before_iteration",
            vec![
                "cancels before_turn 0",
                "later before_turn 0",
                "cancels before_iteration 1",
                "cancels after_iteration 1",
                "later after_turn 1",
                "cancels after_turn 1",
            ],
        ),
    ] {
        let engine =
            engine().middleware(cancels(at)).middleware(placed("later", &seen, |_, _| Ok(())));
        let (outcome, log) = run(engine, |_| async { panic!("not called") }).await;
        assert!(matches!(outcome.end, TurnEnd::Cancelled));
        assert!(log.of_name("agent.turn_end")[0].get("error").is_none());
        assert_eq!(taken(&seen), told);
    }
}

// Case 64.
#[tokio::test]
async fn a_turn_that_is_cancelled_before_it_begins_starts_and_ends_and_does_nothing_else() {
    let engine = engine().tool(tool("t")).build().unwrap();
    let log = Log::of(engine.events());
    let cancellation = CancellationToken::new();
    cancellation.cancel();
    let options = TurnOptions::default().cancellation(cancellation);
    let outcome = TurnRunner::new(engine).run(options, acks).await.unwrap();
    assert_eq!((outcome.end.as_str(), outcome.iterations), ("cancelled", 0));
    assert_eq!(log.names(), ["agent.turn_start", "agent.turn_end"]);
}

// Case 65.
#[tokio::test]
async fn one_runner_passes_its_middleware_anew_in_each_turn_and_iteration() {
    let seen = Seen::default();
    let engine = engine()
        .middleware(placed("a", &seen, |_, _| Ok(())))
        .middleware(placed("b", &seen, |_, _| Ok(())))
        .build()
        .unwrap();
    let runner = TurnRunner::new(engine);
    for _ in 0..3 {
        let second = |cx: IterationContext| async move {
            if cx.number() == 2 { Ok(cx.ack()?) } else { Ok(()) }
        };
        runner.run(TurnOptions::default(), second).await.unwrap();
        assert_eq!(
            taken(&seen),
            [
                "a before_turn 0",
                "b before_turn 0",
                "a before_iteration 1",
                "b before_iteration 1",
                "b after_iteration 1",
                "a after_iteration 1",
                "a before_iteration 2",
                "b before_iteration 2",
                "b after_iteration 2",
                "a after_iteration 2",
                "b after_turn 2",
                "a after_turn 2",
            ]
        );
    }
}

// Case 66. There is one registry per turn and none of an iteration, so nothing has to flow back.
#[tokio::test]
async fn what_middleware_and_executors_edit_is_offered_next_and_in_no_other_turn() {
    let seen = Seen::default();
    let edits = placed("edits", &seen, |place, cx| {
        match place {
            "before_turn" => {
                cx.registry.unregister("old");
                cx.registry.hide("secret");
            }
            "before_iteration" => cx.registry.register(brief(&format!("for_{}", cx.iteration)))?,
            "after_iteration" => cx.registry.register(tool(&format!("after_{}", cx.iteration)))?,
            _ => {}
        }
        Ok(())
    });
    let engine = engine()
        .tools([tool("old"), tool("always"), tool("secret")])
        .middleware(edits)
        .build()
        .unwrap();
    let runner = TurnRunner::new(engine.clone());
    let turn = || {
        let runner = runner.clone();
        let menus = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&menus);
        async move {
            let outcome = runner
                .run(TurnOptions::default(), move |mut cx: IterationContext| {
                    let log = Arc::clone(&log);
                    async move {
                        log.lock().unwrap().push(menu(&cx));
                        cx.registry().overwrite(tool("by_executor"));
                        tokio::task::yield_now().await;
                        // A hidden tool is as unknown as a nonexistent one.
                        let calls = vec![call("secret", json!({})), call("no_tool", json!({}))];
                        let refused = cx.execute(calls).await;
                        assert!(refused.iter().all(|r| r.code == Some(ErrorCode::NotAvailable)));
                        assert_eq!(
                            refused[0].value.replace("secret", "x"),
                            refused[1].value.replace("no_tool", "x")
                        );
                        if cx.number() == 3 { Ok(cx.ack()?) } else { Ok(()) }
                    }
                })
                .await
                .unwrap();
            let left = names(&outcome.registry.visible());
            (menus.lock().unwrap().clone(), left)
        }
    };
    let (one, two) = tokio::join!(turn(), turn());
    for (menus, left) in [one, two, turn().await] {
        assert_eq!(menus[0], ["always", "for_1"]);
        assert_eq!(menus[1], ["always", "by_executor", "after_1", "for_2"]);
        assert_eq!(menus[2], ["always", "by_executor", "after_1", "after_2", "for_3"]);
        assert_eq!(left, ["always", "by_executor", "after_1", "after_2", "after_3"]);
    }
    let mut plain = engine.turn(TurnOptions::default()).unwrap();
    assert_eq!(menu(&plain.iteration().await.unwrap()), ["old", "always", "secret"]);
}

// Case 67.
#[tokio::test]
async fn two_engines_with_different_tools_of_one_name_call_each_its_own() {
    for text in ["one", "two"] {
        run(engine().tool(says(builder("t"), text)), |mut cx| async move {
            let results = cx.execute(vec![call("t", json!({}))]).await;
            assert_eq!(&*results[0].value, text);
            acks(cx).await
        })
        .await;
    }
}

// Case 68.
#[tokio::test]
async fn a_second_signal_is_an_error_and_the_turn_ends_as_the_first_says() {
    let (outcome, _) = run(engine(), |cx| async move {
        cx.ack()?;
        assert_eq!(cx.ack().unwrap_err().first, "acked");
        assert_eq!(cx.nack("late").unwrap_err().first, "acked");
        Ok(())
    })
    .await;
    assert!(matches!(outcome.end, TurnEnd::Acked));
    let (outcome, _) = run(engine(), |cx| async move {
        cx.nack("no")?;
        // Handed on, this ends the turn as an error of the executor would; but it has ended.
        Ok(cx.ack()?)
    })
    .await;
    let TurnEnd::Failed(TurnError::Executor(error)) = outcome.end else { panic!("{outcome:?}") };
    assert!(error.is::<toolcrib_core::AlreadySignaledError>());
}

// Case 74, without deletion: what was called stays called.
#[tokio::test]
async fn identical_calls_of_a_turn_are_counted() {
    let (outcome, _) = run(engine().tool(tool("t")), |mut cx| async move {
        let (same, other) =
            (args_digest("t", &json!({ "a": 1, "b": 2 })), args_digest("t", &json!({})));
        let number = cx.number() as usize;
        assert_eq!((cx.call_count(same), cx.call_count(other)), (number - 1, 0));
        cx.execute(vec![call("t", json!({ "b": 2, "a": 1 }))]).await;
        assert_eq!(cx.call_count(same), number);
        if number == 2 { acks(cx).await } else { Ok(()) }
    })
    .await;
    assert_eq!((outcome.end.as_str(), outcome.iterations), ("acked", 2));
}

#[tokio::test]
async fn neither_signal_means_another_iteration_up_to_the_cap() {
    let (outcome, _) = run(engine(), |_| async { Ok(()) }).await;
    assert_eq!((outcome.end.as_str(), outcome.iterations), ("max_iterations", 4));
    let none = TurnRunner::new(engine().build().unwrap()).max_iterations(0);
    let outcome = none.run(TurnOptions::default(), acks).await.unwrap();
    assert_eq!((outcome.end.as_str(), outcome.iterations), ("max_iterations", 0));
}

/// The way out of the second iteration; in both, a tool for an iteration is offered.
type WayOut = fn(IterationContext) -> BoxFuture<'static, ExecutorResult>;

fn ways_out() -> Vec<(&'static str, WayOut)> {
    vec![
        ("acked", |cx| Box::pin(acks(cx))),
        ("nacked", |cx| Box::pin(async move { Ok(cx.nack("no")?) })),
        ("nacked", |_| Box::pin(async { Err("no".into()) })),
        ("nacked", |_| Box::pin(async { panic!("bug") })),
        ("nacked", |_| panic!("bug")),
        ("cancelled", |cx| {
            Box::pin(async move {
                cx.abort();
                Ok(())
            })
        }),
        ("failed", |cx| {
            Box::pin(async move {
                cx.ack()?;
                Err("too late".into())
            })
        }),
        ("failed", |mut cx| {
            Box::pin(async move {
                cx.execute(vec![call("halts", json!({}))]).await;
                Ok(cx.ack()?)
            })
        }),
        ("max_iterations", |_| Box::pin(async { Ok(()) })),
    ]
}

#[tokio::test]
async fn on_every_way_out_the_last_iteration_ends_and_what_lived_for_it_goes_except_after_a_nack() {
    for (stopped, way_out) in ways_out() {
        let seen = Seen::default();
        let adds = placed("adds", &seen, |place, cx| {
            if place == "before_iteration" {
                cx.registry.register(brief(&format!("for_{}", cx.iteration)))?;
            }
            if place == "after_iteration" {
                assert!(cx.registry.has(&format!("for_{}", cx.iteration)));
            }
            Ok(())
        });
        let engine = engine()
            .tools([tool("always"), tool("halts")])
            .policy(Policy::of([Rule::halt("stop").tools(["halts"])]))
            .middleware(adds)
            .build()
            .unwrap();
        let log = Log::of(engine.events());
        let kept: Arc<Mutex<Option<IterationContext>>> = Arc::default();
        let runner = TurnRunner::new(engine).max_iterations(2);
        let keep = Arc::clone(&kept);
        let outcome = runner
            .run(TurnOptions::default(), move |cx: IterationContext| -> BoxFuture<'static, _> {
                if cx.number() == 2 {
                    assert!(cx.menu().get("for_1").is_none() && cx.menu().get("for_2").is_some());
                    // No iteration will offer it.
                    cx.registry().register(brief("too_late")).unwrap();
                    return way_out(cx);
                }
                *keep.lock().unwrap() = Some(cx);
                Box::pin(async { Ok(()) })
            })
            .await
            .unwrap();
        assert_eq!((outcome.end.as_str(), outcome.iterations), (stopped, 2));
        let left = names(&outcome.registry.all());
        let baseline = ["always", "halts"];
        if stopped == "nacked" {
            assert_eq!(left, ["always", "halts", "for_2", "too_late"], "to be looked at");
        } else {
            assert_eq!(left, baseline, "{stopped}");
        }
        assert_eq!(log.of_name("agent.iteration_end").len(), 2);
        assert_eq!(
            taken(&seen)[4..],
            ["adds after_iteration 2".to_owned(), "adds after_turn 2".to_owned()]
        );
        // A context that was passed on can no longer make calls.
        let cx = kept.lock().unwrap().take();
        let mut cx = cx.unwrap();
        for name in ["always", "for_1", "for_2"] {
            assert!(!cx.execute(vec![call(name, json!({}))]).await[0].is_ok());
        }
        assert_eq!(log.names().last(), Some(&"agent.turn_end"));
    }
}

#[tokio::test]
async fn a_turn_that_was_signaled_has_no_further_iteration() {
    let engine = engine().tool(tool("t")).build().unwrap();
    for nack in [false, true] {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        turn.registry().register(brief("brief")).unwrap();
        let mut executor = move |cx: IterationContext| async move {
            if nack { Ok(cx.nack("no")?) } else { Ok(cx.ack()?) }
        };
        turn.drive(&mut executor, 3).await;
        assert_eq!(turn.registry().has("brief"), nack);
        assert!(matches!(turn.iteration().await, Err(TurnError::Over)));
        let again = turn.drive(&mut executor, 3).await;
        assert_eq!((again.as_str(), turn.iterations()), (if nack { "nacked" } else { "acked" }, 1));
    }
}

#[tokio::test]
async fn a_nack_ends_what_its_iteration_still_calls() {
    let endless = builder("endless")
        .handler(|_: serde_json::Value, _: toolcrib_core::ToolContext| {
            std::future::pending::<&str>()
        })
        .unwrap();
    let (outcome, _) = run(engine().tools([endless, tool("t")]), |mut cx| async move {
        cx.nack("no")?;
        let results = cx.execute(vec![call("endless", json!({})), call("t", json!({}))]).await;
        assert!(results.iter().all(|result| result.code == Some(ErrorCode::Cancelled)));
        Ok(())
    })
    .await;
    assert_eq!(outcome.end.as_str(), "nacked");
}

#[tokio::test]
async fn a_listing_that_fails_ends_the_turn_and_the_iteration_it_was_for() {
    let down = provider("down", |_| Listing::failed(DiscoveryError::source_failed("no route")));
    let (outcome, _) = run(engine().provider(down), acks).await;
    let TurnEnd::Failed(TurnError::Discovery(error)) = outcome.end else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!((error.message(), outcome.iterations), ("no route", 1));
}

#[tokio::test]
async fn a_middleware_may_end_the_turn_in_place_of_the_executor() {
    let seen = Seen::default();
    let caps = placed("caps", &seen, |place, cx| {
        if place == "after_iteration" && cx.iteration == 2 {
            cx.signals.nack("two are enough")?;
        }
        Ok(())
    });
    let (outcome, _) = run(engine().middleware(caps), |_| async { Ok(()) }).await;
    let TurnEnd::Nacked(error) = &outcome.end else { panic!("{outcome:?}") };
    assert_eq!((error.to_string().as_str(), outcome.iterations), ("two are enough", 2));
    let early = placed("early", &seen, |place, cx| {
        if place == "before_iteration" {
            cx.signals.ack()?;
        }
        Ok(())
    });
    let (outcome, log) = run(engine().middleware(early), |_| async { panic!("not called") }).await;
    assert_eq!((outcome.end.as_str(), outcome.iterations), ("acked", 1));
    assert!(log.of_name("tools.offered").is_empty());
}

/// Panics, or waits forever, at a configured hook.
struct Hangs {
    at: &'static str,
    panics: bool,
}

impl Hangs {
    fn at<'a>(&'a self, place: &str) -> BoxFuture<'a, HookResult> {
        if place != self.at {
            return Box::pin(async { Ok(()) });
        }
        assert!(!self.panics, "bug in {place}");
        Box::pin(std::future::pending())
    }
}

impl Middleware for Hangs {
    fn name(&self) -> &str {
        "hangs"
    }
    fn before_turn<'a>(&'a self, _: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.at("before_turn")
    }
    fn after_turn<'a>(&'a self, _: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.at("after_turn")
    }
    fn before_iteration<'a>(&'a self, _: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.at("before_iteration")
    }
    fn after_iteration<'a>(&'a self, _: TurnContext<'a>) -> BoxFuture<'a, HookResult> {
        self.at("after_iteration")
    }
}

#[tokio::test(start_paused = true)]
async fn a_middleware_that_hangs_or_panics_at_any_place_ends_the_turn() {
    for at in ["before_turn", "after_turn", "before_iteration", "after_iteration"] {
        for (panics, problem) in
            [(false, "it took longer than a call may"), (true, "it panicked: bug")]
        {
            let engine: Engine = engine().middleware(Hangs { at, panics }).build().unwrap();
            let runner = TurnRunner::new(engine);
            let running = runner.run(TurnOptions::default(), acks);
            // Longer than a call may take; the paused clock does not advance while tasks can run.
            let limit = Limits::default().tool_timeout * 2;
            let outcome = tokio::time::timeout(limit, running).await.unwrap().unwrap();
            let TurnEnd::Failed(failure) = outcome.end else { panic!("{:?}", outcome.end) };
            assert!(failure.to_string().contains(problem), "{failure}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cancellation_gives_a_middleware_that_hangs_the_time_of_a_tool_and_no_more() {
    let cancellation = CancellationToken::new();
    let engine = engine().middleware(Hangs { at: "after_turn", panics: false }).build().unwrap();
    let began = tokio::time::Instant::now();
    let cancel = cancellation.clone();
    let options = TurnOptions::default().cancellation(cancellation);
    let outcome = TurnRunner::new(engine)
        .run(options, move |_: IterationContext| {
            cancel.cancel();
            async { Ok(()) }
        })
        .await
        .unwrap();
    assert_eq!(began.elapsed(), Limits::default().cancel_grace);
    let TurnEnd::Failed(failure) = outcome.end else { panic!("{:?}", outcome.end) };
    assert!(failure.to_string().ends_with("the run was cancelled, and it did not stop"));
}

#[tokio::test]
async fn a_runner_that_is_dropped_half_way_cancels_its_turn_and_says_so() {
    let engine = engine().build().unwrap();
    let log = Log::of(engine.events());
    let cancelled = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&cancelled);
    let runner = TurnRunner::new(engine);
    let mut running = Box::pin(runner.run(TurnOptions::default(), move |cx: IterationContext| {
        *seen.lock().unwrap() = Some(cx.cancellation().clone());
        std::future::pending::<ExecutorResult>()
    }));
    assert!(futures_util::FutureExt::now_or_never(&mut running).is_none());
    drop(running);
    assert!(cancelled.lock().unwrap().as_ref().unwrap().is_cancelled());
    assert_eq!(log.of_name("agent.turn_end")[0]["stopped"], "cancelled");
}

#[tokio::test]
async fn turns_of_one_runner_may_run_on_many_tasks() {
    let runner = TurnRunner::new(engine().tool(tool("t")).build().unwrap());
    let turns = (0..32).map(|n| {
        let runner = runner.clone();
        tokio::spawn(async move {
            let executor = |cx: IterationContext| async move {
                let own = format!("own_{n}");
                if cx.number() == 1 {
                    return Ok(cx.registry().register(tool(&own))?);
                }
                assert_eq!(menu(&cx), ["t", &own]);
                acks(cx).await
            };
            runner.run(TurnOptions::default(), executor).await.map(|outcome| outcome.end)
        })
    });
    for turn in Vec::from_iter(turns) {
        assert!(matches!(turn.await.unwrap().unwrap(), TurnEnd::Acked));
    }
}
