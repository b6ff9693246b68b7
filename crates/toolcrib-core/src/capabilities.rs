//! What a tool needs of the world, as data.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a tool written in Rust needs of the world beyond its own state. Declared with
/// [`ToolBuilder::capabilities`](crate::ToolBuilder::capabilities); nothing by default.
///
/// What is declared is handed to each call as a handle that reaches so far and no further: secrets
/// by [`ToolContext::secret`](crate::ToolContext::secret), the others by
/// [`ToolContext::handle`](crate::ToolContext::handle). A call whose tool declares something that
/// nothing here can hand out is refused before the body runs.
///
/// It is a promise kept by the handles, not a sandbox: code in this process that goes around them
/// is not stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Capabilities {
    /// The hosts that it may reach over HTTP: `api.example.com`, or `*.example.com` for all below
    /// it.
    pub network: Vec<Arc<str>>,
    /// The programs that it may start: names that are looked up in `PATH`, or absolute paths.
    pub process: Vec<Arc<str>>,
    /// The secrets that it may ask for, by name.
    pub secrets: Vec<Arc<str>>,
}

impl Capabilities {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds hosts that it may reach over HTTP.
    #[must_use]
    pub fn network<H: Into<Arc<str>>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.network.extend(hosts.into_iter().map(Into::into));
        self
    }

    /// Adds programs that it may start.
    #[must_use]
    pub fn process<P: Into<Arc<str>>>(mut self, programs: impl IntoIterator<Item = P>) -> Self {
        self.process.extend(programs.into_iter().map(Into::into));
        self
    }

    /// Adds secrets that it may ask for.
    #[must_use]
    pub fn secrets<S: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.secrets.extend(names.into_iter().map(Into::into));
        self
    }

    /// Whether some of it can only be handed out by a [`Scoper`](crate::Scoper); secrets are
    /// handed out by the engine.
    pub fn need_scoper(&self) -> bool {
        !self.network.is_empty() || !self.process.is_empty()
    }
}
