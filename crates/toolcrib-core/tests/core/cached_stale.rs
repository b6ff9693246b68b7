//! Use of expired cache entries.

use std::{sync::Arc, time::Duration};

use tokio::time::advance;
use toolcrib_core::{
    CacheOptions, CacheStatus, CancellationToken, DiscoveryError, DiscoveryErrorClass, Listing,
    ToolProvider, Ttl, cached,
};

use crate::support::{Source, ask, cx, fails, in_time, listed, tool};

const MINUTE: Duration = Duration::from_secs(60);

fn options() -> CacheOptions {
    CacheOptions::new([], Ttl::after(MINUTE)).jitter(0.0)
}

/// Lets spawned tasks run.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stale_answer_is_returned_at_once_while_one_fetch_refreshes_it() {
    let released = CancellationToken::new();
    let waits = released.clone();
    let source = Source::new(move |n, _| {
        let waits = waits.clone();
        async move {
            if n > 0 {
                waits.cancelled().await;
            }
            Ok(vec![tool(&format!("t{n}"))])
        }
    });
    let cache = cached(Arc::clone(&source) as _, options().stale_for(MINUTE));
    ask(&cache, &cx()).await.unwrap();
    advance(Duration::from_secs(90)).await;
    for _ in 0..3 {
        let (names, answered) = ask(&cache, &cx()).await.unwrap();
        assert_eq!((names[0].as_str(), answered.cache), ("t0", CacheStatus::Stale));
        assert_eq!(answered.age, Some(Duration::from_secs(90)));
        assert_eq!(answered.error, None);
        settle().await;
    }
    assert_eq!(source.asked(), 2, "one at a time");
    released.cancel();
    settle().await;
    let (names, answered) = ask(&cache, &cx()).await.unwrap();
    assert_eq!((names[0].as_str(), answered.cache), ("t1", CacheStatus::Hit));
    assert_eq!(source.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_beyond_the_stale_time_waits_for_the_running_fetch() {
    let released = CancellationToken::new();
    let waits = released.clone();
    let source = Source::new(move |n, _| {
        let waits = waits.clone();
        async move {
            if n > 0 {
                waits.cancelled().await;
            }
            Ok(vec![tool(&format!("t{n}"))])
        }
    });
    let cache = cached(Arc::clone(&source) as _, options().stale_for(MINUTE));
    ask(&cache, &cx()).await.unwrap();
    advance(Duration::from_secs(119)).await;
    assert_eq!(ask(&cache, &cx()).await.unwrap().1.cache, CacheStatus::Stale);
    advance(Duration::from_secs(1)).await;
    let listing = Arc::clone(&cache).list(&cx());
    assert!(matches!(listing, Listing::Later(_)));
    released.cancel();
    let catalog = in_time(listing.wait()).await.unwrap();
    assert_eq!(catalog.listing_info().cache, CacheStatus::Joined);
    assert_eq!(source.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_does_not_end_the_background_and_the_end_of_the_cache_does() {
    let source = Source::new(|n, _| async move {
        if n > 0 {
            std::future::pending::<()>().await;
        }
        Ok(vec![tool("t")])
    });
    let cache = cached(Arc::clone(&source) as _, options().stale_for(MINUTE));
    ask(&cache, &cx()).await.unwrap();
    advance(Duration::from_secs(61)).await;
    let run = cx();
    ask(&cache, &run).await.unwrap();
    settle().await;
    run.cancellation().cancel();
    settle().await;
    assert_eq!((source.asked(), source.dropped()), (2, 0));
    let fetch = source.shown()[1].cancellation().clone();
    assert!(!fetch.is_cancelled());
    drop(cache);
    settle().await;
    assert!(fetch.is_cancelled());
    assert_eq!(source.dropped(), 1);
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_background_fetch_that_hangs_ends_and_the_next_one_starts_again() {
    let source = Source::new(|n, _| async move {
        if n == 1 {
            std::future::pending::<()>().await;
        }
        Ok(vec![tool(&format!("t{n}"))])
    });
    let cache = cached(Arc::clone(&source) as _, options().stale_for(MINUTE));
    ask(&cache, &cx()).await.unwrap();
    advance(Duration::from_secs(119)).await;
    assert_eq!(ask(&cache, &cx()).await.unwrap().1.cache, CacheStatus::Stale);
    settle().await;
    // A joined caller keeps it alive beyond its time; it ends with the last of them.
    advance(Duration::from_secs(1)).await;
    let waiter = Arc::clone(&cache).list(&cx());
    advance(MINUTE).await;
    settle().await;
    assert_eq!((source.asked(), source.dropped()), (2, 0));
    drop(waiter);
    settle().await;
    assert_eq!(source.dropped(), 1);
    assert_eq!(in_time(listed(cache, &cx())).await, ["t2"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_background_fetch_is_retried_by_the_next_request() {
    let source = Source::new(|n, _| async move {
        match n {
            1 => Err(DiscoveryError::source_failed("down")),
            n => Ok(vec![tool(&format!("t{n}"))]),
        }
    });
    let cache = cached(Arc::clone(&source) as _, options().stale_for(MINUTE));
    ask(&cache, &cx()).await.unwrap();
    advance(Duration::from_secs(61)).await;
    for asked in [2, 3] {
        assert_eq!(ask(&cache, &cx()).await.unwrap().1.cache, CacheStatus::Stale);
        settle().await;
        assert_eq!(source.asked(), asked);
    }
    assert_eq!(listed(cache, &cx()).await, ["t2"]);
}

#[test]
fn without_a_runtime_there_is_no_background_fetch() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let source = Source::counting();
    let short = CacheOptions::new([], Ttl::after(Duration::ZERO)).stale_for(MINUTE);
    let cache = cached(Arc::clone(&source) as _, short);
    runtime().block_on(ask(&cache, &cx())).unwrap();
    let listing = Arc::clone(&cache).list(&cx());
    let Listing::Later(future) = listing else { panic!("it is asked for, and waited for") };
    let catalog = runtime().block_on(future).unwrap();
    assert_eq!(catalog.listing_info().cache, CacheStatus::Miss);
    assert_eq!(source.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn when_the_source_fails_an_older_answer_is_given_with_its_age_and_the_error() {
    let source = Source::new(|n, _| async move {
        match n {
            0 => Ok(vec![tool("t")]),
            _ => Err(DiscoveryError::source_failed("down")),
        }
    });
    let cache = cached(Arc::clone(&source) as _, options().stale_on_error(MINUTE));
    ask(&cache, &cx()).await.unwrap();
    advance(Duration::from_secs(90)).await;
    for asked in [2, 3] {
        let (names, answered) = ask(&cache, &cx()).await.unwrap();
        assert_eq!((names[0].as_str(), answered.cache), ("t", CacheStatus::Stale));
        assert_eq!(answered.age, Some(Duration::from_secs(90)));
        assert_eq!(answered.error.as_deref(), Some("down"));
        assert_eq!(source.asked(), asked, "an error is never kept");
    }
    advance(Duration::from_secs(30)).await;
    assert_eq!(fails(cache, &cx()).await.message(), "down");
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_fails_and_a_cancellation_are_never_passed_over() {
    for class in [DiscoveryErrorClass::Gate, DiscoveryErrorClass::Cancelled] {
        let source = Source::new(move |n, _| async move {
            match n {
                0 => Ok(vec![tool("t")]),
                _ => Err(DiscoveryError::new(class, "no")),
            }
        });
        let cache = cached(Arc::clone(&source) as _, options().stale_on_error(MINUTE));
        ask(&cache, &cx()).await.unwrap();
        advance(Duration::from_secs(61)).await;
        assert_eq!(fails(cache, &cx()).await.class(), class);
    }
}
