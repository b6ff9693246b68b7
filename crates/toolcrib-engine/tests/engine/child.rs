//! Turns of child agents: at most what the turn that gave the task is offered.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_core::{
    AgentTask, BoxFuture, Capabilities, DelegateHandle, NetworkRules, OnCollision, Tool,
    ToolContext, ToolError, ToolOutput, static_tools,
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

/// Calls `reach` in the turn of each child, and returns its result.
struct Calls(Engine);

impl ChildAgents for Calls {
    fn run(
        &self,
        task: AgentTask,
        parent: ParentTurn,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let engine = self.0.clone();
        Box::pin(async move {
            let mut options = TurnOptions::default();
            (options.personality, options.parent) = (task.personality, Some(parent));
            let mut turn = engine.turn(options).unwrap();
            let mut iteration = turn.iteration().await.unwrap();
            let results = iteration.execute(vec![call("reach", json!({}))]).await;
            Ok(ToolOutput::text(results[0].value.to_string()))
        })
    }
}

#[tokio::test]
async fn a_child_reaches_the_hosts_and_folders_that_it_and_its_parent_reach() {
    let reach = builder("reach")
        .handler(|_: Value, cx: ToolContext| async move {
            let NetworkRules { allow, deny } = cx.network_rules();
            let folders =
                ["docs", "notes", "mail"].into_iter().filter(|name| cx.reaches_files(name));
            format!("allow {allow:?}, deny {deny:?}, folders {:?}", folders.collect::<Vec<_>>())
        })
        .unwrap();
    let rules = |allow: [&str; 2], deny: &str| NetworkRules {
        allow: Some(allow.map(Into::into).into()),
        deny: vec![deny.into()],
    };
    let wide = Personality::new;
    let own = rules(["a.example", "*.b.example"], "x.example");
    let parent = wide("parent").network(own).files(["docs", "notes"]);
    let own = rules(["www.b.example", "c.example"], "y.example");
    let child = wide("child").network(own).files(["notes", "mail"]);
    for (parent, child, expected) in [
        (
            parent.clone(),
            child.clone(),
            r#"allow Some(["www.b.example"]), deny ["x.example", "y.example"], folders ["notes"]"#,
        ),
        (
            parent,
            wide("child"),
            r#"allow Some(["a.example", "*.b.example"]), deny ["x.example"], folders ["docs", "notes"]"#,
        ),
        (
            wide("parent"),
            child,
            r#"allow Some(["www.b.example", "c.example"]), deny ["y.example"], folders ["notes", "mail"]"#,
        ),
    ] {
        let engine = engine()
            .tools([gives_tasks(), reach.clone()])
            .personality(parent)
            .personality(child)
            .build()
            .unwrap();
        let mut options = TurnOptions::default().personality("parent");
        options.child_agents = Some(Arc::new(Calls(engine.clone())));
        let mut turn = engine.turn(options).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let results = iteration.execute(vec![call("give", json!({}))]).await;
        assert_eq!(&*results[0].value, expected, "{:?}", results[0].cause);
    }
}
