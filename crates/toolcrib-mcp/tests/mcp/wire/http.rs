//! Servers over HTTP as the protocol's own library offers them, in both eras.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, RequestMetaObject,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use serde_json::json;
use tokio::{net::TcpListener, sync::Notify};
use toolcrib_core::{CancellationToken, ErrorCode};
use toolcrib_mcp::{McpClient, ServerState, mcp_client, server::Http};

use super::{call, call_seen, call_with};
use crate::client::support::tool_of;

/// Which eras a server speaks, and how it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    LegacySession,
    ModernEvents,
    ModernJson,
}

#[derive(Clone)]
struct Server {
    kind: Kind,
    hangs: Arc<Notify>,
    cancelled: Arc<Notify>,
    lists: Arc<AtomicUsize>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let tools = ServerCapabilities::builder().enable_tools().enable_tool_list_changed();
        ServerConfig::new(tools.build())
    }

    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [ProtocolVersion]> {
        match self.kind {
            Kind::LegacySession => vec![ProtocolVersion::V_2025_11_25].into(),
            _ => vec![ProtocolVersion::V_2026_07_28].into(),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.lists.fetch_add(1, SeqCst);
        let schema = json!({"type": "object"}).as_object().unwrap().clone();
        let tool = |name| Tool::new(name, "A tool.", Arc::new(schema.clone()));
        let tools = ["announce", "echo", "hang", "progress"].map(tool);
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "hang" => {
                self.hangs.notify_one();
                context.ct.cancelled().await;
                self.cancelled.notify_one();
            }
            "progress" => {
                if let Some(token) = RequestMetaObject::get_progress_token(&context.meta) {
                    let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0);
                    let _ = context.peer.notify_progress(progress).await;
                }
            }
            "announce" => {
                let _ = context.peer.notify_tool_list_changed().await;
            }
            _ => {}
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("said")]).into())
    }
}

/// A server, and a client of it.
async fn serve(kind: Kind) -> (McpClient, Server) {
    let server =
        Server { kind, hangs: Arc::default(), cancelled: Arc::default(), lists: Arc::default() };
    let mut config = StreamableHttpServerConfig::default();
    config.json_response = kind == Kind::ModernJson;
    config.legacy_session_mode = kind == Kind::LegacySession;
    let offered = server.clone();
    let service = StreamableHttpService::new(
        move || Ok(offered.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().route_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, app).await });
    (mcp_client("web", Http::new(url)).build().unwrap(), server)
}

const KINDS: [Kind; 3] = [Kind::LegacySession, Kind::ModernEvents, Kind::ModernJson];

#[tokio::test]
async fn both_eras_are_spoken_with_events_and_with_json() {
    for kind in KINDS {
        let (client, _) = serve(kind).await;
        let echo = tool_of(&client, "echo").await;
        let expected = if kind == Kind::LegacySession { "2025-11-25" } else { "2026-07-28" };
        assert_eq!(client.status().protocol.as_deref(), Some(expected), "{kind:?}");
        let calls = (0..100).map(|_| call(&echo));
        for answer in futures_util::future::join_all(calls).await {
            assert_eq!(answer.unwrap().value, "said");
        }
        client.close().await;
        assert_eq!(client.status().state, ServerState::Closed);
    }
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    for kind in KINDS {
        let (client, _) = serve(kind).await;
        let (outcome, seen) = call_seen(&tool_of(&client, "progress").await).await;
        outcome.unwrap();
        assert_eq!(seen, [("1 of 2".to_owned(), Some(50))], "{kind:?}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    for kind in KINDS {
        let (client, server) = serve(kind).await;
        let cancellation = CancellationToken::new();
        let (hang, token) = (tool_of(&client, "hang").await, cancellation.clone());
        let calling = tokio::spawn(async move { call_with(&hang, json!({}), token).await });
        server.hangs.notified().await;
        cancellation.cancel();
        let failed = calling.await.unwrap().unwrap_err();
        assert_eq!(failed.reason, "it was cancelled", "{kind:?}");
        // The server may have done it.
        assert_eq!(failed.code, ErrorCode::OutcomeUnknown);
        server.cancelled.notified().await;
        call(&tool_of(&client, "echo").await).await.unwrap();
    }
}

#[tokio::test]
async fn an_announced_change_renews_the_list() {
    let (client, server) = serve(Kind::LegacySession).await;
    let announce = tool_of(&client, "announce").await;
    client.tools().await.unwrap();
    assert_eq!(server.lists.load(SeqCst), 1);
    while server.lists.load(SeqCst) == 1 {
        call(&announce).await.unwrap();
        client.tools().await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
