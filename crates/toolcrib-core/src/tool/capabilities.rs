//! Capabilities of a tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{context::ToolContext, output::ToolError, pending_call::PendingCall};
use crate::kv::KvScope;

/// The access that a tool written in Rust needs beyond its own state. Declared with
/// [`ToolBuilder::capabilities`](crate::ToolBuilder::capabilities); nothing by default.
///
/// Each call receives its declared capabilities as handles that are limited to them: secrets by
/// [`ToolContext::secret`](crate::ToolContext::secret), the others by
/// [`ToolContext::handle`](crate::ToolContext::handle). A call is refused before the body runs if a
/// declared capability cannot be granted here.
///
/// The limits apply to the handles; this is not a sandbox: code in this process that bypasses them
/// is not stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Capabilities {
    /// Hosts that it may reach over HTTP: `api.example.com`, or `*.example.com` for all subdomains.
    pub network: Vec<Arc<str>>,
    /// Programs that it may start: names that are looked up in `PATH`, or absolute paths.
    pub process: Vec<Arc<str>>,
    /// Secrets that it may read, by name.
    pub secrets: Vec<Arc<str>>,
    /// Folders that it may read, by the names that the host gave them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Arc<str>>,
    /// Folders that it may read and write, by the names that the host gave them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write_files: Vec<Arc<str>>,
    /// Scopes in which it keeps keys and values; see [`ToolContext::kv`](crate::ToolContext::kv).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kv: Vec<KvScope>,
    /// The same, of a tool that also runs where there is no store.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub optional_kv: Vec<KvScope>,
    /// Whether it keeps files in the agent's own area.
    #[serde(skip_serializing_if = "is_false")]
    pub storage: bool,
    /// The same, of a tool that also runs where there is no such area.
    #[serde(skip_serializing_if = "is_false")]
    pub optional_storage: bool,
    /// Whether it asks the person of the turn; see
    /// [`ToolContext::clarifier`](crate::ToolContext::clarifier).
    #[serde(skip_serializing_if = "is_false")]
    pub person: bool,
    /// Whether it gives tasks to child agents; see [`DelegateHandle`](crate::DelegateHandle).
    #[serde(skip_serializing_if = "is_false")]
    pub agents: bool,
    /// Whether it opens the files that the user attached; see
    /// [`ToolContext::attachments`](crate::ToolContext::attachments).
    #[serde(skip_serializing_if = "is_false")]
    pub attachments: bool,
    /// Whether it works on what a team shares: only personalities that are members of a team reach it.
    #[serde(skip_serializing_if = "is_false")]
    pub team: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

impl Capabilities {
    /// Declares that no capability is needed.
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

    /// Adds secrets that it may read.
    #[must_use]
    pub fn secrets<S: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.secrets.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds folders that it may read.
    #[must_use]
    pub fn files<F: Into<Arc<str>>>(mut self, folders: impl IntoIterator<Item = F>) -> Self {
        self.files.extend(folders.into_iter().map(Into::into));
        self
    }

    /// Adds folders that it may read and write.
    #[must_use]
    pub fn write_files<F: Into<Arc<str>>>(mut self, folders: impl IntoIterator<Item = F>) -> Self {
        self.write_files.extend(folders.into_iter().map(Into::into));
        self
    }

    /// Adds scopes in which it keeps keys and values. Without a store the tool is not run.
    #[must_use]
    pub fn kv(mut self, scopes: impl IntoIterator<Item = KvScope>) -> Self {
        self.kv.extend(scopes);
        self
    }

    /// Adds scopes in which it keeps keys and values if there is a store.
    #[must_use]
    pub fn optional_kv(mut self, scopes: impl IntoIterator<Item = KvScope>) -> Self {
        self.optional_kv.extend(scopes);
        self
    }

    /// Adds files in the agent's own area. Without such an area the tool is not run.
    #[must_use]
    pub fn storage(mut self) -> Self {
        self.storage = true;
        self
    }

    /// Adds files in the agent's own area if there is one.
    #[must_use]
    pub fn optional_storage(mut self) -> Self {
        self.optional_storage = true;
        self
    }

    /// Adds questions to the person of the turn.
    #[must_use]
    pub fn person(mut self) -> Self {
        self.person = true;
        self
    }

    /// Adds tasks for child agents.
    #[must_use]
    pub fn agents(mut self) -> Self {
        self.agents = true;
        self
    }

    /// Adds the files that the user attached to the message of the turn.
    #[must_use]
    pub fn attachments(mut self) -> Self {
        self.attachments = true;
        self
    }

    /// Requires a team; see [`ToolContext::team`](crate::ToolContext::team).
    #[must_use]
    pub fn team(mut self) -> Self {
        self.team = true;
        self
    }

    /// All scopes in which it keeps keys and values.
    pub fn all_kv(&self) -> impl Iterator<Item = KvScope> {
        self.kv.iter().chain(&self.optional_kv).copied()
    }

    /// All folders that it reaches, to read or also to write.
    pub fn all_files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.files.iter().chain(&self.write_files)
    }

    /// Whether a call may pass its arguments on to a host or a program.
    pub(crate) fn reach_others(&self) -> bool {
        !self.network.is_empty() || !self.process.is_empty()
    }

    /// Whether some of them require a [`CapabilityGranter`](crate::CapabilityGranter); secrets are
    /// granted by the engine.
    pub fn requires_granter(&self) -> bool {
        self.reach_others() || self.all_files().next().is_some() || self.storage
    }
}

/// Grants a call its declared capabilities before it runs, and refuses capabilities that cannot be
/// enforced.
pub trait CapabilityGranter: Send + Sync + 'static {
    /// Returns the context for the body.
    ///
    /// # Errors
    /// A refusal; the body is not run.
    fn grant(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError>;
}
