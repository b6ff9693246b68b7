use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use toolcrib_capabilities::http::{HttpClientBuilder, Url, is_set_by_client, parse_url};

use super::InvalidServerError;
use crate::oauth::{OAuth, fetch::local_addresses};

/// A server over Streamable HTTP.
///
/// A URL with a literal loopback address or `localhost` is permitted, for this server alone; other
/// addresses outside the public internet need a [client](Self::client) that allows them. Redirects
/// are refused.
#[derive(Clone)]
pub struct Http {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) client: Option<Arc<HttpClientBuilder>>,
    pub(crate) oauth: Option<OAuth>,
}

impl Http {
    /// A server by the URL of its endpoint, such as `https://docs.example/mcp`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), client: None, oauth: None }
    }

    /// Sends a header with every request, such as `Authorization`. A secret is sent by `https` or
    /// within this machine only: with `http` to other hosts, headers fail the build.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the HTTP client: its allowed addresses and trusted certificate authorities. Default:
    /// the public internet, and the authorities of the system.
    #[must_use]
    pub fn client(mut self, client: HttpClientBuilder) -> Self {
        self.client = Some(Arc::new(client));
        self
    }

    /// Gets tokens by OAuth if the server requires them. Default: it has no tokens. Without effect
    /// on a server with a header `Authorization`.
    #[must_use]
    pub fn oauth(mut self, oauth: OAuth) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// The addresses of this machine that its URL names, which are permitted without a
    /// [client](Self::client) that allows them, on its port; empty if it names another host or is
    /// not a valid URL.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        parse_url(&self.url).map(|url| local_addresses(&url)).unwrap_or_default()
    }
}

// Without the values of its headers, which may be secrets.
toolcrib_core::__internal::debug_fields!(
    Http,
    http,
    url = http.url,
    headers = http.headers.iter().map(|(name, _)| name).collect::<Vec<_>>(),
    ..
);

/// Headers of the protocol; another value of one would be ambiguous.
const OF_THE_PROTOCOL: [&str; 7] = [
    "accept",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// The URL and the headers of a declaration.
pub(crate) fn checked(server: &str, http: &Http) -> Result<(Url, HeaderMap), InvalidServerError> {
    let invalid = |problem: String| InvalidServerError::Url { server: server.to_owned(), problem };
    let url = parse_url(&http.url).map_err(|error| invalid(error.to_string()))?;
    let is_local = !local_addresses(&url).is_empty();
    if url.scheme() != "https" && !is_local && !http.headers.is_empty() {
        let host = url.host_str().unwrap_or_default().to_owned();
        return Err(InvalidServerError::HeadersInTheClear { server: server.to_owned(), host });
    }
    let headers = headers(server, &http.headers)?;
    Ok((url, headers))
}

fn headers(server: &str, declared: &[(String, String)]) -> Result<HeaderMap, InvalidServerError> {
    let mut headers = HeaderMap::new();
    for (name, value) in declared {
        let invalid = |problem| InvalidServerError::Header {
            server: server.to_owned(),
            header: name.escape_debug().collect(),
            problem,
        };
        let parsed: HeaderName =
            name.parse().map_err(|_| invalid("has a name that cannot be sent"))?;
        if is_set_by_client(&parsed)
            || OF_THE_PROTOCOL.contains(&parsed.as_str())
            || parsed.as_str().starts_with("mcp-param-")
        {
            return Err(invalid("is set by the client; remove it"));
        }
        let mut value =
            HeaderValue::from_str(value).map_err(|_| invalid("has a value that cannot be sent"))?;
        value.set_sensitive(true);
        headers.append(parsed, value);
    }
    Ok(headers)
}
