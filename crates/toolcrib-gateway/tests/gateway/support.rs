//! Small tools, and a real client of either era on a pair of pipes.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{
        CallToolRequestParams, CallToolResult, ErrorData, ProgressNotificationParam,
        ProtocolVersion,
    },
    service::{NotificationContext, RunningService, ServiceError},
};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
};
use toolcrib_core::{
    CancellationToken, DiscoveryError, KvArea, KvError, KvStore, KvWrite, ListContext, Listing,
    SessionStoreError, SkillId, Tool, ToolBuilder, ToolContext, ToolName, ToolProvider,
};
use toolcrib_engine::{Engine, EngineBuilder, Redactor, Skill, Skills};
use toolcrib_gateway::{Access, AccessEntry, Gateway, GatewayError};
use toolcrib_store::SqliteStore;

/// A tool with everything but a body.
pub(crate) fn builder(name: &str) -> ToolBuilder {
    Tool::builder(name).description(format!("What {name} does."))
}

/// A tool that returns its name.
pub(crate) fn tool(name: &str) -> Tool {
    let says = format!("{name} ran");
    let says = move |_: Value, _: ToolContext| {
        let says = says.clone();
        async move { says }
    };
    builder(name).handler(says).unwrap()
}

/// An engine that knows no secrets of the machine it is tested on.
pub(crate) fn engine() -> EngineBuilder {
    Engine::builder().redactor(Redactor::default())
}

/// One skill, `billing`, with the tool `refund`.
pub(crate) fn billing() -> Skills {
    let id = SkillId::new("billing").unwrap();
    let skill = Skill::new(id, "About billing.", "How to do billing.")
        .tools([ToolName::new("refund").unwrap()]);
    Skills::new(vec![skill]).unwrap()
}

/// A store that fails from some moment on.
pub(crate) struct Failing(pub(crate) SqliteStore, pub(crate) AtomicBool);

impl Failing {
    fn check(&self) -> Result<(), KvError> {
        match self.1.load(Ordering::SeqCst) {
            false => Ok(()),
            true => Err(SessionStoreError::Damaged {
                store: "test".to_owned(),
                problem: "damaged".to_owned(),
            }
            .into()),
        }
    }
}

impl KvStore for Failing {
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError> {
        self.check()?;
        self.0.value(area, key)
    }

    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError> {
        self.check()?;
        self.0.keys(area, prefix)
    }

    fn put(&self, area: &KvArea, write: KvWrite<'_>) -> Result<(), KvError> {
        self.check()?;
        self.0.put(area, write)
    }
}

/// A tool whose body waits until it is cancelled, and what tells how far it is.
pub(crate) struct Waits {
    pub(crate) tool: Tool,
    pub(crate) begun: Arc<Notify>,
    pub(crate) cancelled: Arc<Notify>,
}

pub(crate) fn waits(name: &str) -> Waits {
    let (begun, cancelled) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let told = (Arc::clone(&begun), Arc::clone(&cancelled));
    let body = move |_: Value, cx: ToolContext| {
        let (begun, cancelled) = told.clone();
        async move {
            begun.notify_one();
            cx.cancellation().cancelled().await;
            cancelled.notify_one();
            "stopped"
        }
    };
    Waits { tool: builder(name).handler(body).unwrap(), begun, cancelled }
}

/// A source whose tools can be exchanged, or that fails.
#[derive(Default)]
pub(crate) struct Source(pub(crate) Mutex<Vec<Tool>>, pub(crate) Mutex<Option<String>>);

impl ToolProvider for Source {
    fn id(&self) -> &str {
        "mcp:switch"
    }

    fn list(self: Arc<Self>, _cx: &ListContext) -> Listing {
        if let Some(error) = self.1.lock().unwrap().clone() {
            return Listing::failed(DiscoveryError::source_failed(error));
        }
        Listing::now(self.0.lock().unwrap().clone())
    }
}

/// A gateway that keeps its access log.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Value>>>);

impl Log {
    pub(crate) fn listener(&self) -> impl Fn(&AccessEntry) + Send + Sync + 'static {
        let entries = Arc::clone(&self.0);
        move |entry| entries.lock().unwrap().push(serde_json::to_value(entry).unwrap())
    }

    pub(crate) fn of(&self, method: &str) -> Vec<Value> {
        let entries = self.0.lock().unwrap();
        entries.iter().filter(|entry| entry["method"] == method).cloned().collect()
    }
}

/// The two kinds of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// `initialize`, and a session.
    Sessions,
    /// 2026-07-28.
    Stateless,
}

pub(crate) const ERAS: [Era; 2] = [Era::Sessions, Era::Stateless];

/// The notifications of a client.
pub(crate) struct Heard {
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
    changed: mpsc::UnboundedSender<()>,
}

impl ClientHandler for Heard {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        let _ = self.changed.send(());
    }
}

/// A client on a pair of pipes, and the gateway at their other end.
pub(crate) struct Client {
    pub(crate) peer: RunningService<RoleClient, Heard>,
    pub(crate) progress: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    pub(crate) changed: mpsc::UnboundedReceiver<()>,
    pub(crate) served: JoinHandle<Result<(), GatewayError>>,
    pub(crate) cancellation: CancellationToken,
}

impl Client {
    pub(crate) async fn of(gateway: &Gateway, era: Era, access: Access) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (stdin, stdout) = tokio::io::split(far);
        let (gateway, cancellation) = (gateway.clone(), CancellationToken::new());
        let token = cancellation.clone();
        let served =
            tokio::spawn(async move { gateway.serve_stdio(stdin, stdout, access, token).await });
        let (progress_to, progress) = mpsc::unbounded_channel();
        let (changed_to, changed) = mpsc::unbounded_channel();
        let lifecycle = match era {
            Era::Sessions => ClientLifecycleMode::Initialize,
            Era::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let heard = Heard { progress: progress_to, changed: changed_to };
        let peer = heard.serve_with_lifecycle(near, lifecycle).await.unwrap();
        Self { peer, progress, changed, served, cancellation }
    }

    pub(crate) async fn to(engine: EngineBuilder, era: Era) -> Self {
        let gateway = Gateway::builder(engine.build().unwrap()).build();
        Self::of(&gateway, era, Access::new()).await
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        let tools = self.peer.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    pub(crate) async fn call(&self, name: &str, args: Value) -> CallToolResult {
        self.try_call(name, args).await.unwrap()
    }

    pub(crate) async fn try_call(
        &self,
        name: &str,
        args: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let mut params = CallToolRequestParams::new(name.to_owned());
        params.arguments = args.as_object().cloned();
        self.peer.call_tool(params).await
    }

    /// Ends the connection; all that was announced before has been heard.
    pub(crate) async fn hears_nothing_more(mut self) {
        // Messages written before this response were read before it.
        self.peer.list_tools(None).await.unwrap();
        self.peer.close().await.unwrap();
        self.served.await.unwrap().unwrap();
        assert!(self.changed.try_recv().is_err());
    }

    /// The protocol error that a call is answered with.
    pub(crate) async fn refused(&self, name: &str) -> ErrorData {
        match self.try_call(name, json!({})).await {
            Err(ServiceError::McpError(error)) => error,
            other => panic!("no protocol error: {other:?}"),
        }
    }
}

/// The texts of a result, one per line.
pub(crate) fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    texts.map(|text| text.text.as_str()).collect::<Vec<_>>().join("\n")
}

/// The code of a failed result.
pub(crate) fn code(result: &CallToolResult) -> &str {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    result.meta.as_ref().unwrap()["toolcrib/code"].as_str().unwrap()
}
