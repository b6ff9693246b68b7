//! Turns of child agents: at most what the turn that gave the task is offered.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_core::{
    AgentTask, BoxFuture, Capabilities, DelegateHandle, OnCollision, Tool, ToolContext, ToolError,
    ToolOutput, static_tools,
};
use toolcrib_engine::{ChildAgents, Engine, ParentTurn, Personality, TurnOptions};

use crate::support::{builder, call, engine, menu, offered, says};

/// Begins the turn of each child and keeps the names of its menu; the child does nothing.
#[derive(Clone)]
struct Menus(Engine, Arc<Mutex<Vec<String>>>);

impl ChildAgents for Menus {
    fn run(
        &self,
        task: AgentTask,
        parent: ParentTurn,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let Self(engine, seen) = self.clone();
        Box::pin(async move {
            let mut options = TurnOptions::default();
            (options.personality, options.parent) = (task.personality, Some(parent));
            let mut turn = engine.turn(options).unwrap();
            *seen.lock().unwrap() = menu(&turn.iteration().await.unwrap());
            Ok(ToolOutput::text("done"))
        })
    }
}

fn gives_tasks() -> Tool {
    builder("give")
        .input_schema(json!({ "type": "object" }))
        .capabilities(Capabilities::none().agents())
        .handler(|_: Value, cx: ToolContext| async move {
            let mut task = AgentTask::new("Work.");
            task.personality = Some("child".into());
            cx.handle::<DelegateHandle>()?.0.delegate(task, &cx).await
        })
        .unwrap()
}

/// Two sources have a `send`; a personality that does not reach the first one would see the second.
#[tokio::test]
async fn a_child_is_not_offered_another_tool_with_the_name_of_an_offered_one() {
    for (toolset, expected) in [("first", vec!["send"]), ("second", vec![])] {
        let send = |of: &str| {
            let send = builder("send").origin(of).toolset(of).on_collision(OnCollision::Keep);
            static_tools([says(send, of)])
        };
        let engine = engine()
            .tool(gives_tasks())
            .provider(send("first"))
            .provider(send("second"))
            .personality(Personality::new("child").toolset([toolset]))
            .build()
            .unwrap();
        let menus = Menus(engine.clone(), Arc::default());
        let mut options = TurnOptions::default();
        options.child_agents = Some(Arc::new(menus.clone()));
        let mut turn = engine.turn(options).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let results = iteration.execute(vec![call("give", json!({}))]).await;
        assert_eq!(&*results[0].text, "done", "{:?}", results[0].cause);
        assert_eq!(*menus.1.lock().unwrap(), expected, "{toolset}");
        // Without a parent it reaches the tool of its toolset.
        let alone = TurnOptions::default().personality("child");
        assert_eq!(offered(&engine, alone).await, ["send"]);
    }
}
