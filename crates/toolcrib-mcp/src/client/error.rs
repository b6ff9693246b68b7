use std::{sync::Arc, time::Duration};

use super::name::InvalidServerName;
use crate::server::InvalidServer;

/// A server that cannot be used. The texts are the operator's: they may quote the server. They stay
/// the same until something else goes wrong, so that what is compared with them does too; how often
/// it went wrong and when it is tried again is in the fields.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// No server can have that name.
    #[error(transparent)]
    Name(#[from] InvalidServerName),
    /// It cannot be reached as it is declared.
    #[error(transparent)]
    Server(#[from] InvalidServer),
    /// Something else that is declared of it cannot be.
    #[error("MCP server `{server}`: {problem}")]
    Declared {
        /// The server.
        server: Arc<str>,
        /// What is wrong, and how to right it.
        problem: String,
    },
    /// It did not start, could not be dialled, or ended too often. Until it is tried again, asking
    /// for it costs nothing and gives this.
    #[error("MCP server `{server}` cannot be reached: {problem}")]
    Unreachable {
        /// The server.
        server: Arc<str>,
        /// What went wrong the last time.
        problem: Arc<str>,
        /// How many times in a row it went wrong.
        failures: u32,
        /// When it may be tried again.
        next_try_in: Duration,
    },
    /// It is reached, and does not list its tools.
    #[error("MCP server `{server}` does not list its tools: {problem}")]
    NotListed {
        /// The server.
        server: Arc<str>,
        /// What went wrong the last time.
        problem: Arc<str>,
        /// How many times in a row it went wrong.
        failures: u32,
        /// When it may be asked again.
        next_try_in: Duration,
    },
    /// All its sessions are in use, by other identities.
    #[error(
        "MCP server `{server}` has {sessions} sessions, all of them in use, which is the most it may \
         have; raise `max_sessions`, or declare its session shared"
    )]
    Busy {
        /// The server.
        server: Arc<str>,
        /// How many sessions there are.
        sessions: usize,
    },
    /// Its client has been closed.
    #[error("the client of MCP server `{server}` is closed")]
    Closed {
        /// The server.
        server: Arc<str>,
    },
}

impl McpError {
    /// The same for a model: which server, and what to do, and nothing that the server said.
    pub fn for_model(&self) -> String {
        match self {
            Self::Unreachable { server, next_try_in, .. }
            | Self::NotListed { server, next_try_in, .. } => {
                let next = next_try(*next_try_in);
                format!("MCP server `{server}` cannot be used at the moment; {next}")
            }
            Self::Busy { server, .. } => {
                format!("MCP server `{server}` serves as many users as it may; try again later")
            }
            // Of names and declarations, which are the operator's own words.
            other => other.to_string(),
        }
    }
}

fn next_try(after: Duration) -> String {
    if after.is_zero() {
        "it can be tried again now".to_owned()
    } else {
        format!("it can be tried again in {:.1} s", after.as_secs_f64())
    }
}
