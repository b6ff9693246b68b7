//! What is declared of a server: where it is, and how it is reached.

mod file;
mod http;
mod invalid;
mod json;
mod narrow;
mod program;
mod stdio;
mod variables;

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
