//! What a subscriber of 2026-07-28 reads beside changed lists.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{duplex, split},
    sync::watch,
};
use toolcrib_core::CancellationToken;
use toolcrib_engine::OnFailure;
use toolcrib_gateway::{Access, Gateway};

use super::{
    asks::{End, gateway_with},
    late::wake,
    support::{Source, builder, engine, tool},
};

/// A client that has subscribed to changes of tools, and to log messages of this level.
async fn subscriber(gateway: &Gateway, level: &str) -> End {
    let (near, far) = duplex(1 << 20);
    let (stdin, stdout) = split(far);
    let gateway = gateway.clone();
    tokio::spawn(async move {
        gateway.serve_stdio(stdin, stdout, Access::new(), CancellationToken::new()).await
    });
    let mut client = End::of(near);
    let params = json!({
        "notifications": { "toolsListChanged": true },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": level,
        },
    });
    client.send(json!({ "id": 1, "method": "subscriptions/listen", "params": params })).await;
    let acknowledged = client.read().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    client
}

fn is_change(message: &Value) -> bool {
    message["method"] == "notifications/tools/list_changed"
}

#[tokio::test]
async fn a_subscriber_did_not_read_of_tools_that_were_withheld_later() {
    let (changed, changes) = watch::channel(0);
    let source = Arc::new(Source::default());
    source.0.lock().unwrap().push(tool("fine"));
    let engine = engine().provider(Arc::clone(&source) as _).build().unwrap();
    let gateway = Gateway::builder(engine).changes(changes).build();
    let mut client = subscriber(&gateway, "warning").await;

    let claims = builder("mcp__other__tool").handler(|_: Value, _| async { "" }).unwrap();
    source.0.lock().unwrap().push(claims);
    changed.send(1).unwrap();
    let message = client.read().await;
    let expected =
        "These tools are withheld: \"mcp__other__tool\" (it claims to be of another source).";
    assert_eq!(message["params"]["data"], expected, "{message}");
    assert_eq!(message["params"]["level"], "warning", "{message}");
    assert!(is_change(&client.read().await));

    // Once: the next message is about the other change.
    source.0.lock().unwrap().push(tool("late"));
    changed.send(2).unwrap();
    let next = client.read().await;
    assert!(is_change(&next), "{next}");

    // Of errors alone, it reads nothing of this.
    let mut quiet = subscriber(&gateway, "error").await;
    changed.send(3).unwrap();
    let next = quiet.read().await;
    assert!(is_change(&next), "{next}");
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_reads_the_instructions_of_a_late_server() {
    let (gateway, mut connections) = gateway_with(engine(), OnFailure::Omit);
    let mut client = subscriber(&gateway, "info").await;
    let mut server = connections.recv().await.unwrap();
    tokio::spawn(async move {
        wake(&mut server).await;
        server.heard().await
    });
    let instructions = loop {
        let message = client.read().await;
        if message["params"]["logger"] == "s" {
            break message["params"].clone();
        }
        assert!(is_change(&message) || message["params"]["logger"] == "toolcrib", "{message}");
    };
    assert_eq!(instructions["level"], "info");
    assert!(instructions["data"].as_str().unwrap().contains("Work slowly."), "{instructions}");
}
