//! Tools that live as long as a conversation.

use toolcrib_core::Lifetime;
use toolcrib_engine::{ExecutorError, IterationContext, PluginRegistrar, TurnOptions, TurnRunner};

use crate::{
    plugins::Brings,
    support::{builder, engine, menu, offered, says, tool},
};

#[tokio::test]
async fn a_tool_of_a_session_is_there_in_each_turn_of_its_conversation_and_nowhere_else() {
    let engine = engine().tool(tool("always")).build().unwrap();
    let kept = |name: &str| says(builder(name).ephemeral(Lifetime::Session), "ran");
    let here = || TurnOptions::default().principal("ana").conversation("c");
    let all = async |options: TurnOptions| offered(&engine, options).await;

    let turn = engine.turn(here()).unwrap();
    turn.registry().register(kept("a")).unwrap();
    turn.registry().register(kept("b")).unwrap();
    turn.registry().overwrite(kept("always"));
    turn.registry().register(says(builder("t").ephemeral(Lifetime::Turn), "ran")).unwrap();
    assert_eq!(all(here()).await, ["always"], "a turn hands on when it ends");
    drop(turn);
    let mut next = engine.turn(here()).unwrap();
    assert_eq!(menu(&next.iteration().await.unwrap()), ["always", "a", "b"]);
    assert_eq!(next.registry().get("always").unwrap().ephemeral(), Some(Lifetime::Session));
    for other in [
        TurnOptions::default().principal("ana"),
        TurnOptions::default().principal("ana").conversation("d"),
        TurnOptions::default().principal("ben").conversation("c"),
        here().tenant("t"),
    ] {
        assert_eq!(all(other).await, ["always"]);
    }

    // What is taken out is gone; what another turn does meanwhile stays.
    next.registry().unregister("a");
    let beside = engine.turn(here()).unwrap();
    beside.registry().register(kept("c")).unwrap();
    drop(next);
    drop(beside);
    assert_eq!(all(here()).await, ["always", "b", "c"]);

    // A turn that was nacked changes nothing.
    let runner = TurnRunner::new(engine.clone());
    let executor = async |cx: IterationContext| {
        cx.registry().unregister("b");
        cx.registry().register(kept("d")).unwrap();
        cx.nack("no").unwrap();
        Ok::<_, ExecutorError>(())
    };
    let outcome = runner.run(here(), executor).await.unwrap();
    assert_eq!(outcome.end.as_str(), "nacked");
    assert!(outcome.registry.has("d"), "it can be looked at");
    drop(outcome);
    assert_eq!(all(here()).await, ["always", "b", "c"]);

    // An engine without some plugin is another one of the same conversations.
    let nothing = Brings("nothing", |_: &mut PluginRegistrar| Ok(()));
    let narrower = engine.with_plugin(&nothing).unwrap().without_plugin("nothing").unwrap();
    assert_eq!(offered(&narrower, here()).await, ["always", "b", "c"]);
    // What a plugin brought is in the turns of those who have it.
    let with = engine.with_plugin(&nothing).unwrap();
    let turn = with.turn(here()).unwrap();
    turn.registry().register(kept("of_plugin").with_plugin(&"nothing".into())).unwrap();
    drop(turn);
    assert_eq!(offered(&with, here()).await, ["always", "b", "c", "of_plugin"]);
    assert_eq!(offered(&engine, here()).await, ["always", "b", "c"]);
    drop(engine.turn(here().ends_conversation()).unwrap());
    assert_eq!(all(here()).await, ["always"]);
}

#[tokio::test]
async fn a_session_that_had_no_turn_for_long_makes_room() {
    let engine = engine().build().unwrap();
    let of = |n: usize| TurnOptions::default().conversation(n.to_string());
    for n in 0..1_030 {
        let kept = says(builder("kept").ephemeral(Lifetime::Session), "ran");
        engine.turn(of(n)).unwrap().registry().register(kept).unwrap();
        // The first is in use all the time.
        drop(engine.turn(of(0)).unwrap());
    }
    for (n, there) in [(0, 1), (1, 0), (6, 0), (7, 1), (1_029, 1)] {
        assert_eq!(offered(&engine, of(n)).await.len(), there, "{n}");
    }
}
