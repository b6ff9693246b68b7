//! The server that has everything in it, on pipes and over HTTP.

use std::{net::TcpListener, process::Stdio as Output, time::Duration};

use serde_json::json;
use toolcrib_core::{ContentBlock, ErrorCode};
use toolcrib_mcp::server::Http;

use super::support::{Peers, Server};

/// Without the tools for clients with more capabilities, and without `simulate-research-query`,
/// which requires tasks.
const NAMES: [&str; 12] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
];

#[tokio::test]
async fn the_everything_server_works_over_stdio() {
    let Some(peers) = Peers::find() else { return };
    let mut all = Server::start("all", |_| peers.npm("mcp-server-everything"));
    assert_eq!(all.names().await, NAMES);
    assert_eq!(&*all.protocol(), "2025-11-25");
    works(&mut all).await;

    let environment = all.says("get-env", json!({})).await;
    assert!(environment.contains("PATH") && !environment.contains("CARGO"), "{environment}");
    all.close().await;
}

#[tokio::test]
async fn the_everything_server_works_over_http() {
    let Some(peers) = Peers::find() else { return };
    // Free a moment ago; the server can only be configured this way.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = peers
        .command("mcp-server-everything")
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Output::null())
        .stderr(Output::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert_eq!(server.try_wait().unwrap(), None, "the server ended");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let url = Http::new(format!("http://127.0.0.1:{port}/mcp"));
    let mut all = Server::reach("all", url, tempfile::tempdir().unwrap());
    assert_eq!(all.names().await, NAMES);
    assert_eq!(&*all.protocol(), "2025-11-25");
    works(&mut all).await;
    all.client.close().await;
    server.kill().await.unwrap();
}

async fn works(all: &mut Server) {
    assert_eq!(all.says("echo", json!({"message": "hello"})).await, "Echo: hello");
    assert!(all.says("get-sum", json!({"a": 2, "b": 40})).await.contains("42"));

    let image = all.call("get-tiny-image", json!({})).await;
    let [_, ContentBlock::Image { media_type, data, .. }, _] = &*image.blocks else {
        panic!("{:?}", image.blocks);
    };
    assert_eq!(&**media_type, "image/png");
    assert!(data.starts_with(b"\x89PNG"));

    let weather = all.call("get-structured-content", json!({"location": "Chicago"})).await;
    let data = weather.structured.unwrap();
    assert_eq!(data["conditions"], "Light rain / drizzle", "{data}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&weather.value).unwrap(), data);

    let links = all.call("get-resource-links", json!({"count": 3})).await;
    let is_link = |block: &ContentBlock| matches!(block, ContentBlock::Link { .. });
    assert_eq!(links.blocks.iter().filter(|block| is_link(block)).count(), 3);
    let resource = all.call("get-resource-reference", json!({"resourceType": "Text"})).await;
    let [_, ContentBlock::Text { uri, .. }, _] = &*resource.blocks else {
        panic!("{:?}", resource.blocks);
    };
    assert_eq!(&**uri, "demo://resource/dynamic/text/1");

    all.heard.clear();
    let long = json!({"duration": 0.4, "steps": 4});
    assert!(all.says("trigger-long-running-operation", long).await.contains("completed"));
    let progress = all.heard.json_of("tool.progress");
    assert_eq!(progress.len(), 4, "{progress:?}");

    let refused = all.refuses("get-resource-reference", json!({"resourceId": -1})).await;
    assert!(refused.contains("-1"), "{refused}");
    let invalid = all.call("get-sum", json!({"a": "two"})).await;
    assert_eq!(invalid.code, Some(ErrorCode::InputInvalid));
}
