//! Cache entries: keys, TTL, and the number of requests to the provider.

use std::{sync::Arc, time::Duration};

use tokio::time::advance;
use toolcrib_core::{
    CacheOptions, CacheStatus, Cached, DiscoveryError, DiscoveryErrorClass, KeyField, ListContext,
    Listing, Tool, ToolProvider, Ttl, cached, from_fn, static_tools,
};

use crate::support::{Source, ask, cx, fails, in_time, listed, names, of_tenant, skill, tool};

const MINUTE: Duration = Duration::from_secs(60);

fn for_a_minute(key: impl IntoIterator<Item = KeyField>) -> CacheOptions {
    CacheOptions::new(key, Ttl::after(MINUTE)).jitter(0.0)
}

fn cache(source: &Arc<Source>) -> Arc<Cached> {
    cached(Arc::clone(source) as _, for_a_minute([]))
}

#[tokio::test(start_paused = true)]
async fn case_24_within_its_time_an_answer_is_given_again_and_the_source_is_asked_once() {
    let source = Source::counting();
    let cache = cache(&source);
    assert_eq!(ask(&cache, &cx()).await.unwrap().1.cache, CacheStatus::Miss);
    advance(Duration::from_secs(59)).await;
    let Listing::Now(Ok(first)) = Arc::clone(&cache).list(&cx()) else {
        panic!("a fresh answer is there at once");
    };
    let answered = first.listing_info();
    assert_eq!(answered.cache, CacheStatus::Hit);
    assert_eq!(answered.age, Some(Duration::from_secs(59)));
    let second = Arc::clone(&cache).list(&cx()).wait().await.unwrap();
    assert!(first.same(&second), "the very same tools");
    assert_eq!((names(&first), source.asked()), (vec!["t0".to_owned()], 1));
    advance(Duration::from_secs(1)).await;
    assert_eq!(listed(Arc::clone(&cache), &cx()).await, ["t1"]);
    assert_eq!((source.asked(), cache.len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn an_entry_without_a_lifetime_never_expires() {
    let source = Source::counting();
    let cache = cached(Arc::clone(&source) as _, CacheOptions::new([], Ttl::forever()));
    listed(Arc::clone(&cache), &cx()).await;
    advance(Duration::from_secs(60 * 60 * 24 * 365)).await;
    assert_eq!(listed(Arc::clone(&cache), &cx()).await, ["t0"]);
}

#[tokio::test(start_paused = true)]
async fn jitter_shortens_and_never_lengthens() {
    let source = Source::counting();
    let options = CacheOptions::new([KeyField::Tenant], Ttl::after(MINUTE)).jitter(0.5);
    let cache = cached(Arc::clone(&source) as _, options);
    let tenants: Vec<_> = (0..64).map(|n| of_tenant(&n.to_string())).collect();
    let all = || async {
        for tenant in &tenants {
            listed(Arc::clone(&cache), tenant).await;
        }
    };
    all().await;
    advance(Duration::from_millis(29_900)).await;
    all().await;
    assert_eq!(source.asked(), 64, "none is over before half its time");
    advance(Duration::from_secs(15)).await;
    all().await;
    let over = source.asked() - 64;
    assert!(0 < over && over < 64, "{over} of 64 were over at three quarters");
    advance(MINUTE).await;
    let before = source.asked();
    all().await;
    assert_eq!(source.asked() - before, 64, "none is longer than its time");
}

#[tokio::test]
async fn the_provider_inside_sees_what_the_key_declares_and_nothing_else() {
    let whole = || {
        let mut identity = (*of_tenant("acme").identity()).as_ref().clone();
        identity.principal = Some("ada".into());
        cx().with_identity(Arc::new(identity))
            .with_iteration(7)
            .with_active_skills(Arc::from([skill("a"), skill("b")]))
    };
    let seen = |cx: &ListContext| {
        let identity = cx.identity();
        format!(
            "{:?} {:?} {:?} {:?} {}",
            identity.tenant.as_deref(),
            identity.principal.as_deref(),
            &*identity.conversation,
            cx.active_skills().iter().map(toolcrib_core::SkillId::as_str).collect::<Vec<_>>(),
            cx.iteration(),
        )
    };
    for (key, shown) in [
        (vec![], "None None \"\" [] 0"),
        (vec![KeyField::Tenant], "Some(\"acme\") None \"\" [] 0"),
        (vec![KeyField::Principal], "None Some(\"ada\") \"\" [] 0"),
        (vec![KeyField::Conversation], "None None \"c\" [] 0"),
        (vec![KeyField::ActiveSkill], "None None \"\" [\"b\"] 0"),
        (vec![KeyField::ActiveSkills], "None None \"\" [\"a\", \"b\"] 0"),
        (vec![KeyField::Iteration], "None None \"\" [] 7"),
        (vec![KeyField::Tenant, KeyField::Iteration], "Some(\"acme\") None \"\" [] 7"),
    ] {
        let source = Source::counting();
        listed(cached(Arc::clone(&source) as _, for_a_minute(key)), &whole()).await;
        assert_eq!(seen(&source.shown()[0]), shown);
    }
}

#[tokio::test]
async fn however_many_ask_at_the_same_time_the_source_is_asked_once() {
    let released = toolcrib_core::CancellationToken::new();
    let source = Source::waiting(&released);
    let cache = cache(&source);
    let all: Vec<_> =
        (0..50).map(|_| tokio::spawn(Arc::clone(&cache).list(&cx()).wait())).collect();
    tokio::task::yield_now().await;
    released.cancel();
    let mut tools: Vec<Tool> = Vec::new();
    for one in all {
        let catalog = in_time(one).await.unwrap().unwrap();
        tools.push(catalog.offered()[0].clone());
    }
    assert!(tools.iter().all(|tool| tool.same(&tools[0])), "all have the very same tool");
    assert_eq!((source.asked(), source.dropped()), (1, 0));
}

#[test]
fn also_threads_that_ask_at_the_same_instant_ask_once() {
    const ROUNDS: usize = 300;
    let source = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let asked = Arc::clone(&source);
    let inner = from_fn("counting", move |_: &ListContext| {
        asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        [tool("t")]
    });
    let cache = cached(inner, CacheOptions::new([KeyField::Tenant], Ttl::forever()));
    let meet = std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let cx = of_tenant(&round.to_string());
                    meet.wait();
                    let listing = Arc::clone(&cache).list(&cx);
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    assert_eq!(names(&runtime.block_on(listing.wait()).unwrap()), ["t"]);
                }
            });
        }
    });
    let asked = source.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(asked, ROUNDS, "once for each tenant");
}

#[tokio::test]
async fn case_58_a_waiter_that_is_cancelled_leaves_the_others_alone() {
    let released = toolcrib_core::CancellationToken::new();
    let source = Source::waiting(&released);
    let cache = cache(&source);
    // The first caller owns the fetch; its own token ends it, and its future is dropped.
    let (first, second) = (cx(), cx());
    let one = tokio::spawn(Arc::clone(&cache).list(&first).wait());
    let other = tokio::spawn(Arc::clone(&cache).list(&second).wait());
    let third = Arc::clone(&cache).list(&cx());
    tokio::task::yield_now().await;
    first.cancellation().cancel();
    let error = in_time(one).await.unwrap().unwrap_err();
    assert_eq!(error.class(), DiscoveryErrorClass::Cancelled);
    drop(third);
    assert_eq!(source.dropped(), 0);
    assert!(!source.shown()[0].cancellation().is_cancelled());
    released.cancel();
    assert_eq!(names(&in_time(other).await.unwrap().unwrap()), ["t0"]);
    assert_eq!((source.asked(), cache.len()), (1, 1));
    assert!(!source.shown()[0].cancellation().is_cancelled(), "it was not abandoned");
}

#[tokio::test]
async fn the_last_waiter_cancels_the_listing_and_the_next_one_starts_another() {
    let released = toolcrib_core::CancellationToken::new();
    let source = Source::waiting(&released);
    let cache = cache(&source);
    let waiters: Vec<_> = (0..3).map(|_| (cx(), Arc::clone(&cache))).collect();
    let waiting: Vec<_> =
        waiters.iter().map(|(cx, cache)| tokio::spawn(Arc::clone(cache).list(cx).wait())).collect();
    tokio::task::yield_now().await;
    for (position, (cx, _)) in waiters.iter().enumerate() {
        assert_eq!(source.dropped(), 0, "{position} have left");
        cx.cancellation().cancel();
        tokio::task::yield_now().await;
    }
    for one in waiting {
        assert!(in_time(one).await.unwrap().is_err());
    }
    assert_eq!(source.dropped(), 1);
    assert!(source.shown()[0].cancellation().is_cancelled(), "the fetch is told");
    released.cancel();
    assert_eq!(listed(cache, &cx()).await, ["t1"]);
}

#[tokio::test]
async fn an_error_is_given_to_all_who_waited_and_never_kept() {
    let source = Source::new(|n, _| async move {
        tokio::task::yield_now().await;
        match n {
            0 => Err(DiscoveryError::source_failed("down").with_status(503)),
            _ => Ok(vec![tool("t")]),
        }
    });
    let cache = cache(&source);
    let (one, other) =
        tokio::join!(Arc::clone(&cache).list(&cx()).wait(), Arc::clone(&cache).list(&cx()).wait(),);
    for failed in [one, other] {
        let error = failed.unwrap_err();
        assert_eq!(error.to_string(), "provider `source`: down");
        assert_eq!((error.http_status(), error.leaf()), (Some(503), Some("source")));
    }
    assert_eq!(source.asked(), 1);
    assert!(cache.is_empty());
    assert_eq!(listed(cache, &cx()).await, ["t"]);
}

#[tokio::test]
async fn a_source_that_panics_fails_and_is_asked_again() {
    let source = Source::new(|n, _| async move {
        assert!(n > 0, "bug");
        Ok(vec![tool("t")])
    });
    let cache = cache(&source);
    let error = fails(Arc::clone(&cache), &cx()).await;
    assert_eq!(error.class(), DiscoveryErrorClass::Panic);
    assert_eq!(error.message(), "it panicked: bug");
    assert_eq!(listed(cache, &cx()).await, ["t"]);
}

#[tokio::test]
async fn the_least_recently_used_answer_is_evicted_at_the_cap() {
    let source = Source::counting();
    let options = for_a_minute([KeyField::Tenant]).max_entries(2);
    let cache = cached(Arc::clone(&source) as _, options);
    let ask = |tenant: &'static str| {
        let cache = Arc::clone(&cache);
        async move { listed(cache, &of_tenant(tenant)).await.remove(0) }
    };
    assert_eq!([ask("a").await, ask("b").await], ["t0", "t1"]);
    assert_eq!(ask("a").await, "t0");
    assert_eq!(ask("c").await, "t2");
    assert_eq!(cache.len(), 2);
    assert_eq!([ask("a").await, ask("b").await], ["t0", "t3"], "b made room for c");
}

/// One more than the capacity each time: the least recently used are evicted.
#[tokio::test]
async fn every_use_protects_an_answer_from_eviction() {
    let source = Source::counting();
    let options = for_a_minute([KeyField::Tenant]).max_entries(16);
    let cache = cached(Arc::clone(&source) as _, options);
    let ask = async |tenants: std::ops::Range<usize>| {
        let before = source.asked();
        for tenant in tenants {
            listed(Arc::clone(&cache), &of_tenant(&tenant.to_string())).await;
        }
        source.asked() - before
    };
    assert_eq!(ask(0..24).await, 24, "the first 8 of them make room");
    assert_eq!(ask(8..16).await, 0, "and are used again, so that the others are next");
    assert_eq!(ask(24..32).await, 8);
    assert_eq!(ask(8..16).await + ask(24..32).await, 0);
    assert_eq!(ask(16..24).await, 8);
}

#[test]
fn a_lifetime_returns_its_duration() {
    assert_eq!(Ttl::after(MINUTE).duration(), Some(MINUTE));
    assert_eq!(Ttl::forever().duration(), None);
}

#[tokio::test]
async fn what_is_invalidated_is_asked_for_again_and_an_answer_under_way_is_not_kept() {
    let source = Source::counting();
    let cache = cached(Arc::clone(&source) as _, for_a_minute([KeyField::Tenant]));
    let (a, b) = (of_tenant("a"), of_tenant("b"));
    listed(Arc::clone(&cache), &a).await;
    listed(Arc::clone(&cache), &b).await;
    assert!(!cache.is_empty());
    cache.invalidate_key(&a);
    assert_eq!(listed(Arc::clone(&cache), &b).await, ["t1"]);
    assert_eq!(listed(Arc::clone(&cache), &a).await, ["t2"]);
    cache.invalidate();
    assert!(cache.is_empty());
    assert_eq!(listed(Arc::clone(&cache), &b).await, ["t3"]);

    let released = toolcrib_core::CancellationToken::new();
    let source = Source::waiting(&released);
    let cache = self::cache(&source);
    let before = tokio::spawn(Arc::clone(&cache).list(&cx()).wait());
    tokio::task::yield_now().await;
    cache.invalidate();
    let after = tokio::spawn(Arc::clone(&cache).list(&cx()).wait());
    tokio::task::yield_now().await;
    released.cancel();
    assert_eq!(names(&in_time(before).await.unwrap().unwrap()), ["t0"], "who waited gets it");
    assert_eq!(names(&in_time(after).await.unwrap().unwrap()), ["t1"]);
    assert_eq!(listed(cache, &cx()).await, ["t1"], "and only the newer one is kept");
}

#[tokio::test]
async fn what_was_asked_before_the_cache_was_invalidated_is_not_kept() {
    let released = toolcrib_core::CancellationToken::new();
    let source = Source::waiting(&released);
    let cache = cache(&source);
    let before = tokio::spawn(Arc::clone(&cache).list(&cx()).wait());
    tokio::task::yield_now().await;
    cache.invalidate();
    released.cancel();
    assert_eq!(names(&in_time(before).await.unwrap().unwrap()), ["t0"]);
    assert!(cache.is_empty());
}

#[tokio::test]
async fn an_error_is_not_cached_while_a_waiter_has_not_received_it() {
    let released = toolcrib_core::CancellationToken::new();
    let waits = released.clone();
    let source = Source::new(move |n, _| {
        let waits = waits.clone();
        async move {
            waits.cancelled().await;
            match n {
                0 => Err(DiscoveryError::source_failed("down")),
                _ => Ok(vec![tool("t")]),
            }
        }
    });
    let cache = cache(&source);
    let one = Arc::clone(&cache).list(&cx());
    let slow = Arc::clone(&cache).list(&cx());
    released.cancel();
    assert!(in_time(one.wait()).await.is_err());
    assert_eq!(listed(Arc::clone(&cache), &cx()).await, ["t"]);
    assert_eq!(names(&in_time(slow.wait()).await.unwrap()), ["t"], "it is given what is kept");
}

#[tokio::test]
async fn a_ready_listing_stays_ready_and_a_pending_one_pending() {
    let now = cached(static_tools([tool("a")]), for_a_minute([]));
    for used in [CacheStatus::Miss, CacheStatus::Hit] {
        let Listing::Now(Ok(catalog)) = Arc::clone(&now).list(&cx()) else {
            panic!("what is inside answers at once");
        };
        assert_eq!(catalog.listing_info().cache, used);
    }
    let failing = from_fn("failing", |_: &ListContext| Err::<Vec<Tool>, _>("down"));
    let listing = cached(failing, for_a_minute([])).list(&cx());
    assert!(matches!(listing, Listing::Now(Err(_))));
    let later = cache(&Source::counting());
    assert!(matches!(Arc::clone(&later).list(&cx()), Listing::Later(_)));
}

#[test]
fn a_hit_allocates_nothing() {
    let tools: Vec<_> = (0..100).map(|n| tool(&format!("t{n}"))).collect();
    let key = [KeyField::Tenant, KeyField::ActiveSkills, KeyField::Iteration];
    let cache = cached(static_tools(tools), CacheOptions::new(key, Ttl::after(MINUTE)));
    let cx = of_tenant("acme");
    let list = || match Arc::clone(&cache).list(&cx) {
        Listing::Now(Ok(catalog)) => catalog,
        other => panic!("{other:?}"),
    };
    let mut catalog = list();
    let allocated = allocation_counter::measure(|| (0..10).for_each(|_| catalog = list()));
    assert_eq!((allocated.count_total, catalog.offered().len()), (0, 100));
}
