//! Declarations of a server: its address or program, and its settings.

mod access;
mod arguments;
mod denied;
mod entry;
mod env_file;
pub(crate) mod file;
pub(crate) mod http;
mod invalid;
mod json;
pub(crate) mod name;
mod narrow;
mod program;
mod registry;
mod stdio;
mod toml_file;
mod variables;

use std::path::Path;

pub use toolcrib_config::{Diagnostic, Diagnostics, Help, Severity, Spot};

pub use self::{
    access::CallerAccess,
    file::{FileOAuth, FileServer, FileTimeouts, ServersFile, read_servers},
    http::Http,
    invalid::InvalidServerError,
    narrow::FileTools,
    stdio::Stdio,
    variables::{
        ExpandedText, InvalidVariableError, VariableErrorKind, expand, is_secret_header,
        is_secret_variable, secrets_in,
    },
};
pub(crate) use self::{arguments::shown_command, stdio::StderrLog};

/// The transport of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Transport {
    /// A program that is started here, over its standard input and output.
    Stdio(Stdio),
    /// A running server, over Streamable HTTP.
    Http(Http),
}

/// The program or endpoint of a transport, for a person who decides on it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum ServerTarget<'a> {
    /// A program is started.
    Program {
        /// The program.
        command: &'a str,
        /// Its arguments.
        args: &'a [String],
        /// Its own environment, names and values.
        env: &'a [(String, String)],
        /// Its working folder.
        working_dir: Option<&'a Path>,
    },
    /// A connection to an endpoint.
    Endpoint {
        /// Its URL.
        url: &'a str,
        /// The headers of every request, names and values.
        headers: &'a [(String, String)],
    },
}

impl Transport {
    /// The program or endpoint. Values may be secrets.
    pub fn target(&self) -> ServerTarget<'_> {
        match self {
            Self::Stdio(Stdio { command, args, env, working_dir, .. }) => {
                ServerTarget::Program { command, args, env, working_dir: working_dir.as_deref() }
            }
            Self::Http(Http { url, headers, .. }) => ServerTarget::Endpoint { url, headers },
        }
    }
}

impl From<Stdio> for Transport {
    fn from(stdio: Stdio) -> Self {
        Self::Stdio(stdio)
    }
}

impl From<Http> for Transport {
    fn from(http: Http) -> Self {
        Self::Http(http)
    }
}
