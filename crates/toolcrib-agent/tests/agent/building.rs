//! Invalid configurations of an agent.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_agent::{Agent, AgentError, RunOptions};
use toolcrib_core::{
    Approval, Capabilities, Clarification, ClarificationOutcome, Model, Policy, Rule, SessionOwner,
    SessionStoreError, ToolContext, UsageStore as _, call_approver, call_clarifier, static_tools,
};
use toolcrib_store::SqliteStore;
use toolcrib_testing::{call as request, model};

use crate::support::{agent, builder, tool};

#[tokio::test]
async fn every_provider_is_listed() {
    let model = model().always("hi");
    let builder = agent(&model).provider(static_tools([tool("a")]));
    let agent = builder.provider(static_tools([tool("b")])).build().unwrap();
    let outcome = agent.run("hi", RunOptions::default()).await;
    assert_eq!(*outcome.menus[0].offered, ["a", "b"]);
}

#[tokio::test]
async fn a_shared_model_is_a_model() {
    let model = Arc::new(model().always("hi"));
    let shared: Arc<dyn Model> = model.clone();
    let named = Agent::builder().model(Arc::clone(&model)).fallback_model(model).build().unwrap();
    assert_eq!(named.model().name(), shared.name());
    for agent in [named, Agent::builder().model(shared).build().unwrap()] {
        let answer = agent.run("hi", RunOptions::default()).await.into_answer().unwrap();
        assert_eq!(&*answer, "hi");
    }
}

#[tokio::test]
async fn the_builder_takes_what_decides_and_answers() {
    let refund = tool("refund");
    let ask = builder("ask")
        .capabilities(Capabilities::default().person())
        .handler(async |_: Value, cx: ToolContext| {
            match cx.clarifier().unwrap().clarify(Clarification::new("Which?")).await {
                ClarificationOutcome::Answered(answer) => answer.to_string(),
                other => format!("{other:?}"),
            }
        })
        .unwrap();
    let model =
        model().then(request("refund", json!({}))).then(request("ask", json!({}))).then("done");
    let agent = agent(&model)
        .tools([refund, ask])
        .policy(Policy::of([Rule::ask("consent").tools(["refund"])]))
        .approver(Arc::new(call_approver(|call| {
            let name = call.tool.name().to_string();
            async move { Approval::Refused(format!("no {name} today")) }
        })))
        .clarifier(call_clarifier(|question| async move {
            ClarificationOutcome::Answered(format!("{} the first", question.question).into())
        }))
        .build()
        .unwrap();
    let outcome = agent.run("hi", RunOptions::default()).await;
    let texts: Vec<_> = outcome.tool_calls.iter().map(|result| &*result.value).collect();
    assert_eq!(texts, ["no refund today", "Which? the first"]);
}

#[tokio::test]
async fn the_builder_takes_the_store_of_sessions_and_usage() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let model = model().always("hi");
    let kept = agent(&model).store(Arc::clone(&store)).build().unwrap();
    let ann = SessionOwner::principal("ann");
    for turns in 1..=2 {
        let session = kept.session(&ann, "order-1042").await.unwrap();
        let options = RunOptions::default().session(&session);
        kept.run("hi", options).await.into_answer().unwrap();
        assert_eq!(session.info().await.unwrap().turns, turns, "it is continued");
        let other = kept.session(&SessionOwner::principal("bo"), "order-1042").await.unwrap();
        let mut options = RunOptions::default();
        options.turn.principal = Some("ann".into());
        let stolen = kept.run("hi", options.session(&other)).await.into_answer();
        assert!(stolen.is_err(), "its owner is another");
        other.close().await.unwrap();
        session.close().await.unwrap();
    }
    let usage = store.usage_since(0).unwrap();
    assert!(usage.iter().all(|usage| usage.owner == ann), "{usage:?}");
    assert_eq!(usage.iter().map(|usage| usage.entry.count).sum::<u64>(), 2);

    let without = agent(&model).build().unwrap().session(&ann, "order-1042").await;
    let Err(error @ SessionStoreError::Io { .. }) = without else { panic!() };
    assert_eq!(
        error.to_string(),
        "the store of the agent cannot be opened: it has none; set one with `AgentBuilder::store`"
    );
}

#[test]
fn an_agent_needs_a_model_and_an_iteration_and_tools_of_different_names() {
    assert!(matches!(Agent::builder().build(), Err(AgentError::NoModel)));
    let none = agent(&model().always("hi")).max_iterations(0).build();
    assert!(matches!(none, Err(AgentError::NoIterations)));
    let twice = agent(&model().always("hi")).tools([tool("a"), tool("a")]).build();
    assert!(matches!(twice, Err(AgentError::Engine(_))));
}
