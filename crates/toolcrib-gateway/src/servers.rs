//! The MCP servers of a request, for what they offer beside tools: each in the session of the caller,
//! if its personality and policy reach the server at all.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use rmcp::{
    ErrorData,
    model::{
        ExtensionCapabilities, Implementation, JsonObject, PromptsCapability, ResourcesCapability,
        SKILLS_EXTENSION_ID, ServerCapabilities, ServerConfig, ToolsCapability,
    },
};
use serde_json::{Map, Value};
use toolcrib_core::{
    Annotations, BoxFuture, ErrorCode, Tool, ToolBody, ToolCall, ToolContext, ToolError,
    ToolOutput, ToolResult,
};
pub(super) use toolcrib_engine::__internal::JudgedOnly;
use toolcrib_engine::Iteration;
use toolcrib_mcp::{
    __internal::{self as wire, AssetKind, ServerOffers},
    McpClient,
};

use super::{
    SOURCES_WITHIN,
    exchange::RequestContext,
    list::refusal,
    prompts, resources,
    session::{Purpose, Step},
};

/// A server in the caller's session.
pub(super) struct Server {
    /// The operator's name.
    pub(super) name: Arc<str>,
    pub(super) client: McpClient,
}

/// The servers that a request may reach, and the iteration that decides on it.
pub(super) struct Servers {
    pub(super) step: Step,
    pub(super) all: Vec<Server>,
}

impl RequestContext<'_> {
    /// The servers, in configured order.
    pub(super) async fn servers(&self) -> Result<Servers, ErrorData> {
        let step = tokio::select! {
            biased;
            () = self.no_longer_needed() => Err(toolcrib_engine::TurnError::Cancelled),
            // No source is needed.
            step = self.step(Purpose::Call("")) => step,
        };
        let step = step.map_err(|error| refusal(&error))?;
        let all = reached(&step.iteration, &step.identity, &self.serving.gateway.config.servers);
        Ok(Servers { step, all })
    }
}

impl Servers {
    pub(super) fn by_name(&self, name: &str) -> Option<&Server> {
        self.all.iter().find(|server| *server.name == *name)
    }
}

/// The servers that an iteration reaches.
pub(super) fn reached(
    iteration: &Iteration,
    identity: &toolcrib_core::Identity,
    servers: &[McpClient],
) -> Vec<Server> {
    let server = |client: &McpClient| {
        let name = client.name().as_str();
        let asks = tool(name, "resources", resources::TOOLSET, JudgedOnly)?;
        // Rules may permit some resources, or prompts: only the personality decides here.
        iteration.reaches(&asks).then(|| Server {
            name: name.into(),
            client: client.for_client(identity, iteration.client_abilities(name)),
        })
    };
    servers.iter().filter_map(server).collect()
}

/// The offers of all servers of a request together.
#[derive(Debug, Clone, Default)]
pub(super) struct CombinedOffers {
    pub(super) prompts: bool,
    pub(super) resources: bool,
    pub(super) subscribe: bool,
    pub(super) completions: bool,
    /// The instructions of each server.
    pub(super) instructions: Vec<(Arc<str>, Arc<str>)>,
    /// The servers that are not ready, and never were.
    pub(super) not_ready: HashSet<Arc<str>>,
}

impl CombinedOffers {
    /// Asks each server, for as long as a list waits. One that is not ready offers the same as before;
    /// one that never was may offer everything.
    pub(super) async fn of(servers: &[Server]) -> Self {
        Self::within(SOURCES_WITHIN, servers).await
    }

    /// The same within a time.
    pub(super) async fn within(allowed: Duration, servers: &[Server]) -> Self {
        let asked = servers.iter().map(|server| server.client.offers_within(allowed));
        let mut all = Self::default();
        for (server, offers) in servers.iter().zip(join_all(asked).await) {
            match offers {
                Ok(Some(offers)) => all.add(&server.name, &offers),
                Ok(None) => {
                    (all.prompts, all.resources) = (true, true);
                    (all.subscribe, all.completions) = (true, true);
                    all.not_ready.insert(Arc::clone(&server.name));
                }
                // It has no session for this caller.
                Err(_) => {}
            }
        }
        all
    }

    fn add(&mut self, server: &Arc<str>, offers: &ServerOffers) {
        let ServerCapabilities { prompts, resources, completions, .. } = &*offers.capabilities;
        self.prompts |= prompts.is_some();
        self.resources |= resources.is_some();
        self.subscribe |=
            resources.as_ref().is_some_and(|resources| resources.subscribe == Some(true));
        self.completions |= completions.is_some();
        if let Some(text) = &offers.instructions {
            self.instructions.push((Arc::clone(server), Arc::clone(text)));
        }
    }

    /// The declaration to clients of both eras. Skills of the engine are resources too.
    pub(super) fn config(&self, has_skills: bool) -> ServerConfig {
        let mut capabilities = ServerCapabilities::default();
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
        if self.prompts {
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(true);
            capabilities.prompts = Some(prompts);
        }
        if self.resources {
            let mut resources = ResourcesCapability::default();
            resources.list_changed = Some(true);
            resources.subscribe = self.subscribe.then_some(true);
            capabilities.resources = Some(resources);
        }
        if has_skills {
            capabilities.resources.get_or_insert_default();
            let settings = JsonObject::from_iter([("directoryRead".to_owned(), true.into())]);
            let skills = (SKILLS_EXTENSION_ID.to_owned(), settings);
            capabilities.extensions = Some(ExtensionCapabilities::from_iter([skills]));
        }
        capabilities.completions = self.completions.then(JsonObject::new);
        // The gateway itself reports what it learns later.
        capabilities.logging = Some(JsonObject::new());
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolcrib", env!("CARGO_PKG_VERSION")))
    }
}

/// A server's offers beside tools, in the form that rules judge and the pipe runs.
pub(super) fn tool(
    server: &str,
    name: &str,
    toolset: &'static str,
    body: impl ToolBody,
) -> Option<Tool> {
    named(server, format!("mcp__{server}__{name}"), toolset, body)
}

/// The same with the whole name.
pub(super) fn named(
    server: &str,
    name: String,
    toolset: &'static str,
    body: impl ToolBody,
) -> Option<Tool> {
    Tool::builder(name)
        .description("Read by an MCP client.")
        .input_schema(serde_json::json!({ "type": "object", "additionalProperties": true }))
        .toolset(toolset)
        .origin(format!("mcp:{server}"))
        .mcp_server(server)
        .untrusted()
        .annotations(Annotations { read_only: true, idempotent: true, ..Annotations::default() })
        .body(body)
        .ok()
}

/// The prompt of a server with this exposed name, or its resources, in the form that rules judge; `None`
/// if the server does not offer them.
pub async fn judged_offer(client: &McpClient, name: &str) -> Option<Tool> {
    let server = client.name().as_str();
    let own = name.strip_prefix("mcp__")?.strip_prefix(server)?.strip_prefix("__")?;
    let listed = client.assets(AssetKind::Prompts).await.unwrap_or_default();
    let is_prompt = |item: &Map<String, Value>| {
        let own = item.get("name").and_then(Value::as_str);
        own.is_some_and(|own| client.exposed_name(own) == name)
    };
    if listed.iter().any(is_prompt) {
        return named(server, name.to_owned(), prompts::TOOLSET, JudgedOnly);
    }
    let offers = client.offers().await.ok().filter(|_| own == "resources")?;
    offers.capabilities.resources.as_ref()?;
    tool(server, own, resources::TOOLSET, JudgedOnly)
}

/// A body that is a function.
pub(super) struct Body<F>(pub(super) F);

impl<F, T> ToolBody for Body<F>
where
    F: Fn(ToolContext) -> T + Send + Sync + 'static,
    T: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
{
    fn call(
        self: Arc<Self>,
        _: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(self.0(cx))
    }

    fn runs_inline(&self) -> bool {
        true
    }
}

impl RequestContext<'_> {
    /// Passes a request through the pipe, like a call.
    ///
    /// # Errors
    /// The server's protocol error, or `absent` for what does not exist or is not permitted.
    pub(super) async fn through_the_pipe(
        &self,
        step: &Step,
        tool: Tool,
        arguments: Map<String, Value>,
        absent: impl FnOnce() -> ErrorData,
    ) -> Result<ToolResult, ErrorData> {
        let call =
            ToolCall::new(self.id.to_string(), tool.name().as_str(), Value::Object(arguments));
        let call_id = Arc::clone(&call.id);
        // Large and rare: on the heap, because each request has room for the rest.
        let execute = Box::pin(step.iteration.execute_apart(&tool, call, Some(self.port)));
        let forwarded = super::progress::forwarded(self.exchange, step, &call_id, execute);
        let mut results = std::pin::pin!(forwarded);
        let result = tokio::select! {
            biased;
            () = self.no_longer_needed() => {
                step.iteration.cancellation().cancel();
                results.await
            }
            result = &mut results => result,
        };
        let missing = || ErrorData::internal_error("the request has no result", None);
        let result = result.ok_or_else(missing)?;
        self.remember(step, &result).await;
        match result.code {
            None => Ok(result),
            Some(ErrorCode::Denied) => Err(absent()),
            // The rules never admit it: its server has not failed.
            Some(ErrorCode::NotAvailable) if !step.iteration.admits(&tool, None) => Err(absent()),
            Some(code) => Err(error(&result, code)),
        }
    }
}

/// A failed result as an error of the protocol.
pub(super) fn error(result: &ToolResult, code: ErrorCode) -> ErrorData {
    let text = result.value.to_string();
    match result.meta.as_deref().and_then(wire::protocol_error) {
        Some((code, data)) => ErrorData::new(rmcp::model::ErrorCode(code), text, data),
        None if code == ErrorCode::InputInvalid => ErrorData::invalid_params(text, None),
        None => {
            let data = serde_json::json!({ "code": code });
            ErrorData::internal_error(text, Some(data))
        }
    }
}
