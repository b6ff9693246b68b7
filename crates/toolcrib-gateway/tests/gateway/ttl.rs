//! How long lists of the stateless era apply, and for whom.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_core::{
    CacheOptions, ListContext, Policy, Rule, RuleConditions, Tool, ToolProvider, Ttl, cached,
    from_fn, gated_tools, static_tools,
};
use toolcrib_engine::EngineBuilder;
use toolcrib_gateway::Access;

use super::support::{Client, Era, billing, builder, engine, tool};

const HOUR_MS: u64 = 3_600_000;

/// A hub of one tool, whose list is cached.
fn hub_of(name: &str, ttl: Ttl) -> Arc<dyn ToolProvider> {
    cached(static_tools([tool(name)]), CacheOptions::new([], ttl))
}

fn hub(ttl: Ttl) -> Arc<dyn ToolProvider> {
    hub_of("of_hub", ttl)
}

async fn listing(engine: EngineBuilder) -> Value {
    let client = Client::to(engine, Era::Stateless).await;
    json!(client.peer.list_tools(None).await.unwrap())
}

#[tokio::test]
async fn a_list_may_be_kept_as_long_as_the_first_of_its_sources_states() {
    let hour = || hub(Ttl::after(Duration::from_secs(3_600)));
    let day = || hub_of("of_day", Ttl::after(Duration::from_secs(24 * 3_600)));
    let other = || static_tools([tool("other")]);
    for engine in [
        engine().provider(hour()),
        engine().tool(tool("own")).provider(hour()),
        engine().provider(hour()).provider(other()),
        engine().provider(day()).provider(hour()),
    ] {
        let listing = listing(engine).await;
        let ttl = listing["ttlMs"].as_u64().unwrap();
        // Less what has passed of the hour.
        assert!((HOUR_MS / 2..=HOUR_MS).contains(&ttl), "{listing}");
        assert_eq!(listing["cacheScope"], "private", "{listing}");
    }
}

#[tokio::test]
async fn a_list_that_may_change_at_any_time_is_not_to_be_kept() {
    let hour = || hub(Ttl::after(Duration::from_secs(3_600)));
    let tainted = RuleConditions { tainted: Some(true), ..RuleConditions::default() };
    let rule = Rule::deny("no").tools(["of_hub"]).when(tainted);
    let checked = builder("checked").available_if(|| true);
    let checked = checked.handler(|_: Value, _| async { "" }).unwrap();
    for (why, engine) in [
        ("nothing is stated", engine().tool(tool("own"))),
        ("no limit is stated", engine().provider(hub(Ttl::forever()))),
        (
            "a source states nothing",
            engine().provider(hour()).provider(from_fn("f", |_: &ListContext| [tool("f")])),
        ),
        (
            "a gate decides",
            engine().provider(gated_tools("g", hour(), |_: &Tool, _: &ListContext| true)),
        ),
        ("a tool decides", engine().provider(hour()).tool(checked)),
        ("taint decides", engine().provider(hour()).policy(Policy::of([rule]))),
        ("skills decide", engine().provider(hour()).tool(tool("refund")).skills(billing())),
    ] {
        let listing = listing(engine).await;
        assert!(listing["tools"].to_string().contains("description"), "{why}: {listing}");
        assert_eq!(listing["ttlMs"], 0, "{why}");
        assert_eq!(listing["cacheScope"], "private", "{why}");
    }
}

#[tokio::test]
async fn a_session_has_no_time_in_its_lists() {
    let gateway = engine().provider(hub(Ttl::after(Duration::from_secs(3_600))));
    let gateway = toolcrib_gateway::Gateway::builder(gateway.build().unwrap()).build();
    let client = Client::of(&gateway, Era::Sessions, Access::new()).await;
    let listing = json!(client.peer.list_tools(None).await.unwrap());
    assert!(listing.get("ttlMs").is_none(), "{listing}");
}
