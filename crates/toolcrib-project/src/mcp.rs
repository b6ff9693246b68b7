//! MCP servers of a project.

use std::{fmt, sync::Arc};

use toolcrib_core::{
    Catalog, DiscoveryError, DiscoveryErrorClass, ListContext, Listing, ToolProvider,
};
use toolcrib_engine::{OnFailure, Redactor};
use toolcrib_mcp::{McpClient, ServerName};

use crate::build::Remote;

/// An MCP server of a project. Nothing of it is started or dialled before its tools are asked for.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) name: ServerName,
    pub(crate) plugin: Option<Arc<str>>,
    pub(crate) origin: Arc<str>,
    pub(crate) on_failure: OnFailure,
    pub(crate) alternatives: Vec<Arc<str>>,
    pub(crate) trusted: bool,
    /// The client; else why there can be none, for the operator.
    pub(crate) client: Result<McpClient, Arc<str>>,
    /// What nobody must read of what is declared of it.
    pub(crate) secrets: Vec<String>,
}

impl McpServer {
    /// What it is called here.
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// The plugin that it is of.
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// Where it is declared: `toolcrib.toml:12`, `.mcp.json:3`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What happens to an iteration when it cannot be listed.
    pub fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// Whether it is believed what it says of its tools' effects.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// Its client, which all engines of the project share.
    ///
    /// # Errors
    /// Why there can be none: a secret that it needs is not there, or it stands in a file that was
    /// imported and cannot be used as it is declared there.
    pub fn client(&self) -> Result<&McpClient, &str> {
        self.client.as_ref().map_err(|reason| &**reason)
    }

    /// Keeps it from being started or dialed, for a reason that ends a sentence about it. An
    /// iteration goes on without it.
    pub(crate) fn hold(&mut self, reason: &Arc<str>) {
        self.client = Err(Arc::clone(reason));
        self.on_failure = OnFailure::Omit;
    }

    pub(crate) fn hide_from(&self, redactor: &Redactor) {
        for secret in &self.secrets {
            // One that is too short to be redacted stands in too many texts by chance.
            let _ = redactor.learn(secret);
        }
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
            Err(reason) => Arc::new(Unusable {
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

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("origin", &self.origin)
            .field("on_failure", &self.on_failure)
            .finish_non_exhaustive()
    }
}

/// A source that is not asked: it fails as one does that cannot be reached, so that what is declared
/// of its failure holds, under the names that its tools would have.
pub(crate) struct Unusable {
    pub(crate) id: String,
    pub(crate) covers: Option<String>,
    pub(crate) message: String,
}

impl ToolProvider for Unusable {
    fn id(&self) -> &str {
        &self.id
    }

    fn covers(&self) -> Option<&str> {
        self.covers.as_deref()
    }

    fn list(self: Arc<Self>, _: &ListContext, into: Catalog) -> Listing {
        let error = DiscoveryError::new(DiscoveryErrorClass::Source, self.message.clone());
        Listing::failed(into, error)
    }
}
