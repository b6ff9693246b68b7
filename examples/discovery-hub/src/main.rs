//! Tools from a registry behind HTTP: what a cache gives again, what it gives when the registry
//! fails, which requests a rule repeats, and how a change is reported.
//!
//! `cargo run -p example-discovery-hub` prints what the engine says and what the registry was asked.
#![allow(clippy::print_stdout, reason = "a program for people")]

mod registry;

use std::{error::Error, sync::Arc, time::Duration};

use registry::Registry;
use toolcrib::{
    Engine,
    capabilities::http::HttpClient,
    engine::EngineBuilder,
    event::{Event, EventKind},
    provider::{CacheOptions, Cached, Ttl, cached},
    reliability::{ReliabilityAction, ReliabilityRule, Retry, Stage},
    tool::ToolCall,
    tools::{
        http::Method,
        hub::{HttpHub, HubPointers, HubSpec},
    },
    turn::TurnOptions,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let registry = Registry::default();
    registry.lists(&[("search", "Finds documents."), ("translate", "Translates a text.")]);
    let url = registry.start().await?;

    println!("A cache whose answers are fresh until they are invalidated");
    let cache = cached(hub(&url)?.provider(), CacheOptions::new([], Ttl::forever()));
    let engine = listening(Engine::builder().provider(Arc::clone(&cache) as _))?;
    println!("  three turns at the same time ask once");
    let one = || async { step(&engine).await };
    tokio::try_join!(biased; one(), one(), one())?;
    println!("  the next one sends no request");
    step(&engine).await?;
    call(&engine, "search").await?;
    println!("  nothing changed, and the registry says so");
    ask_anew(&engine, &cache).await?;
    registry.lists(&[("search", "Finds documents and mail."), ("summarize", "Shortens a text.")]);
    println!("  the catalog is another");
    ask_anew(&engine, &cache).await?;

    println!("A cache that asks each time, and has an older answer for when that fails");
    let asks = CacheOptions::new([], Ttl::after(Duration::ZERO));
    let asks = asks.stale_on_error(Duration::from_secs(3600));
    let cache = cached(hub(&url)?.provider(), asks);
    let engine = listening(Engine::builder().provider(cache))?;
    step(&engine).await?;
    registry.fails(1);
    step(&engine).await?;

    println!("A rule that has a registry asked again");
    let again = Retry { base: Duration::from_millis(1), ..Retry::attempts(3) };
    let rule =
        ReliabilityRule::new(ReliabilityAction::Retry(again)).stage(Stage::Discover).label("again");
    let builder = Engine::builder().provider(hub(&url)?.provider()).reliability([rule]);
    let engine = listening(builder)?;
    registry.fails(2);
    step(&engine).await?;
    registry.fails(3);
    if let Err(error) = step(&engine).await {
        println!("  the iteration failed: {error}");
    }
    Ok(())
}

/// The registry as a hub.
fn hub(url: &str) -> Outcome<HttpHub> {
    let mut spec = HubSpec::new(
        "registry",
        format!("{url}/tools"),
        Method::POST,
        format!("{url}/run/{{tool}}"),
    );
    spec.pointers = HubPointers { list: "/tools".into(), ..HubPointers::default() };
    // Only addresses of the public internet are dialed, unless they are allowed.
    let client = HttpClient::builder().allow_addresses(["127.0.0.1/32".parse()?]).build();
    Ok(spec.build(&client, None)?)
}

fn listening(engine: EngineBuilder) -> Outcome<Engine> {
    let engine = engine.build()?;
    engine.events().on("*", tell)?;
    Ok(engine)
}

/// An event in a line, without times.
fn tell(event: &Event) {
    let name = event.kind.name();
    match &event.kind {
        EventKind::DiscoveryCompleted { provider, cache, tool_count, error, .. } => {
            let error = error.as_ref().map(|error| format!(", since: {error}")).unwrap_or_default();
            let cache = format!("{cache:?}").to_lowercase();
            println!("    {name}: {provider}, cache {cache}, {tool_count} tools{error}");
        }
        EventKind::DiscoveryFailed { provider, error, .. } => {
            println!("    {name}: {provider}: {error}");
        }
        EventKind::ToolsChanged { added, removed, changed, .. } => {
            println!("    {name}: added {added:?}, removed {removed:?}, changed {changed:?}");
        }
        EventKind::ReliabilityRetried { attempt, rule, .. } => {
            println!("    {name}: after attempt {attempt}, by rule `{rule}`");
        }
        EventKind::ReliabilityRecovered { attempts, .. } => {
            println!("    {name}: after {attempts} attempts");
        }
        EventKind::ReliabilityFailFast { code, attempts, .. } => {
            println!("    {name}: {code} after {attempts} attempts");
        }
        _ => {}
    }
}

async fn step(engine: &Engine) -> Outcome {
    engine.turn(TurnOptions::default())?.iteration().await?;
    Ok(())
}

async fn ask_anew(engine: &Engine, cache: &Cached) -> Outcome {
    cache.invalidate();
    step(engine).await
}

async fn call(engine: &Engine, tool: &str) -> Outcome {
    let mut turn = engine.turn(TurnOptions::default())?;
    let calls = vec![ToolCall::new("1", tool, serde_json::json!({}))];
    for result in turn.iteration().await?.execute(calls).await {
        println!("    {tool}: {}", result.value);
    }
    Ok(())
}
