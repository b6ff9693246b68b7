//! The check of providers: valid ones pass, and for each clause a violation is found.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::time::sleep;
use toolcrib_core::{
    CancellationToken, Catalog, DiscoveryError, Identity, ListContext, Listing, OnCollision,
    SkillId, Tool, ToolContext, ToolProvider, ToolRegistry, concat, gated_tools,
    skill_scoped_tools, static_tools,
};
use toolcrib_testing::{
    CheckReport, Clause, Fault, Violations, check_provider, faulty, paused, tool,
};

use crate::support::failure;

/// A provider made from a function.
struct By<F>(F);

impl<F> ToolProvider for By<F>
where
    F: Fn(&ListContext) -> Listing + Send + Sync + 'static,
{
    fn id(&self) -> &str {
        "by"
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        (self.0)(cx)
    }
}

fn by<F>(list: F) -> Arc<dyn ToolProvider>
where
    F: Fn(&ListContext) -> Listing + Send + Sync + 'static,
{
    Arc::new(By(list))
}

fn named(name: &str) -> Tool {
    tool(name).tool()
}

fn one(name: &str) -> Catalog {
    [named(name)].into()
}

fn check(provider: Arc<dyn ToolProvider>) -> Result<CheckReport, Violations> {
    paused(check_provider(provider))
}

/// Asserts that exactly these clauses are violated; returns the whole text.
#[track_caller]
fn breaks<const N: usize>(provider: Arc<dyn ToolProvider>, clauses: [Clause; N]) -> String {
    let violations = check(provider).unwrap_err();
    assert_eq!(violations.clauses(), clauses.into(), "{violations}");
    violations.to_string()
}

/// Waits, and stops at cancellation.
async fn patiently(cx: ListContext, name: String) -> Result<Catalog, DiscoveryError> {
    tokio::select! {
        () = cx.cancellation().cancelled() => Err(DiscoveryError::cancelled()),
        () = sleep(Duration::from_secs(5)) => Ok(one(&name)),
    }
}

#[test]
fn the_providers_of_the_house_keep_the_contract() {
    let tools = || static_tools([named("read_a"), named("write_b")]);
    let registry: Arc<dyn ToolProvider> =
        Arc::new(ToolRegistry::try_from(vec![named("a"), named("b")]).unwrap());
    let gate =
        |tool: &Tool, cx: &ListContext| cx.iteration() == 1 || tool.name().starts_with("read");
    let gated = gated_tools("read", tools(), gate);
    let scoped = skill_scoped_tools("billing", [named("refund")]).unwrap();
    for provider in
        [tools(), registry, gated, scoped, concat([tools(), static_tools([named("c")])])]
    {
        let checked = check(provider).unwrap();
        assert!(!checked.tried(Clause::StopsWhenCancelled), "they answer at once");
        let tried = [Clause::SameList, Clause::Reentrant, Clause::IdStable];
        assert!(tried.into_iter().all(|clause| checked.tried(clause)));
    }
}

#[test]
fn a_sound_provider_that_waits_is_tried_for_everything() {
    let provider = by(|cx| Listing::later(patiently(cx.clone(), "t".into())));
    let checked = check(concat([static_tools([named("first")]), provider])).unwrap();
    let all = [
        Clause::IdStable,
        Clause::Answers,
        Clause::NamesUnique,
        Clause::SameList,
        Clause::Reentrant,
        Clause::SaysCancelled,
        Clause::LeavesNothing,
        Clause::StopsWhenCancelled,
        Clause::NeverPanics,
    ];
    assert_eq!(checked.clauses(), &all.into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_check_also_holds_on_several_threads_and_a_clock_that_runs() {
    let provider = by(|cx| {
        let cx = cx.clone();
        Listing::later(async move {
            tokio::select! {
                () = cx.cancellation().cancelled() => {}
                () = sleep(Duration::from_millis(5)) => {}
            }
            Ok(one(&format!("in_{}", cx.iteration())))
        })
    });
    let checked = check_provider(provider).assert().await;
    assert!(checked.tried(Clause::Reentrant) && checked.tried(Clause::StopsWhenCancelled));
}

#[test]
fn contexts_of_ones_own_reach_the_provider() {
    let billing = SkillId::new("billing").unwrap();
    let identity =
        Arc::new(Identity { principal: Some("ann".into()), ..Identity::conversation("s") });
    let cx = ListContext::new(identity, CancellationToken::new())
        .with_iteration(3)
        .with_active_skills(Arc::from([billing]));
    let hub = faulty(skill_scoped_tools("billing", [named("refund")]).unwrap());
    paused(check_provider(hub.provider()).context(cx).assert());
    assert!(hub.listings() > 10);
    for cx in hub.asked() {
        assert_eq!((cx.iteration(), cx.active_skill().unwrap().as_str()), (3, "billing"));
        assert_eq!(cx.identity().principal.as_deref(), Some("ann"));
    }
}

#[test]
fn a_list_that_changes_is_found() {
    let count = AtomicUsize::new(0);
    let growing = by(move |_| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        Listing::now(one(&format!("t{n}")))
    });
    let text = breaks(growing, [Clause::SameList, Clause::Reentrant]);
    assert!(
        text.starts_with(
            "provider `by` breaks its contract:\n- the same context must give the \
        same list: it offered [t0], then [t1]\n"
        ),
        "{text}"
    );
    // Each time another definition or another declaration under one name.
    for change in [0, 1, 2] {
        let count = AtomicUsize::new(0);
        let changing = by(move |_| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let builder = Tool::builder("t").description("A tool.");
            let builder = match change {
                0 => builder.description(format!("The tool number {n}.")),
                1 => builder.max_result_chars(1000 + n),
                _ => {
                    builder.input_schema(serde_json::json!({"type": "object", "minProperties": n}))
                }
            };
            Listing::now([builder.handler(|_: Value, _: ToolContext| async { "" }).unwrap()])
        });
        let text = breaks(changing, [Clause::SameList, Clause::Reentrant]);
        assert!(text.contains("`t` is declared differently the second time"), "{text}");
    }
    let count = AtomicUsize::new(0);
    let moody = by(move |_| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        let mut catalog = Catalog::new();
        catalog.withhold(named("t"), "mood".into(), format!("it is {n} o'clock"));
        Listing::now(catalog)
    });
    let text = breaks(moody, [Clause::SameList, Clause::Reentrant]);
    assert!(text.contains("withholds other tools, or for other reasons"), "{text}");
}

#[test]
fn listings_that_share_a_place_are_found() {
    // The last request determines the answer to all.
    let last = Arc::new(Mutex::new(0));
    let mixing = by(move |cx| {
        *last.lock().unwrap() = cx.iteration();
        let last = Arc::clone(&last);
        Listing::later(async move {
            tokio::task::yield_now().await;
            let iteration = *last.lock().unwrap();
            Ok(one(&format!("in_{iteration}")))
        })
    });
    let text = breaks(mixing, [Clause::Reentrant]);
    assert!(text.contains("alone and then concurrently, it offered [in_"), "{text}");
    // Only one at a time; the others fail.
    let busy = Arc::new(Mutex::new(()));
    let single = by(move |_| {
        let busy = Arc::clone(&busy);
        Listing::later(async move {
            let taken = Arc::strong_count(&busy) > 2;
            tokio::task::yield_now().await;
            if taken {
                return Err(DiscoveryError::source_failed("busy"));
            }
            Ok(one("t"))
        })
    });
    let text = breaks(single, [Clause::Reentrant]);
    assert!(text.contains("it failed: busy"), "{text}");
    // Two concurrent listings wait for each other.
    let waiting = Arc::new(AtomicUsize::new(0));
    let deadlocking = by(move |_| {
        let waiting = Arc::clone(&waiting);
        let before = waiting.fetch_add(1, Ordering::SeqCst);
        struct Leave(Arc<AtomicUsize>);
        impl Drop for Leave {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        let leave = Leave(waiting);
        Listing::later(async move {
            let _leave = leave;
            tokio::task::yield_now().await;
            if before > 2 {
                pending::<()>().await;
            }
            Ok(one("t"))
        })
    });
    let text = breaks(deadlocking, [Clause::Reentrant]);
    assert!(text.contains("16 concurrent listings do not end within 30s"), "{text}");
}

#[test]
fn a_provider_that_does_not_stop_is_found() {
    let late = |seconds| {
        faulty(static_tools([named("t")])).always(Fault::None.after(Duration::from_secs(seconds)))
    };
    let text = breaks(late(20).provider(), [Clause::StopsWhenCancelled]);
    assert!(text.contains("it was still busy 1s after its token fired"), "{text}");
    let patient = check_provider(late(20).provider()).stop_within(Duration::from_secs(25));
    paused(patient.assert());
    let excused = check_provider(late(20).provider()).without(Clause::StopsWhenCancelled);
    assert!(!paused(excused.assert()).tried(Clause::StopsWhenCancelled));
}

#[test]
fn a_provider_that_blames_its_source_for_a_cancellation_is_found() {
    let blaming = by(|cx| {
        let cx = cx.clone();
        Listing::later(async move {
            match patiently(cx, "t".into()).await {
                Err(_) => Err(DiscoveryError::source_failed("connection closed")),
                answer => answer,
            }
        })
    });
    let text = breaks(blaming, [Clause::SaysCancelled]);
    assert!(text.contains("its error has the class Source, not Cancelled: connection closed"));
}

#[test]
fn a_provider_that_answers_half_when_cancelled_is_found() {
    let half = by(|cx| {
        let cx = cx.clone();
        Listing::later(async move {
            match patiently(cx, "t".into()).await {
                Err(_) => Ok(Catalog::new()),
                answer => answer,
            }
        })
    });
    let text = breaks(half, [Clause::SameList]);
    assert!(text.contains("cancelled, it still answered, and it offered [t], then []"), "{text}");
}

#[test]
fn work_that_outlives_its_listing_is_found() {
    let leaking = by(|cx| {
        let cx = cx.clone();
        tokio::spawn(sleep(Duration::from_secs(60)));
        Listing::later(patiently(cx, "t".into()))
    });
    let text = breaks(leaking, [Clause::LeavesNothing]);
    assert!(text.contains("1s after a listing was dropped, 1 of its tasks still run"), "{text}");
    let at_once = by(|_| {
        tokio::spawn(pending::<()>());
        Listing::now(one("t"))
    });
    let text = breaks(at_once, [Clause::LeavesNothing]);
    assert!(text.contains("after all listings were over"), "{text}");
    // A task that ends soon is not a leak.
    let brief = by(|cx| {
        tokio::spawn(sleep(Duration::from_millis(5)));
        Listing::later(patiently(cx.clone(), "t".into()))
    });
    check(brief).unwrap();
}

#[test]
fn a_provider_that_a_dropped_listing_breaks_is_found() {
    // Remembers that a listing is pending, but not that it was dropped.
    let broken = Arc::new(AtomicUsize::new(0));
    struct Asking(Arc<AtomicUsize>, bool);
    impl Drop for Asking {
        fn drop(&mut self) {
            if !self.1 {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
    let fragile = by(move |cx| {
        let (cx, broken) = (cx.clone(), Arc::clone(&broken));
        Listing::later(async move {
            let before = broken.load(Ordering::SeqCst);
            let mut asking = Asking(broken, false);
            let answer = patiently(cx, "t".into()).await;
            asking.1 = true;
            match answer {
                Ok(_) if before > 0 => Err(DiscoveryError::source_failed("still locked")),
                answer => answer,
            }
        })
    });
    let text = breaks(fragile, [Clause::LeavesNothing]);
    assert!(text.contains("after a listing was dropped, the next failed: it failed: still locked"));
}

#[test]
fn panics_errors_and_silence_are_found() {
    let faulty = |fault| faulty(static_tools([])).always(fault).provider();
    for fault in [Fault::Panic("bug".into()), Fault::Panic("bug".into()).after(Duration::ZERO)] {
        assert!(
            breaks(faulty(fault), [Clause::NeverPanics])
                .ends_with("it must not panic: it panicked: bug")
        );
    }
    let text = breaks(faulty(Fault::Error("refused".into())), [Clause::Answers]);
    assert!(text.ends_with("it must answer: it failed: refused"), "{text}");
    let text = breaks(faulty(Fault::Never), [Clause::Answers]);
    assert!(text.ends_with("it must answer: it did not answer within 30s"), "{text}");
    let slow = faulty(Fault::None.after(Duration::from_secs(5)));
    let hasty = check_provider(slow).answer_within(Duration::from_secs(2));
    assert!(paused(hasty).unwrap_err().clauses().contains(&Clause::Answers));
}

#[test]
fn a_panic_at_the_second_listing_or_at_cancellation_is_found() {
    let count = AtomicUsize::new(0);
    let second = by(move |_| {
        assert!(count.fetch_add(1, Ordering::SeqCst) != 1, "bug in the second");
        Listing::now(one("t"))
    });
    breaks(second, [Clause::NeverPanics]);
    let at_cancellation = by(|cx| {
        let cx = cx.clone();
        Listing::later(async move {
            let answer = patiently(cx.clone(), "t".into()).await;
            assert!(!cx.cancellation().is_cancelled(), "bug at cancellation");
            answer
        })
    });
    let text = breaks(at_cancellation, [Clause::NeverPanics]);
    assert!(text.contains("bug at cancellation"), "{text}");
}

#[test]
fn two_tools_of_one_name_are_found_unless_the_later_one_says_who_yields() {
    let text = breaks(static_tools([named("t"), named("u"), named("t")]), [Clause::NamesUnique]);
    assert!(text.contains("`t` is offered twice, without `on_collision`"), "{text}");
    let yielding = Tool::builder("t").description("Another.").on_collision(OnCollision::Keep);
    let yielding = yielding.handler(|_: Value, _: ToolContext| async { "" }).unwrap();
    check(static_tools([named("t"), yielding])).unwrap();
}

#[test]
fn a_name_that_is_blank_or_changes_or_panics_is_found() {
    struct Named<F>(F, Mutex<Vec<&'static str>>);
    impl<F: Fn() -> String + Send + Sync + 'static> ToolProvider for Named<F> {
        fn id(&self) -> &str {
            let id: &'static str = (self.0)().leak();
            self.1.lock().unwrap().push(id);
            id
        }
        fn list(self: Arc<Self>, _: &ListContext) -> Listing {
            Listing::now(one("t"))
        }
    }
    let named =
        |id: fn() -> String| -> Arc<dyn ToolProvider> { Arc::new(Named(id, Mutex::default())) };
    check(named(|| "good".into())).unwrap();
    assert!(
        breaks(named(|| "  ".into()), [Clause::IdStable])
            .contains(r#"id and path are ("  ", "  ")"#)
    );
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let counting = named(|| format!("id-{}", COUNT.fetch_add(1, Ordering::SeqCst)));
    assert!(breaks(counting, [Clause::IdStable]).contains("they were"));
    let text = breaks(named(|| panic!("no name")), [Clause::IdStable]);
    assert_eq!(
        text,
        "the provider breaks its contract:\n- id and path must not be blank or change: no name"
    );
}

#[test]
fn the_assertion_shows_all_violations_and_so_does_unwrap() {
    let two = || {
        by(|_| {
            tokio::spawn(pending::<()>());
            Listing::now([named("t"), named("t")])
        })
    };
    let text = failure(|| paused(check_provider(two()).assert()));
    assert_eq!(text.lines().count(), 3, "{text}");
    let violations = check(two()).unwrap_err();
    assert_eq!(text, violations.to_string());
    assert_eq!(text, format!("{violations:?}"));
    assert_eq!(violations.iter().len(), 2);
    let first = violations.iter().next().unwrap();
    assert_eq!(
        (first.clause, first.to_string().as_str()),
        (Clause::NamesUnique, "names must be unique: `t` is offered twice, without `on_collision`")
    );
}
