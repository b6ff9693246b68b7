//! The capabilities that a host grants to tools written in Rust, call by call.

#[cfg(feature = "files")]
use toolcrib_core::Capabilities;
use toolcrib_core::{CapabilityGranter, PendingCall, ToolContext, ToolError};

#[cfg(feature = "files")]
use crate::files::{FileFolders, Files, StorageArea};
#[cfg(feature = "http")]
use crate::http::{HostPattern, HttpClient};
#[cfg(feature = "process")]
use crate::process::{Processes, find_program};

/// The capabilities of a host, as a [`CapabilityGranter`]: each call gets handles for its tool's
/// declarations, narrowed to them and, on the network, to the [rules](ToolContext::network_rules)
/// of the turn's personality. A tool that declares more than is available is not run.
///
/// | declared in `Capabilities` | handle in the body |
/// |---|---|
/// | `files`, `write_files` | `cx.handle::<FileFolders>()?.get("notes")?` |
/// | `storage`, `optional_storage` | `cx.handle::<Storage>()?.files()` |
/// | `network` | `cx.handle::<HttpClient>()?` |
/// | `process` | `cx.handle::<Processes>()?` |
///
/// A program declared by name is looked up on the `PATH` of this process when it is called. Secrets
/// are granted by the engine itself.
#[derive(Debug, Clone, Default)]
pub struct HostCapabilities {
    #[cfg(feature = "files")]
    files: Vec<Files>,
    #[cfg(feature = "files")]
    storage: Option<StorageArea>,
    #[cfg(feature = "http")]
    http: Option<HttpClient>,
    #[cfg(feature = "process")]
    processes: Option<Processes>,
}

impl HostCapabilities {
    /// Grants no capability to any call.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Adds a folder that calls may use. Tools declare it by its name; of two with the same name,
    /// the first counts.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn files(mut self, files: Files) -> Self {
        self.files.push(files);
        self
    }

    /// Adds the agent's own area.
    #[cfg(feature = "files")]
    #[must_use]
    pub fn storage(mut self, area: StorageArea) -> Self {
        self.storage = Some(area);
        self
    }

    /// Adds the network, with the restrictions of this client.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(mut self, client: HttpClient) -> Self {
        self.http = Some(client);
        self
    }

    /// Adds programs, with the restrictions of this right to run them.
    #[cfg(feature = "process")]
    #[must_use]
    pub fn processes(mut self, processes: Processes) -> Self {
        self.processes = Some(processes);
        self
    }

    #[cfg(feature = "files")]
    fn grant_files(&self, declared: &Capabilities, cx: ToolContext) -> GrantResult {
        match FileFolders::grant(&self.files, declared, &cx) {
            None => Ok(cx),
            Some(folders) => Ok(cx.with_handle(folders?)),
        }
    }

    #[cfg(feature = "files")]
    fn grant_storage(&self, declared: &Capabilities, cx: ToolContext) -> GrantResult {
        match &self.storage {
            Some(area) if declared.storage || declared.optional_storage => {
                let storage = area.grant(&cx)?;
                Ok(cx.with_handle(storage))
            }
            None if declared.storage => Err("no area of the agent is set up".to_owned()),
            _ => Ok(cx),
        }
    }

    #[cfg(feature = "http")]
    fn grant_http(&self, hosts: &[impl AsRef<str>], cx: ToolContext) -> GrantResult {
        if hosts.is_empty() {
            return Ok(cx);
        }
        let client = self.http.as_ref().ok_or("no network is set up")?;
        let hosts: Vec<HostPattern> = hosts
            .iter()
            .map(|host| host.as_ref().parse())
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{error}"))?;
        let client = client.only(hosts).within(cx.network_rules());
        Ok(cx.with_handle(client.map_err(|error| format!("a rule of the personality: {error}"))?))
    }

    #[cfg(feature = "process")]
    fn grant_processes(&self, programs: &[impl AsRef<str>], cx: ToolContext) -> GrantResult {
        if programs.is_empty() {
            return Ok(cx);
        }
        let processes = self.processes.as_ref().ok_or("no programs are set up")?;
        let programs = programs
            .iter()
            .map(|program| find_program(program.as_ref(), "/".as_ref()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        Ok(cx.with_handle(processes.only(programs)))
    }
}

/// A context with one more handle, or the reason of a refusal, for the operator.
type GrantResult = Result<ToolContext, String>;

impl CapabilityGranter for HostCapabilities {
    fn grant(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError> {
        let declared = call.tool.capabilities();
        let granted: GrantResult = Ok(cx);
        #[cfg(feature = "http")]
        let granted = granted.and_then(|cx| self.grant_http(&declared.network, cx));
        #[cfg(not(feature = "http"))]
        let granted = granted.and_then(|cx| none_of(&declared.network, "network", cx));
        #[cfg(feature = "process")]
        let granted = granted.and_then(|cx| self.grant_processes(&declared.process, cx));
        #[cfg(not(feature = "process"))]
        let granted = granted.and_then(|cx| none_of(&declared.process, "process", cx));
        #[cfg(feature = "files")]
        let granted = granted
            .and_then(|cx| self.grant_files(declared, cx))
            .and_then(|cx| self.grant_storage(declared, cx));
        #[cfg(not(feature = "files"))]
        let granted = granted
            .and_then(|cx| none_of(&declared.files, "files", cx))
            .and_then(|cx| none_of(&declared.write_files, "files", cx))
            .and_then(|cx| none_of(if declared.storage { &[""][..] } else { &[] }, "storage", cx));
        granted.map_err(|cause| ToolError::not_set_up("something").caused_by(cause))
    }
}

/// Capabilities that this build cannot grant must not be declared.
#[cfg(not(all(feature = "files", feature = "http", feature = "process")))]
fn none_of(declared: &[impl AsRef<str>], capability: &str, cx: ToolContext) -> GrantResult {
    if declared.is_empty() {
        Ok(cx)
    } else {
        Err(format!("toolcrib-capabilities is built without its feature for `{capability}`"))
    }
}
