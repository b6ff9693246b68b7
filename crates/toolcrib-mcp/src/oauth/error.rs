use std::time::Duration;

use toolcrib_capabilities::http::HttpError;
use toolcrib_core::__internal::beginning;

/// How much of a text of another party an error shows.
const MAX_CHARS: usize = 300;

/// Why no token could be had. The texts are for the operator: they may quote the servers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// The server has answered a request without a token.
    #[error("it does not require a login: it answers requests without a token")]
    NotRequired,
    /// It could not be queried.
    #[error("{0}")]
    Unreachable(String),
    /// It requires a person's consent.
    #[error("it requires a login; run `{command}`")]
    LoginRequired {
        /// The command to run.
        command: String,
    },
    /// The server has refused a token.
    #[error(
        "it refused a token for the audience `{audience}`{}; {next}",
        said_why(error, description)
    )]
    TokenRefused {
        /// The resource for which the token was requested.
        audience: String,
        /// The server's error code, such as `invalid_token`; may be empty.
        error: String,
        /// Its description; may be empty.
        description: String,
        /// The next step of the operator.
        next: String,
    },
    /// A metadata document or another answer breaks the rules of OAuth. Nothing was sent there.
    #[error("{what} cannot be used: {problem}")]
    Unusable {
        /// The document or answer.
        what: String,
        /// The problem.
        problem: String,
    },
    /// Another address, issuer or resource than the one that was asked.
    #[error("{what} is `{found}`, not `{expected}`; the login was stopped")]
    Mismatch {
        /// The compared part.
        what: &'static str,
        /// Its value there.
        found: String,
        /// The expected value.
        expected: String,
    },
    /// The authorization server refused.
    #[error("the authorization server refused: {error}{}", said(description))]
    Refused {
        /// Its error code, such as `invalid_grant`.
        error: String,
        /// Its description; may be empty.
        description: String,
    },
    /// The declaration lacks a part.
    #[error("{0}")]
    Declaration(String),
    /// A server could not be reached.
    #[error("{what}: {source}")]
    Http {
        /// The request.
        what: String,
        /// The problem.
        source: HttpError,
    },
    /// The tokens cannot be read or stored.
    #[error("the tokens cannot be {0}")]
    Store(String),
    /// The redirect cannot be received.
    #[error("the redirect cannot be received at {address}: {source}")]
    Listen {
        /// The local address.
        address: String,
        /// The problem.
        source: std::io::Error,
    },
    /// No redirect arrived.
    #[error("no consent was given within {0:?}; run the command again")]
    TimedOut(Duration),
    /// It was cancelled.
    #[error("the login was cancelled")]
    Cancelled,
}

impl OAuthError {
    pub(super) fn unusable(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Unusable { what: what.into(), problem: problem.into() }
    }
}

fn said(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(": {description}") }
}

/// The reason of a refusal, after the audience.
fn said_why(error: &str, description: &str) -> String {
    match (error, description) {
        ("", "") => " without a reason".to_owned(),
        ("", why) | (why, "") => format!(": {why}"),
        (error, why) => format!(": {error}: {why}"),
    }
}

/// A text of another party on one short line.
pub(super) fn plain(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = shown.take(MAX_CHARS + 1).collect();
    beginning(&shown, MAX_CHARS)
}
