//! What a host lets tools written in Rust reach, handed out call by call.

use toolcrib_core::{PendingCall, Scoper, ToolContext, ToolError};

#[cfg(feature = "http")]
use crate::http::{HostPattern, HttpClient};
#[cfg(feature = "process")]
use crate::process::{Processes, find_program};

/// What a host lets its tools reach, as a [`Scoper`]: each call gets handles for what its tool
/// declares, narrowed to that and, on the network, to the
/// [rules](ToolContext::network_rules) of the turn's personality. A tool that declares more than
/// there is here is not run.
///
/// | declared in `Capabilities` | handle in the body |
/// |---|---|
/// | `network` | `cx.handle::<HttpClient>()?` |
/// | `process` | `cx.handle::<Processes>()?` |
///
/// A program that is declared by name is looked up on the `PATH` of this process when it is called.
/// Secrets are handed out by the engine itself.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    #[cfg(feature = "http")]
    http: Option<HttpClient>,
    #[cfg(feature = "process")]
    processes: Option<Processes>,
}

impl Reach {
    /// Nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Adds the network, as far as this client reaches.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn http(mut self, client: HttpClient) -> Self {
        self.http = Some(client);
        self
    }

    /// Adds programs, as far as this right to run them goes.
    #[cfg(feature = "process")]
    #[must_use]
    pub fn processes(mut self, processes: Processes) -> Self {
        self.processes = Some(processes);
        self
    }

    #[cfg(feature = "http")]
    fn hand_out_http(&self, hosts: &[impl AsRef<str>], cx: ToolContext) -> Scoped {
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
    fn hand_out_processes(&self, programs: &[impl AsRef<str>], cx: ToolContext) -> Scoped {
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

/// A context with one more handle, or why not, for the operator.
type Scoped = Result<ToolContext, String>;

impl Scoper for Reach {
    fn scope(&self, call: PendingCall<'_>, cx: ToolContext) -> Result<ToolContext, ToolError> {
        let declared = call.tool.capabilities();
        let scoped: Scoped = Ok(cx);
        #[cfg(feature = "http")]
        let scoped = scoped.and_then(|cx| self.hand_out_http(&declared.network, cx));
        #[cfg(not(feature = "http"))]
        let scoped = scoped.and_then(|cx| none_of(&declared.network, "network", cx));
        #[cfg(feature = "process")]
        let scoped = scoped.and_then(|cx| self.hand_out_processes(&declared.process, cx));
        #[cfg(not(feature = "process"))]
        let scoped = scoped.and_then(|cx| none_of(&declared.process, "process", cx));
        scoped.map_err(|cause| ToolError::not_set_up("something").caused_by(cause))
    }
}

/// What this build cannot hand out must not be declared.
#[cfg(not(all(feature = "http", feature = "process")))]
fn none_of(declared: &[impl AsRef<str>], capability: &str, cx: ToolContext) -> Scoped {
    if declared.is_empty() {
        Ok(cx)
    } else {
        Err(format!("toolcrib-scope is built without its feature for `{capability}`"))
    }
}
