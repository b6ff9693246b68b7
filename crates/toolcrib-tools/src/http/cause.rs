//! The operator's text on a call that failed: the request and its result.
//!
//! It contains the URL up to its query. The path may contain arguments, which the operator may
//! see; only headers contain secrets.

use std::{error::Error, fmt};

use toolcrib_capabilities::http::{HttpError, HttpRequest, HttpResponse, IpNet, parse_url};
use toolcrib_core::ToolContext;

use super::answer::shortened;

/// How much of a URL is shown, in characters.
const SHOWN_URL: usize = 500;

/// A request in a cause: `GET https://api.example.com/v1/Oslo/forecast`.
pub(super) fn asked(request: &HttpRequest, cx: &ToolContext) -> String {
    let url = request.url.split(['?', '#']).next().unwrap_or_default();
    format!("{} {}", request.method, shortened(url, SHOWN_URL, cx))
}

/// The response. Where redirects led to another server, that one is named, and not the rest of
/// a URL that others have made up.
pub(crate) fn answered(asked: &str, response: &HttpResponse) -> String {
    let status = response.status;
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let origin = response.final_url.origin();
    let url = asked.split_once(' ').and_then(|(_, url)| parse_url(url).ok());
    let elsewhere = match url {
        Some(url) if url.origin() != origin => {
            format!(", redirected to {}", origin.ascii_serialization())
        }
        _ => String::new(),
    };
    format!("{asked}{elsewhere}: {}{reason}", status.as_u16())
}

/// A request that failed, and its error.
#[derive(Debug)]
pub(super) struct FailedRequest {
    pub(super) asked: String,
    pub(super) error: HttpError,
}

impl fmt::Display for FailedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.asked, for_operator(&self.error))
    }
}

impl Error for FailedRequest {
    /// The cause of the error in the text.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let mut error = &self.error;
        while let HttpError::Redirected { source, .. } = error {
            error = source;
        }
        error.source()
    }
}

/// The client does not know that it works for a tool, and so not where an address is allowed.
fn for_operator(error: &HttpError) -> String {
    match error {
        HttpError::AddressRefused { host, address, why } => format!(
            "`{host}` leads to {address}, which is {why}; if it is meant, write \
             `allow_addresses = [\"{}\"]` in the tool",
            IpNet::from(*address)
        ),
        HttpError::PortRefused { host, address } => format!(
            "`{host}` is not reached on port {} of {}; if it is meant, write \
             `allow_addresses = [\"{address}\"]` in the tool",
            address.port(),
            address.ip()
        ),
        HttpError::Redirected { host, source } => {
            format!("`{host}` redirects, and then: {}", for_operator(source))
        }
        other => other.to_string(),
    }
}
