//! Mistyped names in code, and a cache's report about concurrent waiters.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::{
    CacheOptions, Events, KeyField, ReliabilityAction, ReliabilityRule, Stage, Ttl, cached,
    from_async_fn,
};
use toolcrib_engine::{BuildError, Engine, TurnOptions};

use crate::support::{Log, engine, in_time, tool};

#[test]
fn a_mistyped_event_name_was_listened_for_and_never_came() {
    let events = Events::new();
    let refused = |pattern: &str| events.on(pattern, |_| {}).unwrap_err().to_string();
    assert_eq!(
        refused("tools.discovery_faild"),
        "no event matches `tools.discovery_faild`; did you mean `tools.discovery_failed`?"
    );
    assert_eq!(refused("tols.*"), "no event matches `tols.*`; did you mean `tools.*`?");
    assert!(refused("nonsense").contains("the domains are `agent.*`"));
    for pattern in ["*", "tools.*", "tool*", "tools.offered", "agent.turn_"] {
        assert_eq!(events.on(pattern, |_| {}).is_ok(), pattern != "agent.turn_", "{pattern}");
    }
}

#[test]
fn a_mistyped_error_name_was_built_and_matched_nothing() {
    let built = |rule: ReliabilityRule| Engine::builder().reliability([rule]).build();
    let problem = |rule| match built(rule) {
        Err(error @ BuildError::ReliabilityRule { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let rule = || ReliabilityRule::new(ReliabilityAction::FailFast);
    assert_eq!(
        problem(rule().error_name("DiscoveryErorr")),
        "reliability rule 1: `error_name` cannot be `DiscoveryErorr`; did you mean `DiscoveryError`?"
    );
    let named = problem(rule().label("outage").stage(Stage::Model).error_class("source"));
    assert!(named.starts_with("reliability rule outage: `error_class` cannot be"), "{named}");
    let fine = rule().stage(Stage::Discover).error_name("AbortError").error_class("source");
    assert!(built(fine).is_ok());
    assert!(built(rule().error_class("source")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn turns_that_joined_one_fetch_said_that_each_of_them_asked() {
    let slow = from_async_fn("slow", |_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        vec![tool("t")]
    });
    let options = CacheOptions::new([KeyField::Tenant], Ttl::after(Duration::from_secs(60)));
    let engine: Engine = engine().provider(cached(slow, options)).build().unwrap();
    let log = Log::of(engine.events());
    let turns = (0..20).map(|_| {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        async move { turn.iteration().await.map(drop) }
    });
    for listed in in_time(futures_util::future::join_all(turns)).await {
        listed.unwrap();
    }
    engine.turn(TurnOptions::default()).unwrap().iteration().await.unwrap();
    let used = log.of_name("tools.discovery_completed");
    let count = |word| used.iter().filter(|event| event["cache"] == json!(word)).count();
    assert_eq!((count("miss"), count("joined"), count("hit")), (1, 19, 1));
}
