//! Servers over HTTP as the protocol's own library offers them, in both eras.

use std::sync::Arc;

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
use serde_json::Map;
use tokio::{net::TcpListener, sync::Notify};
use toolcrib_core::CancellationToken;

use super::{
    super::{CallRequest, Connect, RequestError, http},
    Counted, call, unheard,
};
use crate::server::Http;

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
        let tool = Tool::new("echo", "Says it again.", Arc::new(Map::new()));
        Ok(ListToolsResult::with_all_items(vec![tool]))
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

/// A server, and the way to it.
async fn serve(kind: Kind) -> (Arc<dyn Connect>, Server) {
    let server = Server { kind, hangs: Arc::default(), cancelled: Arc::default() };
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
    (http("web", &Http::new(url)).unwrap(), server)
}

const KINDS: [Kind; 3] = [Kind::LegacySession, Kind::ModernEvents, Kind::ModernJson];

#[tokio::test]
async fn both_eras_are_spoken_with_events_and_with_json() {
    for kind in KINDS {
        let (connect, _) = serve(kind).await;
        let connection = connect.connect(unheard()).await.unwrap();
        let expected = if kind == Kind::LegacySession { "2025-11-25" } else { "2026-07-28" };
        assert_eq!(connection.server().protocol, expected, "{kind:?}");
        let page = connection.list_tools(None).await.unwrap();
        assert_eq!(page.tools[0].name.as_deref(), Some("echo"));
        let calls = (0..100).map(|_| connection.call_tool(call("echo")));
        for answer in futures_util::future::join_all(calls).await {
            assert_eq!(answer.unwrap().output.value, "said");
        }
        connection.close().await;
        assert_eq!(&*connection.closed().await, "it was closed here");
    }
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    for kind in KINDS {
        let (connect, _) = serve(kind).await;
        let connection = connect.connect(unheard()).await.unwrap();
        let (sender, mut progress) = tokio::sync::mpsc::unbounded_channel();
        let on_progress = Arc::new(move |text, percent| drop(sender.send((text, percent))));
        let request = CallRequest { on_progress, ..call("progress") };
        connection.call_tool(request).await.unwrap();
        assert_eq!(progress.try_recv().unwrap(), ("1 of 2".to_owned(), Some(50)), "{kind:?}");
    }
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    for kind in KINDS {
        let (connect, server) = serve(kind).await;
        let connection = connect.connect(unheard()).await.unwrap();
        let cancellation = CancellationToken::new();
        let request = CallRequest { cancellation: cancellation.clone(), ..call("hang") };
        let calling = tokio::spawn(connection.call_tool(request));
        server.hangs.notified().await;
        cancellation.cancel();
        let error = calling.await.unwrap().unwrap_err();
        assert!(matches!(error, RequestError::Cancelled), "{kind:?} {error:?}");
        server.cancelled.notified().await;
        connection.call_tool(call("echo")).await.unwrap();
    }
}

#[tokio::test]
async fn changes_are_heard() {
    let (connect, _) = serve(Kind::LegacySession).await;
    let counted = Arc::new(Counted::default());
    let connection = connect.connect(counted.clone()).await.unwrap();
    while counted.count() == 0 {
        connection.call_tool(call("announce")).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
