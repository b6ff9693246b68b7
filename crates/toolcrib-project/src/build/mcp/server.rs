//! MCP servers of a project.

use std::sync::Arc;

use toolcrib_capabilities::process::SandboxTier;
use toolcrib_core::{DiscoveryError, DiscoveryErrorClass, ListContext, Listing, ToolProvider};
use toolcrib_engine::OnFailure;
use toolcrib_mcp::{McpClient, ServerName};

use crate::bind::alternatives::Remote;

/// An MCP server of a project. It is not started or connected before its tools are requested.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) name: ServerName,
    pub(crate) plugin: Option<Arc<str>>,
    pub(crate) origin: Arc<str>,
    pub(crate) on_failure: OnFailure,
    pub(crate) alternatives: Vec<Arc<str>>,
    pub(crate) trusted: bool,
    pub(crate) imported: bool,
    pub(crate) unfenced: bool,
    pub(crate) prefix: Option<Arc<str>>,
    /// The name of the file with its stderr.
    pub(crate) log: String,
    /// Of a program.
    pub(crate) sandbox: Option<SandboxTier>,
    /// The client; else why there is none, for the operator.
    pub(crate) client: Result<McpClient, Arc<str>>,
}

impl McpServer {
    /// Its name in the project.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// The plugin that declares it.
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// Where it is declared: `toolcrib.toml:12`, `.mcp.json:3`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// How an iteration continues if it cannot be listed.
    pub fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// Whether its annotations about its tools' effects are trusted.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Whether a file that the caller named declares it, not the project.
    pub fn is_imported(&self) -> bool {
        self.imported
    }

    /// Whether its texts are fenced for clients of a gateway. Default: yes.
    pub fn is_fenced(&self) -> bool {
        !self.unfenced
    }

    /// The prefix of its tools and prompts for clients of a gateway; `mcp__NAME__` if absent.
    pub fn prefix(&self) -> Option<&Arc<str>> {
        self.prefix.as_ref()
    }

    /// The sandbox of its program; `None` for a server at a URL, or without a client.
    pub fn sandbox(&self) -> Option<SandboxTier> {
        self.sandbox
    }

    /// Its client, which all engines of the project share.
    ///
    /// # Errors
    /// Why the client is missing: a secret is missing, or an imported file declares the server in an
    /// unusable way.
    pub fn client(&self) -> Result<&McpClient, &str> {
        self.client.as_ref().map_err(|reason| &**reason)
    }

    /// Prevents that it is started or connected. The reason ends a sentence about it. Iterations
    /// continue without it.
    pub(crate) fn hold(&mut self, reason: &Arc<str>) {
        self.client = Err(Arc::clone(reason));
        self.on_failure = OnFailure::Omit;
    }
}

impl Remote for McpServer {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn alternatives(&self) -> &[Arc<str>] {
        &self.alternatives
    }

    fn provider(&self) -> Arc<dyn ToolProvider> {
        match &self.client {
            Ok(client) => Arc::new(client.clone()),
            Err(reason) => Arc::new(UnusableProvider {
                id: format!("mcp:{}", self.name),
                covers: Some(self.name.pattern()),
                message: format!("MCP server `{}` cannot be used: {reason}", self.name),
            }),
        }
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }
}

toolcrib_core::__internal::debug_fields!(McpServer { name, origin, on_failure, .. });

/// A source that is never queried: it fails like an unreachable one, so that its declared failure
/// handling applies, under the names that its tools would have.
pub(crate) struct UnusableProvider {
    pub(crate) id: String,
    pub(crate) covers: Option<String>,
    pub(crate) message: String,
}

impl ToolProvider for UnusableProvider {
    fn id(&self) -> &str {
        &self.id
    }

    fn covers(&self) -> Option<&str> {
        self.covers.as_deref()
    }

    fn list(self: Arc<Self>, _: &ListContext) -> Listing {
        let message = self.message.clone();
        Listing::failed(DiscoveryError::new(DiscoveryErrorClass::Source, message))
    }
}
