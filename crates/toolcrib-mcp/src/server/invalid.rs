/// Why a server cannot be used as it is declared, whatever it would answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidServer {
    /// There is nothing to start.
    #[error("mcp server `{server}`: the command is empty; name a program, such as `npx`")]
    Command {
        /// The server.
        server: String,
    },
    /// The URL leads nowhere.
    #[error("mcp server `{server}`: {problem}")]
    Url {
        /// The server.
        server: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A header that cannot be sent.
    #[error("mcp server `{server}`: the header `{header}` {problem}")]
    Header {
        /// The server.
        server: String,
        /// The header's name.
        header: String,
        /// What is wrong, as it is read after its name.
        problem: &'static str,
    },
    /// Headers that everybody on the way could read.
    #[error(
        "mcp server `{server}`: headers would go to `{host}` unencrypted; use https, or leave \
         them out"
    )]
    HeadersInTheClear {
        /// The server.
        server: String,
        /// The host of its URL.
        host: String,
    },
}
