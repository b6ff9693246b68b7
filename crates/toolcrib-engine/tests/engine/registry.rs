//! The registry as an engine's baseline, and as a turn's own.

use std::sync::Arc;

use toolcrib_core::{OnCollision, Tool, static_tools};
use toolcrib_engine::{BuildError, IterationError, TurnOptions};

use crate::support::{builder, engine, menu, offered, says, tool};

fn from(name: &str, origin: &str) -> Tool {
    says(builder(name).origin(origin), origin)
}

/// Case 30 of the providers' reference. Skills own no tools here, so that they clash with none; the very
/// same tool twice is `a_tool_does_not_collide_with_itself` in the core.
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
    turn.registry().register(tool("c")).unwrap();
    turn.registry().unregister("a");
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
    turn.registry().overwrite(from("a", "new"));
    let mut iteration = turn.iteration().await.unwrap();
    let call = crate::support::call("a", serde_json::json!({}));
    assert_eq!(&*iteration.execute(vec![call]).await[0].value, "new");
}
