//! How a connection begins, and what a server is known by after that.

use serde_json::json;
use tokio::time::Instant;

use super::{
    super::{RequestError, ServerInfo},
    call,
    raw::raw,
    unheard,
};

#[tokio::test]
async fn a_server_that_refuses_discovery_is_initialised_and_remembered() {
    let (connect, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut first = connections.recv().await.unwrap();
        first.greet_legacy().await;
        let mut second = connections.recv().await.unwrap();
        second.initialize().await;
        (first, second)
    });
    let first = connect.connect(unheard()).await.unwrap();
    let expected = ServerInfo {
        name: "raw".to_owned(),
        version: "1".to_owned(),
        protocol: "2025-11-25".to_owned(),
        announces_changes: true,
    };
    assert_eq!(first.server(), &expected);
    let second = connect.connect(unheard()).await.unwrap();
    assert_eq!(second.server(), &expected);
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_modern_server_is_asked_with_what_every_request_carries() {
    let (connect, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({"tools": {}})).await;
        let list = server.expect("tools/list").await;
        let tool = json!({"name": "add", "inputSchema": {"type": "object"}});
        let result = json!({"tools": [tool], "ttlMs": 500, "cacheScope": "private"});
        server.answer(&list, result).await;
        (server, list)
    });
    let connection = connect.connect(unheard()).await.unwrap();
    assert_eq!(connection.server().protocol, "2026-07-28");
    let page = connection.list_tools(None).await.unwrap();
    assert_eq!(page.tools[0].name.as_deref(), Some("add"));
    assert_eq!(page.ttl, Some(std::time::Duration::from_millis(500)));
    let (_server, list) = server.await.unwrap();
    let meta = &list["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{list}");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
}

#[tokio::test]
async fn a_server_of_a_version_that_is_not_known_is_left_alone() {
    let (connect, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        let discover = server.expect("server/discover").await;
        server.refuse(&discover, -32601, "no such method").await;
        let initialize = server.expect("initialize").await;
        let result = json!({
            "protocolVersion": "1999-01-01", "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        });
        server.answer(&initialize, result).await;
        while server.read().await.is_some() {}
        assert!(connections.try_recv().is_err(), "another greeting would change nothing");
        connections
    });
    let refused = connect.connect(unheard()).await.err().unwrap().to_string();
    assert!(refused.starts_with("it speaks version `1999-01-01` of the protocol"), "{refused}");
    assert!(refused.contains("2025-11-25, 2026-07-28"), "{refused}");
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_about_discovery_costs_its_wait_once() {
    let (connect, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut first = connections.recv().await.unwrap();
        let discover = first.expect("server/discover").await;
        let initialize = first.expect("initialize").await;
        // Comes when nobody waits for it any more.
        first.refuse(&discover, -32601, "too late").await;
        let result = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "serverInfo": {"name": "slow", "version": "1"},
        });
        first.answer(&initialize, result).await;
        first.expect("notifications/initialized").await;
        let mut second = connections.recv().await.unwrap();
        second.initialize().await;
        (first, second)
    });
    let began = Instant::now();
    let first = connect.connect(unheard()).await.unwrap();
    assert_eq!(first.server().protocol, "2025-06-18");
    assert_eq!(began.elapsed().as_secs(), 10);
    let again = Instant::now();
    connect.connect(unheard()).await.unwrap();
    assert_eq!(again.elapsed().as_secs(), 0);
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_that_dies_of_discovery_is_asked_again_in_the_old_way() {
    let (connect, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut first = connections.recv().await.unwrap();
        first.expect("server/discover").await;
        drop(first);
        let mut second = connections.recv().await.unwrap();
        second.initialize().await;
        second
    });
    let connection = connect.connect(unheard()).await.unwrap();
    assert_eq!(connection.server().protocol, "2025-11-25");
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_that_was_replaced_by_a_modern_one_is_found_again() {
    let (connect, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut legacy = connections.recv().await.unwrap();
        legacy.greet_legacy().await;
        let mut refused = connections.recv().await.unwrap();
        let initialize = refused.expect("initialize").await;
        refused.refuse(&initialize, -32601, "this server has no handshake").await;
        let mut modern = connections.recv().await.unwrap();
        modern.greet_modern(json!({})).await;
        (legacy, modern)
    });
    assert_eq!(connect.connect(unheard()).await.unwrap().server().protocol, "2025-11-25");
    assert_eq!(connect.connect(unheard()).await.unwrap().server().protocol, "2026-07-28");
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_that_never_gets_ready_says_why() {
    let (connect, mut connections) = raw(4096);
    tokio::spawn(async move { while connections.recv().await.is_some() {} });
    let Err(error) = connect.connect(unheard()).await else { panic!("it is connected") };
    assert_eq!(error.to_string(), "it was lost before it was ready: it closed the connection",);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_comes_late_or_again_is_taken_for_a_change() {
    let (connect, mut connections) = raw(4096);
    let counted = std::sync::Arc::new(super::Counted::default());
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({"tools": {"listChanged": true}})).await;
        let first = server.expect("subscriptions/listen").await;
        // Whoever connected does not wait longer for it.
        let call = server.expect("tools/call").await;
        server.acknowledge(&first).await;
        server.answer(&call, json!({"content": []})).await;
        let ended = json!({"io.modelcontextprotocol/subscriptionId": first["id"]});
        server.answer(&first, json!({"resultType": "complete", "_meta": ended})).await;
        let second = server.expect("subscriptions/listen").await;
        server.acknowledge(&second).await;
        server
    });
    let connection = connect.connect(counted.clone()).await.unwrap();
    connection.call_tool(call("any")).await.unwrap();
    let _server = server.await.unwrap();
    while counted.count() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn changes_are_subscribed_to_and_heard_once_per_announcement() {
    let (connect, mut connections) = raw(4096);
    let counted = std::sync::Arc::new(super::Counted::default());
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({"tools": {"listChanged": true}})).await;
        let listen = server.expect("subscriptions/listen").await;
        server.acknowledge(&listen).await;
        let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
        let changed = json!({
            "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": {"_meta": meta},
        });
        server.write(&changed).await;
        server.write(&changed).await;
        let call = server.expect("tools/call").await;
        server.answer(&call, json!({"content": []})).await;
        assert_eq!(listen["params"]["notifications"], json!({"toolsListChanged": true}));
        server
    });
    let connection = connect.connect(counted.clone()).await.unwrap();
    // Sent after the announcements, so read after them.
    connection.call_tool(call("any")).await.unwrap();
    assert_eq!(counted.count(), 2);
    drop(server.await.unwrap());
    let after = connection.call_tool(call("any")).await.unwrap_err();
    assert!(matches!(after, RequestError::NotSent(_)), "{after:?}");
}
