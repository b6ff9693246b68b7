//! From a server, through a client and the gateway, to another client: the real protocol twice.

use std::sync::Arc;

use rmcp::{
    model::{CallToolRequestParams, ClientRequest, Request},
    service::PeerRequestOptions,
};
use serde_json::{Value, json};
use toolcrib_core::{FENCE_NOTICE, Progress, ToolContext, ToolError, unfence};
use toolcrib_gateway::{Access, Fence, Gateway};
use toolcrib_mcp::{McpClient, MockServer, mock_mcp_client};

use super::support::{Client, ERAS, Era, Log, builder, code, engine, text, tool, waits};

/// A gateway to a server that offers these tools.
fn gateway(tools: Vec<toolcrib_core::Tool>) -> (Gateway, McpClient, MockServer, Log) {
    let (client, server) = mock_mcp_client(tools).build().unwrap();
    let log = Log::default();
    let engine = engine().provider(Arc::new(client.clone())).build().unwrap();
    let gateway = Gateway::builder(engine).watch(&client).access_log(log.listener()).build();
    (gateway, client, server, log)
}

#[tokio::test]
async fn what_a_server_answers_comes_through_fenced_and_what_it_changes_is_announced() {
    for era in ERAS {
        let fails = builder("fails")
            .handler(|_: Value, _| async { Err::<String, _>(ToolError::failed("no such branch")) })
            .unwrap();
        let (gateway, upstream, server, log) = gateway(vec![tool("log"), fails]);
        let mut client = Client::of(&gateway, era, Access::new()).await;
        assert_eq!(client.names().await, ["mcp__mock__fails", "mcp__mock__log"], "{era:?}");

        let said = text(&client.call("mcp__mock__log", json!({})).await);
        assert_ne!(said, "log ran");
        assert_eq!(unfence(&said).0, "log ran");
        let failed = client.call("mcp__mock__fails", json!({})).await;
        assert_eq!(code(&failed), "execution_failed");
        assert_eq!(unfence(&text(&failed)).0, "no such branch");
        server.crash_during_call();
        let lost = client.call("mcp__mock__log", json!({})).await;
        assert_eq!(code(&lost), "outcome_unknown");
        assert_eq!(log.of("tools/call")[0]["origin"], "mcp:mock");
        assert_eq!(log.of("tools/list")[0]["remote"][1]["origin"], "mcp:mock");

        // It is started again by the next request.
        assert_eq!(client.names().await, ["mcp__mock__fails", "mcp__mock__log"]);
        if era == Era::Sessions {
            server.set_tools([tool("push")]).await;
            client.changed.recv().await.unwrap();
            assert_eq!(client.names().await, ["mcp__mock__push"]);
        }
        client.peer.close().await.unwrap();
        client.served.await.unwrap().unwrap();
        upstream.close().await;
    }
}

#[tokio::test]
async fn instructions_explain_fences_only_where_a_text_may_have_one() {
    let has_notice = async |own: &[&str], unfenced: bool, access: Access| {
        let (client, _server) = mock_mcp_client([tool("log")]).build().unwrap();
        let own = own.iter().map(|name| tool(name));
        let engine = engine().tools(own).provider(Arc::new(client.clone())).build().unwrap();
        let gateway = Gateway::builder(engine).watch(&client).instructions("The desk.");
        let gateway = match unfenced {
            true => gateway.without_fence("mock").build(),
            false => gateway.build(),
        };
        let mut noticed = Vec::new();
        for era in ERAS {
            let client = Client::of(&gateway, era, access.clone()).await;
            let told = client.peer.peer_info().unwrap().instructions.clone().unwrap();
            assert!(told.starts_with("The desk."), "{told}");
            noticed.push(told.contains(FENCE_NOTICE));
        }
        client.close().await;
        assert_eq!(noticed[0], noticed[1]);
        noticed[0]
    };
    assert!(has_notice(&[], false, Access::new()).await);
    assert!(!has_notice(&[], true, Access::new()).await);
    // The host's tool may return what others wrote.
    assert!(has_notice(&["own"], true, Access::new()).await);
    assert!(!has_notice(&["own"], false, Access::new().fence(Fence::Off)).await);
}

#[tokio::test]
async fn progress_comes_down_and_cancellation_goes_up() {
    for era in ERAS {
        let slow = waits("slow");
        let works = builder("works")
            .handler(|_: Value, cx: ToolContext| async move {
                cx.progress(Progress::user("half").percent(50));
                "worked"
            })
            .unwrap();
        let (gateway, upstream, server, _) = gateway(vec![slow.tool, works]);
        let mut client = Client::of(&gateway, era, Access::new()).await;
        let send = |name: &str| {
            let request = Request::new(CallToolRequestParams::new(name.to_owned()));
            client.peer.send_cancellable_request(
                ClientRequest::CallToolRequest(request),
                PeerRequestOptions::no_options(),
            )
        };
        send("mcp__mock__works").await.unwrap().await_response().await.unwrap();
        let call = send("mcp__mock__slow").await.unwrap();
        assert_eq!(client.progress.recv().await.unwrap().message.as_deref(), Some("half"));

        slow.begun.notified().await;
        call.cancel(None).await.unwrap();
        slow.cancelled.notified().await;
        client.peer.close().await.unwrap();
        client.served.await.unwrap().unwrap();
        upstream.close().await;
        assert_eq!(server.cancelled(), 1, "{era:?}");
    }
}
