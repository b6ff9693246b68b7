//! The registry: by itself, as an engine's baseline, and as a turn's own.

use std::sync::Arc;

use toolcrib_core::{OnCollision, Tool, ToolRegistry, static_tools};
use toolcrib_engine::{BuildError, IterationError, TurnOptions};

use crate::support::{builder, engine, menu, offered, says, tool};

fn from(name: &str, origin: &str) -> Tool {
    says(builder(name).origin(origin), origin)
}

fn names(registry: &ToolRegistry) -> Vec<String> {
    registry.iter().map(|tool| tool.name().to_string()).collect()
}

fn abc() -> ToolRegistry {
    ToolRegistry::try_from(vec![tool("c"), tool("a"), tool("b")]).unwrap()
}

#[test]
fn tools_stay_in_the_order_in_which_they_came() {
    let mut registry = abc();
    registry.register(tool("0")).unwrap();
    assert_eq!(names(&registry), ["c", "a", "b", "0"]);
    assert_eq!(registry.len(), 4);
}

#[test]
fn the_tools_of_a_toolset_are_a_registry_of_their_own_in_the_same_order() {
    let of = |name: &str, toolset: &str| says(builder(name).toolset(toolset), "");
    let tools = vec![of("c", "file"), of("a", "web"), tool("x"), of("b", "file")];
    let registry = ToolRegistry::try_from(tools).unwrap();
    let mut files = registry.for_toolset("file");
    assert_eq!(names(&files), ["c", "b"]);
    files.unregister("c");
    assert!(registry.has("c"));
    assert!(registry.for_toolset("File").is_empty());
}

#[test]
fn a_name_that_is_taken_is_refused_with_both_origins_whatever_the_tool_says_of_collisions() {
    for on_collision in [OnCollision::Fail, OnCollision::Keep, OnCollision::Replace] {
        let mut registry = ToolRegistry::new();
        registry.register(from("refund", "toolcrib.toml:12")).unwrap();
        let again = builder("refund").origin("mcp:pay").on_collision(on_collision);
        let error = registry.register(says(again, "")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "tool `refund` is already registered: it comes from toolcrib.toml:12, and again from \
             mcp:pay; rename one of them, or use `overwrite`"
        );
        assert_eq!(registry.get("refund").unwrap().origin(), "toolcrib.toml:12");
        assert_eq!(registry.len(), 1);
    }
}

#[test]
fn the_same_tool_twice_is_a_name_that_is_taken() {
    let refund = tool("refund");
    assert!(ToolRegistry::try_from(vec![refund.clone(), refund]).is_err());
}

#[test]
fn overwrite_keeps_the_place_and_returns_what_was_there() {
    let mut registry = abc();
    let old = registry.get("a").unwrap().clone();
    let new = from("a", "new");
    let replaced = registry.overwrite(new.clone()).unwrap();
    assert!(replaced.same(&old));
    assert!(registry.get("a").unwrap().same(&new));
    assert_eq!(names(&registry), ["c", "a", "b"]);
    assert!(registry.overwrite(tool("d")).is_none());
    assert_eq!(names(&registry), ["c", "a", "b", "d"]);
}

#[test]
fn unregister_takes_one_out_and_leaves_the_order() {
    let mut registry = abc();
    assert_eq!(*registry.unregister("c").unwrap().name(), "c");
    assert_eq!(names(&registry), ["a", "b"]);
    assert!(registry.unregister("c").is_none());
    registry.register(tool("c")).unwrap();
    assert_eq!(names(&registry), ["a", "b", "c"]);
}

#[test]
fn get_and_has_know_exact_names_only() {
    let registry = abc();
    assert!(registry.has("a") && registry.get("a").is_some());
    for other in ["A", "a ", "", "d"] {
        assert!(!registry.has(other) && registry.get(other).is_none(), "{other:?}");
    }
}

#[test]
fn all_is_a_fresh_list() {
    let registry = abc();
    let mut all = registry.all();
    all.clear();
    assert_eq!(registry.all().len(), 3);
    assert!(ToolRegistry::new().all().is_empty() && ToolRegistry::new().is_empty());
}

#[test]
fn two_tools_of_one_name_are_a_build_error_with_both_origins() {
    let built = engine()
        .tool(from("refund", "toolcrib.toml:12"))
        .tool(from("refund", "toolcrib.toml:40"))
        .build();
    let Err(error @ BuildError::AlreadyRegistered(_)) = built else {
        panic!("built");
    };
    // There is nothing to overwrite with here; what can be done is said, once.
    assert_eq!(
        error.to_string(),
        "two tools are called `refund`: one comes from toolcrib.toml:12, the other from \
         toolcrib.toml:40; rename one of them, or offer one through a provider and declare \
         `on_collision` on it"
    );
    assert!(std::error::Error::source(&error).is_none());
}

#[tokio::test]
async fn what_the_error_of_the_build_advises_helps() {
    let yields = builder("refund").origin("b").on_collision(OnCollision::Keep);
    let engine = engine()
        .tool(from("refund", "a"))
        .provider(static_tools([says(yields, "b")]))
        .build()
        .unwrap();
    let result = crate::support::once(&engine, "refund", serde_json::json!({})).await;
    assert_eq!(&*result.value, "a");
}

#[tokio::test]
async fn only_the_tool_that_comes_in_second_is_asked_what_happens_on_a_collision() {
    for first in [OnCollision::Keep, OnCollision::Replace] {
        let engine = engine()
            .tool(says(builder("t").on_collision(first), "first"))
            .provider(static_tools([tool("t")]))
            .build()
            .unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        assert!(matches!(turn.iteration().await, Err(IterationError::Collision(_))));
    }
}

#[tokio::test]
async fn edits_of_a_turn_count_from_the_next_iteration_and_end_with_the_turn() {
    let engine = engine().tools([tool("a"), tool("b")]).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut other = engine.turn(TurnOptions::default()).unwrap();
    let before = {
        let iteration = turn.iteration().await.unwrap();
        Arc::clone(iteration.menu())
    };
    turn.registry_mut().register(tool("c")).unwrap();
    turn.registry_mut().unregister("a");
    assert!(before.get("a").is_some() && before.get("c").is_none());
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["b", "c"]);
    assert_eq!(menu(&other.iteration().await.unwrap()), ["a", "b"]);
    drop(turn);
    assert_eq!(menu(&other.iteration().await.unwrap()), ["a", "b"]);
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["a", "b"]);
}

#[tokio::test]
async fn a_tool_put_in_anothers_place_within_a_turn_is_the_one_that_runs() {
    let engine = engine().tool(from("a", "old")).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.iteration().await.unwrap();
    turn.registry_mut().overwrite(from("a", "new"));
    let mut iteration = turn.iteration().await.unwrap();
    let call = crate::support::call("a", serde_json::json!({}));
    assert_eq!(&*iteration.execute(vec![call]).await[0].value, "new");
}
