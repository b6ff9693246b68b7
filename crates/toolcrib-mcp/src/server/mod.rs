//! What is declared of a server: where it is, and how it is reached.

mod file;
mod http;
mod invalid;
mod json;
mod narrow;
mod program;
mod stdio;
mod variables;

use std::path::Path;

pub(crate) use self::http::local_addresses;
pub use self::{
    file::{FileServer, ServersFile, read_servers},
    http::Http,
    invalid::InvalidServer,
    narrow::FileTools,
    stdio::Stdio,
    variables::{
        Expanded, InvalidVariable, VariableProblem, expand, is_secret_header, is_secret_variable,
        secrets_in,
    },
};

/// How a server is reached.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Transport {
    /// A program that is started here, over its standard input and output.
    Stdio(Stdio),
    /// A server that is there already, over Streamable HTTP.
    Http(Http),
}

/// What a transport starts or dials, for a person who decides whether it may.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Reach<'a> {
    /// A program is started.
    Program {
        /// The program.
        command: &'a str,
        /// Its arguments.
        args: &'a [String],
        /// Its own environment, names and values.
        env: &'a [(String, String)],
        /// The folder that it runs in.
        working_dir: Option<&'a Path>,
    },
    /// An endpoint is dialed.
    Endpoint {
        /// Its URL.
        url: &'a str,
        /// The headers of every request, names and values.
        headers: &'a [(String, String)],
    },
}

impl Transport {
    /// What it starts or dials. Values may be secrets.
    pub fn reach(&self) -> Reach<'_> {
        match self {
            Self::Stdio(Stdio { command, args, env, working_dir, .. }) => {
                Reach::Program { command, args, env, working_dir: working_dir.as_deref() }
            }
            Self::Http(Http { url, headers, .. }) => Reach::Endpoint { url, headers },
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
