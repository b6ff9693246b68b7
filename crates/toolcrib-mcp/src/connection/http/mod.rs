//! Servers over Streamable HTTP.

mod client;
mod events;
mod failure;
mod names;
mod response;
mod streams;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use toolcrib_capabilities::http::{
    AllowedAddress, HeaderMap, HeaderName, HeaderValue, HostPattern, HttpClient, HttpClientBuilder,
    header, is_set_by_client, parse_url,
};

use self::client::Client;
use super::{
    ConnectError, Connector,
    transport::{Dial, Dialed, Wiring},
};
use crate::{
    oauth::{Authority, OAuth, Owner},
    server::{Http, InvalidServerError, local_addresses},
};

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

/// Connections to a server over Streamable HTTP. They share their HTTP connections.
///
/// A server with its own `Authorization` header needs no other tokens.
pub(crate) fn http(
    server: &str,
    http: &Http,
) -> Result<(Arc<Connector>, Option<Arc<Authority>>), InvalidServerError> {
    let invalid = |problem: String| InvalidServerError::Url { server: server.to_owned(), problem };
    let url = parse_url(&http.url).map_err(|error| invalid(error.to_string()))?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let pattern: HostPattern =
        host.parse().map_err(|_| invalid("its host is not a valid name".into()))?;
    let is_local = !local_addresses(&url).is_empty();
    if url.scheme() != "https" && !is_local && !http.headers.is_empty() {
        return Err(InvalidServerError::HeadersInTheClear { server: server.to_owned(), host });
    }
    let headers = headers(server, &http.headers)?;
    let mut builder = match &http.client {
        Some(builder) => HttpClientBuilder::clone(builder),
        None => HttpClient::builder(),
    };
    if is_local {
        // The declaration of the server names this machine, and the client requests no other host.
        builder = builder.allow_addresses(loopback());
    }
    let client = builder.build();
    let is_encrypted = url.scheme() == "https" || is_local;
    let settings = http.oauth.clone().filter(|_| !headers.contains_key(header::AUTHORIZATION));
    if let Some(problem) = settings.as_ref().and_then(OAuth::problem) {
        return Err(InvalidServerError::OAuth { server: server.to_owned(), problem });
    }
    // Without encryption, no token is sent.
    let authority = settings
        .filter(|_| is_encrypted)
        .map(|settings| Authority::new(server, url.clone(), settings, client.clone(), is_local));
    let target = format!("{}{}", url.origin().ascii_serialization(), url.path());
    let server = Server {
        target,
        url: Arc::from(url.as_str()),
        client: client.only([pattern]),
        headers,
        authority: authority.clone(),
    };
    Ok((Connector::new(server), authority))
}

struct Server {
    target: String,
    url: Arc<str>,
    client: HttpClient,
    headers: HeaderMap,
    authority: Option<Arc<Authority>>,
}

impl Dial for Server {
    fn target(&self) -> &str {
        &self.target
    }

    fn dial(
        &self,
        wiring: Wiring,
        owner: &Owner,
    ) -> BoxFuture<'static, Result<Dialed, ConnectError>> {
        let (http, url) = (self.client.clone(), Arc::clone(&self.url));
        let access = self.authority.as_ref().map(|authority| authority.access(owner));
        let transport = Arc::new(Client::new(http, url, self.headers.clone(), access, wiring));
        let serving = Box::pin(Arc::clone(&transport).serve());
        Box::pin(async move { Ok(Dialed { transport, serving }) })
    }
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

fn loopback() -> impl Iterator<Item = AllowedAddress> {
    ["127.0.0.0/8", "::1/128"].into_iter().filter_map(|net| net.parse().ok())
}
