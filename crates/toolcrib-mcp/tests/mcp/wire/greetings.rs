//! How a connection begins, and what the client remembers of a server after that.

use serde_json::json;
use tokio::time::{Duration, Instant, sleep};
use toolcrib_core::ErrorCode;

use super::{
    call, of,
    raw::{modern, raw},
};

#[tokio::test]
async fn a_server_that_refuses_discovery_is_initialized_and_remembered() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut first = connections.recv().await.unwrap();
        first.greet_legacy().await;
        first.list().await;
        let mut second = connections.recv().await.unwrap();
        second.initialize().await;
        second.list().await;
        (first, second)
    });
    client.tools().await.unwrap();
    let other = of(&client, "other");
    other.tools().await.unwrap();
    for status in [client.status(), other.status()] {
        assert_eq!(status.server.as_deref(), Some("raw"));
        assert_eq!(status.server_version.as_deref(), Some("1"));
        assert_eq!(status.protocol.as_deref(), Some("2025-11-25"));
    }
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_asked_with_what_every_request_carries() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({"tools": {}})).await;
        let list = server.expect("tools/list").await;
        let tool = json!({"name": "add", "inputSchema": {"type": "object"}});
        let result = json!({"tools": [tool], "ttlMs": 500, "cacheScope": "private"});
        server.answer(&list, result).await;
        (server, list)
    });
    let tools = client.tools().await.unwrap();
    assert_eq!(client.status().protocol.as_deref(), Some("2026-07-28"));
    assert_eq!(tools[0].name(), "mcp__raw__add");
    let (mut server, list) = server.await.unwrap();
    let meta = &list["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28", "{list}");
    assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));

    // Its list is valid for as long as it says.
    sleep(Duration::from_millis(400)).await;
    client.tools().await.unwrap();
    sleep(Duration::from_millis(200)).await;
    let (tools, _) = tokio::join!(client.tools(), server.list());
    assert_eq!(tools.unwrap()[0].name(), "mcp__raw__work");
}

#[tokio::test]
async fn a_version_that_a_server_refuses_is_proposed_once_more() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        let discover = server.expect("server/discover").await;
        server.refuse(&discover, -32022, "Unsupported protocol version").await;
        server.greet_modern(json!({"tools": {}})).await;
        server.list().await;
        let mut other = connections.recv().await.unwrap();
        for _ in 0..2 {
            let discover = other.expect("server/discover").await;
            other.refuse(&discover, -32022, "Unsupported protocol version").await;
        }
        let mut legacy = connections.recv().await.unwrap();
        legacy.initialize().await;
        legacy.list().await;
        (server, legacy)
    });
    client.tools().await.unwrap();
    assert_eq!(client.status().protocol.as_deref(), Some("2026-07-28"));
    let other = of(&client, "other");
    other.tools().await.unwrap();
    assert_eq!(other.status().protocol.as_deref(), Some("2025-11-25"));
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_of_a_version_that_is_not_known_is_left_alone() {
    let (client, mut connections) = raw(4096);
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
    let refused = client.tools().await.unwrap_err().to_string();
    assert!(refused.contains("it speaks version `1999-01-01` of the protocol"), "{refused}");
    assert!(refused.contains("2025-11-25, 2026-07-28"), "{refused}");
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_about_discovery_costs_its_wait_once() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut first = connections.recv().await.unwrap();
        let discover = first.expect("server/discover").await;
        let initialize = first.expect("initialize").await;
        // Arrives when the waiter is gone.
        first.refuse(&discover, -32601, "too late").await;
        first.initialized(&initialize, "2025-06-18").await;
        first.list().await;
        let mut second = connections.recv().await.unwrap();
        second.initialize().await;
        second.list().await;
        (first, second)
    });
    let began = Instant::now();
    client.tools().await.unwrap();
    assert_eq!(client.status().protocol.as_deref(), Some("2025-06-18"));
    assert_eq!(began.elapsed().as_secs(), 10);
    let again = Instant::now();
    of(&client, "other").tools().await.unwrap();
    assert_eq!(again.elapsed().as_secs(), 0);
    drop(server.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_error_that_names_no_request_answers_the_greeting() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.expect("server/discover").await;
        server.refuse(&json!({ "id": null }), -32700, "what?").await;
        server.initialize().await;
        server.list().await;
        server
    });
    let began = Instant::now();
    client.tools().await.unwrap();
    assert_eq!((client.status().epoch, began.elapsed().as_secs()), (1, 0));
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_that_dies_of_discovery_is_asked_again_in_the_old_way() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut first = connections.recv().await.unwrap();
        first.expect("server/discover").await;
        drop(first);
        let mut second = connections.recv().await.unwrap();
        second.initialize().await;
        second.list().await;
        second
    });
    client.tools().await.unwrap();
    assert_eq!(client.status().protocol.as_deref(), Some("2025-11-25"));
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_that_was_replaced_by_a_modern_one_is_found_again() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut legacy = connections.recv().await.unwrap();
        legacy.greet_legacy().await;
        legacy.list().await;
        let mut refused = connections.recv().await.unwrap();
        let initialize = refused.expect("initialize").await;
        refused.refuse(&initialize, -32601, "this server has no handshake").await;
        let mut modern = connections.recv().await.unwrap();
        modern.greet_modern(json!({"tools": {}})).await;
        modern.list().await;
        (legacy, modern)
    });
    client.tools().await.unwrap();
    assert_eq!(client.status().protocol.as_deref(), Some("2025-11-25"));
    let other = of(&client, "other");
    other.tools().await.unwrap();
    assert_eq!(other.status().protocol.as_deref(), Some("2026-07-28"));
    drop(server.await.unwrap());
}

#[tokio::test]
async fn a_server_that_never_gets_ready_says_why() {
    let (client, mut connections) = raw(4096);
    tokio::spawn(async move { while connections.recv().await.is_some() {} });
    assert_eq!(
        client.tools().await.unwrap_err().to_string(),
        "MCP server `raw` cannot be reached: it was lost before it was ready: it closed the \
         connection",
    );
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_comes_late_or_again_is_taken_for_a_change() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({"tools": {"listChanged": true}})).await;
        let first = server.expect("subscriptions/listen").await;
        // The connecting task does not wait longer for it.
        server.list().await;
        server.acknowledge(&first).await;
        server.list().await;
        let ended = json!({"io.modelcontextprotocol/subscriptionId": first["id"]});
        server.answer(&first, json!({"resultType": "complete", "_meta": ended})).await;
        let second = server.expect("subscriptions/listen").await;
        server.acknowledge(&second).await;
        server.list().await;
        server
    });
    while !server.is_finished() {
        client.tools().await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    server.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn changes_are_subscribed_to_and_renew_the_list() {
    let (client, mut connections) = raw(4096);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({"tools": {"listChanged": true}})).await;
        let listen = server.expect("subscriptions/listen").await;
        server.acknowledge(&listen).await;
        assert_eq!(listen["params"]["notifications"], json!({"toolsListChanged": true}));
        server.list().await;
        // The acknowledgment alone is no change.
        server.work().await;
        let meta = json!({"io.modelcontextprotocol/subscriptionId": listen["id"]});
        let changed = json!({
            "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
            "params": {"_meta": meta},
        });
        server.write(&changed).await;
        server.write(&changed).await;
        server.list().await;
        server
    });
    let tool = client.tools().await.unwrap().remove(0);
    client.tools().await.unwrap();
    call(&tool).await.unwrap();
    while !server.is_finished() {
        client.tools().await.unwrap();
        sleep(Duration::from_millis(10)).await;
    }
    server.await.unwrap();
}

#[tokio::test]
async fn a_call_to_a_server_that_is_gone_is_not_sent() {
    let (_client, tool, server) = modern().await;
    drop(server);
    // It is connected again at most; nobody is there.
    let failed = call(&tool).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::NotAvailable, "{failed:?}");
}
