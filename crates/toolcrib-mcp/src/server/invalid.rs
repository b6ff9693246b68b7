/// Why a server cannot be used as declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidServerError {
    /// The command is empty.
    #[error("mcp server `{server}`: the command is empty; name a program, such as `npx`")]
    Command {
        /// The server.
        server: String,
    },
    /// The URL is invalid.
    #[error("mcp server `{server}`: {problem}")]
    Url {
        /// The server.
        server: String,
        /// The problem.
        problem: String,
    },
    /// A header that cannot be sent.
    #[error("mcp server `{server}`: the header `{header}` {problem}")]
    Header {
        /// The server.
        server: String,
        /// The header's name.
        header: String,
        /// The problem, after the header's name.
        problem: &'static str,
    },
    /// Its authorization is declared incompletely.
    #[error("mcp server `{server}`: {problem}")]
    OAuth {
        /// The server.
        server: String,
        /// The problem.
        problem: &'static str,
    },
    /// Headers that would be sent unencrypted.
    #[error(
        "mcp server `{server}`: headers would go to `{host}` unencrypted; use https, or remove them"
    )]
    HeadersInTheClear {
        /// The server.
        server: String,
        /// The host of its URL.
        host: String,
    },
}
