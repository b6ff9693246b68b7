//! The registry as an engine's baseline, and as a turn's separate one.

use std::sync::{Arc, Mutex};

use toolcrib_core::{ErrorCode, Lifetime, OnCollision, Tool, static_tools};
use toolcrib_engine::{
    BuildError, IterationContext, Personality, TurnError, TurnOptions, TurnRunner,
};

use crate::support::{builder, call, engine, menu, offered, says, tool};

fn from(name: &str, origin: &str) -> Tool {
    says(builder(name).origin(origin), origin)
}

/// Case 30 of the providers' reference. Skills own no tools here, so that they clash with none; the
/// very same tool twice is `a_tool_does_not_collide_with_itself` in the core.
#[test]
fn two_tools_of_one_name_are_a_build_error_with_both_origins() {
    let built = engine()
        .tool(from("refund", "toolcrib.toml:12"))
        .tool(from("refund", "toolcrib.toml:40"))
        .build();
    let Err(error @ BuildError::AlreadyRegistered(_)) = built else {
        panic!("built");
    };
    // Overwriting is not possible here; the error suggests the fix, once.
    assert_eq!(
        error.to_string(),
        "two tools are called `refund`: one comes from toolcrib.toml:12, the other from \
         toolcrib.toml:40; rename one of them, or offer one through a provider and declare \
         `on_collision` on it"
    );
    assert!(std::error::Error::source(&error).is_none());
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
        assert!(matches!(turn.iteration().await, Err(TurnError::Collision(_))));
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

#[tokio::test]
async fn an_ack_ends_what_lives_for_an_iteration_though_the_executor_goes_on() {
    let brief = says(builder("brief").ephemeral(Lifetime::Iteration), "brief");
    let longer = says(builder("longer").ephemeral(Lifetime::Turn), "longer");
    let engine = engine().tools([brief, longer, tool("always")]).build().unwrap();
    let (called, seen) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (noted, menus) = (Arc::clone(&called), Arc::clone(&seen));
    let executor = move |mut cx: IterationContext| {
        let (noted, menus) = (Arc::clone(&noted), Arc::clone(&menus));
        async move {
            for acked in [false, true] {
                if acked {
                    cx.ack()?;
                }
                let names = ["brief", "longer", "always", "never"];
                let calls = names.map(|name| call(name, serde_json::json!({})));
                let results = cx.execute(calls.into()).await;
                noted.lock().unwrap().push(results.iter().map(|r| r.code).collect::<Vec<_>>());
                menus.lock().unwrap().push(menu(&cx));
            }
            Ok(())
        }
    };
    let outcome = TurnRunner::new(engine).run(TurnOptions::default(), executor).await.unwrap();
    assert_eq!(outcome.end.as_str(), "acked");
    let gone = Some(ErrorCode::NotAvailable);
    assert_eq!(
        *called.lock().unwrap(),
        [[None, None, None, gone], [gone, None, None, gone]],
        "before the ack, and after it"
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], seen[1], "what was composed stays as it was");
}

#[tokio::test]
async fn a_turn_refuses_calls_when_none_may_be_made_and_says_who_acts() {
    let clerk = Personality::new("clerk");
    let engine = engine().tool(tool("t")).personality(clerk).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default().personality("clerk")).unwrap();
    assert_eq!(&*turn.personality().id, "clerk");
    let calls = || vec![call("t", serde_json::json!({})), call("u", serde_json::json!({}))];
    let refused = turn.refuse(calls()).await;
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|result| result.code == Some(ErrorCode::NotAvailable)));
    let refused = turn.iteration().await.unwrap().refuse(calls()).await;
    assert_eq!((refused.len(), refused[0].code), (2, Some(ErrorCode::NotAvailable)));
    let token = turn.cancellation().clone();
    assert!(!token.is_cancelled());
    drop(turn);
    assert!(token.is_cancelled(), "it is the token that the turn ends with");
}
