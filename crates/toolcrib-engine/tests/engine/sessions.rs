//! Tools with the lifetime of a conversation.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{Lifetime, ToolContext};
use toolcrib_engine::{
    Engine, ExecutorError, IterationContext, PluginRegistrar, Turn, TurnOptions, TurnRunner,
};

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

    // A removed tool is gone; concurrent changes of another turn remain.
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
    // A plugin's tool is in the turns of engines with that plugin.
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
async fn what_has_ended_stays_ended_for_the_turns_that_were_at_work() {
    let engine = engine().build().unwrap();
    let kept = |name: &str| says(builder(name).ephemeral(Lifetime::Session), "ran");
    let here = || TurnOptions::default().conversation("c");
    engine.turn(here()).unwrap().registry().register(kept("old")).unwrap();
    let begin = || engine.turn(here()).unwrap();
    let (before, beside) = (begin(), begin());
    before.registry().register(kept("before")).unwrap();
    beside.registry().register(kept("beside")).unwrap();
    drop(engine.turn(here().ends_conversation()).unwrap());
    assert!(beside.registry().has("old"), "a turn that is at work keeps what it has");
    drop(before);
    assert_eq!(offered(&engine, here()).await, Vec::<String>::new());

    // One of the same name is another one: nothing comes into it, and nothing goes.
    let anew = begin();
    anew.registry().register(kept("beside")).unwrap();
    anew.registry().register(kept("old")).unwrap();
    drop(anew);
    let last = begin();
    beside.registry().unregister("old");
    drop(beside);
    last.registry().register(kept("last")).unwrap();
    drop(last);
    assert_eq!(offered(&engine, here()).await, ["beside", "old", "last"]);
}

#[tokio::test]
async fn conversations_that_only_have_turns_take_no_room() {
    let engine = engine().build().unwrap();
    let of = |n: usize| TurnOptions::default().conversation(n.to_string());
    let register = |n: usize| {
        let kept = says(builder("kept").ephemeral(Lifetime::Session), "ran");
        engine.turn(of(n)).unwrap().registry().register(kept).unwrap();
    };
    let at_work: Vec<_> = (0..1_030).map(|n| engine.turn(of(n)).unwrap()).collect();
    register(2_000);
    register(2_001);
    // A conversation that is evicted during a turn continues as the same one.
    (0..1_023).for_each(register);
    for (n, there) in [(2_000, 0), (2_001, 1), (0, 1), (1_022, 1)] {
        assert_eq!(offered(&engine, of(n)).await.len(), there, "{n}");
    }
    register(1_023);
    assert_eq!(offered(&engine, of(1)).await.len(), 0);
    let kept = says(builder("again").ephemeral(Lifetime::Session), "ran");
    at_work[1].registry().register(kept).unwrap();
    drop(at_work);
    assert_eq!(offered(&engine, of(1)).await, ["again"]);
}

/// Begins a turn when it is dropped.
struct BeginsOne(Engine);

impl Drop for BeginsOne {
    fn drop(&mut self) {
        drop(self.0.turn(TurnOptions::default().conversation("other")).unwrap());
    }
}

#[tokio::test]
async fn a_tool_may_begin_a_turn_when_it_goes() {
    let engine = engine().build().unwrap();
    let gone = Arc::new(());
    let register = |turn: &Turn, name: &str| {
        let held = Arc::new((BeginsOne(engine.clone()), Arc::clone(&gone)));
        let ran = move |_: Value, _: ToolContext| {
            let _ = &held;
            async { "ran" }
        };
        let tool = builder(name).ephemeral(Lifetime::Session).handler(ran).unwrap();
        turn.registry().overwrite(tool);
    };
    let of = |n: usize| TurnOptions::default().conversation(n.to_string());
    // One that is replaced.
    let (one, two) = (engine.turn(of(0)).unwrap(), engine.turn(of(0)).unwrap());
    register(&one, "a");
    register(&two, "a");
    drop(one);
    drop(two);
    assert_eq!(Arc::strong_count(&gone), 2);
    // One that makes room.
    for n in 1..=1_024 {
        register(&engine.turn(of(n)).unwrap(), "a");
    }
    assert_eq!(Arc::strong_count(&gone), 1_025);
    // One of a conversation that is over.
    drop(engine.turn(of(1).ends_conversation()).unwrap());
    assert_eq!(Arc::strong_count(&gone), 1_024);
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
