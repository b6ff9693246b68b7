//! Files that the user attaches to a message, and resources of MCP servers: `mcp:SERVER:URI`.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use toolcrib_core::{
    Attachment, Attachments, CancellationToken, ClientHandle, Tool, ToolCall, ToolContext,
    ToolError,
};
use toolcrib_engine::Engine;
use toolcrib_mcp::{__internal::McpRequest, McpClient};
use toolcrib_project::Project;

use super::{catalog::identity, iteration, servers};
use crate::{
    args::Situation,
    problem::Problem,
    project::load::{blocking, unless_cancelled},
};

/// The beginning of a resource.
const OF_SERVER: &str = "mcp:";

/// Standard input, as a source of [`Reader::read`].
pub(crate) const STDIN: &str = "-";

/// The toolset by which rules judge resources, as in the gateway.
const TOOLSET: &str = "mcp.resources";

/// The project and the caller that attachments are read for.
pub(crate) struct Reader<'a> {
    pub(crate) project: &'a Project,
    pub(crate) engine: &'a Engine,
    pub(crate) situation: &'a Situation,
    pub(crate) cancellation: &'a CancellationToken,
}

impl Reader<'_> {
    /// Reads files, resources and [standard input](STDIN), each up to its limit.
    pub(crate) async fn read(&self, sources: &[PathBuf]) -> Result<Attachments, Problem> {
        let mut attachments = Attachments::default();
        for source in sources {
            let parts = match source.to_str() {
                Some(STDIN) => vec![self.bytes("stdin", || Ok(io::stdin())).await?],
                _ => self.one(source).await?,
            };
            for attachment in parts {
                let added = attachments.add(attachment);
                added.map_err(|error| unusable(source, &error))?;
            }
        }
        Ok(attachments)
    }

    /// Reads one file, or the parts of a resource.
    pub(crate) async fn one(&self, source: &Path) -> Result<Vec<Attachment>, Problem> {
        match source.to_str().and_then(|source| source.strip_prefix(OF_SERVER)) {
            Some(resource) => match resource.split_once(':') {
                Some((server, uri)) => self.resource(server, uri).await,
                None => Err(unusable(source, &"write mcp:SERVER:URI")),
            },
            None => {
                let file = source.to_owned();
                Ok(vec![self.bytes(source, || File::open(file)).await?])
            }
        }
    }

    async fn bytes<R: Read>(
        &self,
        name: impl AsRef<Path>,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> Result<Attachment, Problem> {
        let path = name.as_ref();
        let reading = blocking(move || -> io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            let most = u64::try_from(Attachment::MAX_BYTES).unwrap_or(u64::MAX);
            open()?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        // A named pipe may never end.
        let bytes = unless_cancelled(reading, self.cancellation).await??;
        let bytes = bytes.map_err(|error| unusable(path, &error))?;
        Attachment::new(&path.to_string_lossy(), bytes).map_err(|error| unusable(path, &error))
    }

    /// Reads a resource as a call of a tool of the server: rules, approvals and events apply.
    async fn resource(&self, name: &str, uri: &str) -> Result<Vec<Attachment>, Problem> {
        let server = servers::find(self.project, name)?;
        let client = server.client().map_err(|error| Problem::usage(error.to_string()))?;
        let client = client.on_behalf_of(&identity(&self.situation.whom));
        let found = Arc::<Mutex<Vec<Attachment>>>::default();
        let tool = reading(name, client, Arc::clone(&found))
            .map_err(|error| Problem::failed("internal", error.to_string()))?;
        let token = self.cancellation.child_token();
        let mut turn = iteration::turn_of(self.project, self.engine, self.situation, token)?;
        let iteration = turn.iteration_for(tool.name()).await?;
        let call = ToolCall::new("attach", tool.name().as_str(), json!({ "uri": uri }));
        let read = iteration.execute_apart(&tool, call, None).await;
        match read.filter(|result| !result.is_ok()) {
            Some(refused) => {
                let text = format!("{OF_SERVER}{name}:{uri}: {}", refused.value);
                Err(Problem::failed("not_attached", text))
            }
            None => Ok(std::mem::take(&mut *found.lock())),
        }
    }
}

fn unusable(source: &Path, error: &dyn std::fmt::Display) -> Problem {
    Problem::usage(format!("{}: {error}", source.display()))
}

/// The tool by which rules judge the resources of a server, as in the gateway.
fn reading(
    server: &str,
    client: McpClient,
    found: Arc<Mutex<Vec<Attachment>>>,
) -> Result<Tool, toolcrib_core::InvalidToolError> {
    Tool::builder(format!("mcp__{server}__resources"))
        .description("Reads a resource that the user attaches.")
        .input_schema(json!({ "type": "object", "additionalProperties": true }))
        .toolset(TOOLSET)
        .origin(format!("mcp:{server}"))
        .mcp_server(server)
        .untrusted()
        .read_only()
        .idempotent()
        .handler(move |args: Map<String, Value>, cx: ToolContext| {
            let (client, found) = (client.clone(), Arc::clone(&found));
            async move {
                let request = McpRequest {
                    method: "resources/read",
                    params: Arc::new(args),
                    on_progress: None,
                    client: cx.handle::<ClientHandle>().ok().cloned(),
                    cancellation: cx.cancellation().clone(),
                };
                let answer = client.request(request).await?;
                let contents = answer.get("contents").and_then(Value::as_array);
                let parts = contents.into_iter().flatten().map(part);
                *found.lock() = parts.collect::<Result<_, _>>()?;
                Ok::<_, ToolError>("read")
            }
        })
}

/// A part of a resource.
fn part(contents: &Value) -> Result<Attachment, ToolError> {
    let text = |key: &str| contents.get(key).and_then(Value::as_str);
    let data = match (text("text"), text("blob")) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(blob)) => BASE64_STANDARD.decode(blob).ok(),
        (None, None) => None,
    };
    let data = data.ok_or_else(|| ToolError::failed("the server gave no contents"))?;
    Attachment::new(text("uri").unwrap_or_default(), data)
        .map_err(|error| ToolError::failed(error.to_string()))
}
