//! Clients are notified when their menu has changed, and only then.

use std::sync::Arc;

use rmcp::model::SubscriptionFilter;
use serde_json::{Value, json};
use tokio::sync::watch;
use toolcrib_core::{SkillId, Tool, ToolName, ToolProvider};
use toolcrib_engine::{OnSkip, Reveal, Skill, SkillStep, Skills};
use toolcrib_gateway::{Access, Gateway};

use super::support::{Client, Era, Source, billing, engine, text, tool};

/// A gateway to an exchangeable source, and its change signal.
fn switchable() -> (Gateway, Arc<Source>, watch::Sender<u64>) {
    let source = Arc::new(Source::default());
    *source.0.lock().unwrap() = vec![tool("one")];
    let provider: Arc<dyn ToolProvider> = source.clone();
    let (ticks, changes) = watch::channel(0);
    // A second source of changes, which ends at once, does no harm.
    let gone = watch::channel(0).1;
    let engine = engine().provider(provider).build().unwrap();
    (Gateway::builder(engine).changes(gone).changes(changes).build(), source, ticks)
}

fn tick(ticks: &watch::Sender<u64>) {
    ticks.send_modify(|tick| *tick += 1);
}

#[tokio::test]
async fn reading_a_skill_changes_the_sessions_menu_and_says_so_after_the_result() {
    let engine = engine().tools([tool("refund"), tool("note")]).skills(billing()).build().unwrap();
    let gateway = Gateway::builder(engine).build();
    let mut client = Client::of(&gateway, Era::Sessions, Access::new()).await;
    let other = Client::of(&gateway, Era::Sessions, Access::new()).await;
    assert_eq!(other.names().await, ["refund", "note", "read_skill"]);
    assert_eq!(client.names().await, ["refund", "note", "read_skill"]);

    let read = client.call("read_skill", json!({ "id": "billing" })).await;
    assert!(text(&read).contains("How to do billing."));
    client.changed.recv().await.unwrap();
    assert_eq!(client.names().await, ["refund", "read_skill"]);
    assert_eq!(client.refused("note").await.code.0, -32602);
    assert_eq!(text(&client.call("refund", json!({})).await), "refund ran");

    // An action without a change is not announced, and another session is unaffected.
    client.call("read_skill", json!({ "id": "billing" })).await;
    client.call("refund", json!({})).await;
    assert_eq!(other.names().await, ["refund", "note", "read_skill"]);
    for client in [client, other] {
        client.hears_nothing_more().await;
    }
}

#[tokio::test]
async fn a_found_tool_joins_the_list_of_its_session_where_the_token_says_so() {
    let deferred = |name: &str, does: &str| {
        let tool = Tool::builder(name).description(does).deferred(true);
        tool.handler(|_: Value, _| async { "ran" }).unwrap()
    };
    let engine = engine()
        .tools([tool("plain"), deferred("refund", "Returns money."), deferred("ship", "Sends.")])
        .build()
        .unwrap();
    let gateway = Gateway::builder(engine).build();
    let append = || Access::new().reveal(Reveal::Append);
    let mut client = Client::of(&gateway, Era::Sessions, append()).await;
    let other = Client::of(&gateway, Era::Sessions, append()).await;
    let usual = Client::of(&gateway, Era::Sessions, Access::new()).await;
    let without_session = Client::of(&gateway, Era::Stateless, append()).await;
    for client in [&client, &other] {
        assert_eq!(client.names().await, ["plain", "search_tools"]);
    }
    for client in [&usual, &without_session] {
        assert_eq!(client.names().await, ["plain", "search_tools", "call_tool"]);
    }
    let needs = json!({ "needs": ["return money"] });
    client.call("search_tools", needs.clone()).await;
    client.changed.recv().await.unwrap();
    assert_eq!(client.names().await, ["plain", "search_tools", "refund"]);
    assert_eq!(text(&client.call("refund", json!({})).await), "ran");
    // A second search that finds nothing new is not announced, and others are unaffected.
    client.call("search_tools", needs.clone()).await;
    usual.call("search_tools", needs).await;
    assert_eq!(usual.names().await, ["plain", "search_tools", "call_tool"]);
    assert_eq!(other.names().await, ["plain", "search_tools"]);
    for client in [client, other, usual] {
        client.hears_nothing_more().await;
    }
}

#[tokio::test]
async fn skill_steps_and_deactivation_change_only_their_sessions_menu() {
    let step = |name: &str| SkillStep::new(ToolName::new(name).unwrap());
    let id = SkillId::new("refunding").unwrap();
    let skill = Skill::new(id.clone(), "About refunds.", "How to refund.")
        .steps([step("look"), step("refund")], OnSkip::Advance);
    let skills = Skills::new(vec![skill]).unwrap().offer_deactivate_skill(true);
    let engine = engine().tools([tool("look"), tool("refund")]).skills(skills).build().unwrap();
    let gateway = Gateway::builder(engine).build();
    let preset = || Access::new().skill(id.clone());
    let mut client = Client::of(&gateway, Era::Sessions, preset()).await;
    let own = ["read_skill", "deactivate_skill", "skip_step"];
    assert_eq!(client.names().await, [&["look"], &own[..]].concat());
    client.call("look", json!({})).await;
    client.changed.recv().await.unwrap();
    assert_eq!(client.names().await, [&["refund"], &own[..]].concat());
    client.call("deactivate_skill", json!({ "id": "refunding" })).await;
    client.changed.recv().await.unwrap();
    assert_eq!(client.names().await, ["look", "refund", "read_skill", "deactivate_skill"]);

    // Nothing is remembered from one request to the next, and nothing can be activated.
    let stateless = Client::of(&gateway, Era::Stateless, preset()).await;
    for _ in 0..2 {
        assert_eq!(stateless.names().await, ["look"]);
        stateless.call("look", json!({})).await;
    }
    client.hears_nothing_more().await;
}

#[tokio::test]
async fn a_change_further_up_is_announced_once_and_by_content() {
    let (gateway, source, ticks) = switchable();
    let mut client = Client::of(&gateway, Era::Sessions, Access::new()).await;
    let asks_nothing = Client::of(&gateway, Era::Sessions, Access::new()).await;
    assert_eq!(client.names().await, ["one"]);

    *source.0.lock().unwrap() = vec![tool("one"), tool("two")];
    tick(&ticks);
    tick(&ticks);
    client.changed.recv().await.unwrap();
    assert_eq!(client.names().await, ["one", "two"]);

    // The same tools again: no notification. Then a change.
    *source.0.lock().unwrap() = vec![tool("one"), tool("two")];
    tick(&ticks);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    *source.0.lock().unwrap() = vec![tool("three")];
    tick(&ticks);
    client.changed.recv().await.unwrap();
    assert_eq!(client.names().await, ["three"]);

    // A client that never requested the menu knows none.
    for client in [client, asks_nothing] {
        client.hears_nothing_more().await;
    }
}

#[tokio::test]
async fn a_source_that_fails_meanwhile_is_not_announced_as_a_change() {
    let (gateway, source, ticks) = switchable();
    let mut client = Client::of(&gateway, Era::Sessions, Access::new()).await;
    assert_eq!(client.names().await, ["one"]);
    *source.1.lock().unwrap() = Some("down".to_owned());
    tick(&ticks);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    *source.1.lock().unwrap() = None;
    tick(&ticks);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    *source.0.lock().unwrap() = vec![tool("two")];
    tick(&ticks);
    client.changed.recv().await.unwrap();
    client.hears_nothing_more().await;
}

#[tokio::test]
async fn a_stateless_client_subscribes() {
    let (gateway, source, ticks) = switchable();
    let client = Client::of(&gateway, Era::Stateless, Access::new()).await;
    let mut filter = SubscriptionFilter::default();
    filter.tools_list_changed = Some(true);
    filter.prompts_list_changed = Some(true);
    let mut subscription = client.peer.listen(filter).await.unwrap();
    assert_eq!(subscription.acknowledged().tools_list_changed, Some(true));
    assert_eq!(subscription.acknowledged().prompts_list_changed, None);
    for name in ["two", "three"] {
        *source.0.lock().unwrap() = vec![tool(name)];
        tick(&ticks);
        let told = subscription.next().await.unwrap().unwrap();
        assert!(
            matches!(told, rmcp::model::ServerNotification::ToolListChangedNotification(_)),
            "{told:?}"
        );
        assert_eq!(client.names().await, [name]);
    }
    client.cancellation.cancel();
    assert!(subscription.next().await.unwrap().is_none());
    client.served.await.unwrap().unwrap();
}
