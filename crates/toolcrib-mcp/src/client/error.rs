use std::{sync::Arc, time::Duration};

use crate::server::{InvalidServerError, name::InvalidServerNameError};

/// Why a server cannot be used. The texts are for the operator: they may quote the server. They
/// stay equal until another error occurs, so that they can be compared; the number of failures and
/// the time of the next attempt are in the fields.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The server's name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidServerNameError),
    /// Its transport is invalid as declared.
    #[error(transparent)]
    Server(#[from] InvalidServerError),
    /// Another part of its declaration is invalid.
    #[error("MCP server `{server}`: {problem}")]
    Declared {
        /// The server.
        server: Arc<str>,
        /// The problem, and how to fix it.
        problem: String,
    },
    /// It did not start, could not be connected, or ended too often. Until the next attempt,
    /// requests fail at once with this error.
    #[error("MCP server `{server}` cannot be reached: {problem}")]
    Unreachable {
        /// The server.
        server: Arc<str>,
        /// The last error.
        problem: Arc<str>,
        /// The number of consecutive failures.
        failures: u32,
        /// The time until the next attempt.
        next_try_in: Duration,
    },
    /// It is connected, but its tools cannot be listed.
    #[error("MCP server `{server}` does not list its tools: {problem}")]
    NotListed {
        /// The server.
        server: Arc<str>,
        /// The last error.
        problem: Arc<str>,
        /// The number of consecutive failures.
        failures: u32,
        /// The time until the next attempt.
        next_try_in: Duration,
    },
    /// It has no credentials, or no place, for this caller.
    #[error("MCP server `{server}` cannot be used by this caller: {reason}")]
    NoAccess {
        /// The server.
        server: Arc<str>,
        /// The reason.
        reason: Arc<str>,
    },
    /// All its sessions are in use by other identities.
    #[error(
        "MCP server `{server}` has {sessions} sessions, the maximum, and all are in use; raise \
         `max_sessions`, or declare its session shared"
    )]
    Busy {
        /// The server.
        server: Arc<str>,
        /// The number of sessions.
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
    /// The same for a model: the server, and what to do, without texts of the server.
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
            Self::NoAccess { server, .. } => {
                format!("MCP server `{server}` has no credentials for this user; do not call it")
            }
            // These texts quote only the operator's names and declarations.
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
