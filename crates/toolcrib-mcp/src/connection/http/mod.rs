//! Servers over Streamable HTTP.

mod carrier;
mod client;
mod events;
mod failure;
mod names;

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use rmcp::transport::{
    StreamableHttpClientTransport, common::client_side_sse::ExponentialBackoff,
    streamable_http_client::StreamableHttpClientTransportConfig,
};
use toolcrib_capabilities::http::{
    AllowedAddress, HeaderMap, HeaderName, HeaderValue, HostPattern, HttpClient, HttpClientBuilder,
    is_set_by_client, parse_url,
};

use self::client::Client;
pub(super) use self::failure::{why_not_answered, why_not_connected};
use super::{
    Connect,
    carry::Carrier,
    open::{Dial, Dialed, Failed, Greeting, Opener, Wiring, shake_hands},
};
use crate::server::{Http, InvalidServerError, local_addresses};

/// The limit of concurrent requests. Callers limit them; a lower limit here would let slow calls
/// delay quick ones.
const MAX_CONCURRENT: usize = 1_024;

/// The number of messages buffered between the parts of a connection.
const BUFFERED: usize = 256;

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
pub(crate) fn http(server: &str, http: &Http) -> Result<Arc<dyn Connect>, InvalidServerError> {
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
    let client = builder.build().only([pattern]);
    let target = format!("{}{}", url.origin().ascii_serialization(), url.path());
    Ok(Opener::new(Server { target, url: Arc::from(url.as_str()), client, headers }))
}

struct Server {
    target: String,
    url: Arc<str>,
    client: HttpClient,
    headers: HeaderMap,
}

impl Dial for Server {
    fn target(&self) -> &str {
        &self.target
    }

    fn dial(
        &self,
        greeting: Greeting,
        wiring: Wiring,
    ) -> BoxFuture<'static, Result<Dialed, Failed>> {
        let (http, url) = (self.client.clone(), Arc::clone(&self.url));
        let client = Client::new(http, url, self.headers.clone(), wiring.clone());
        let mut config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&self.url))
            .max_concurrent_requests(MAX_CONCURRENT)
            // An expired session ends the connection: a new one starts fresh, and its owner decides
            // which requests are sent again.
            .reinit_on_expired_session(false);
        config.channel_buffer_capacity = BUFFERED;
        // For a broken stream, starting with a second.
        let mut again = ExponentialBackoff::default();
        again.max_times = Some(10);
        again.max_delay = Some(Duration::from_secs(30));
        config.retry_config = Arc::new(again);
        Box::pin(async move {
            let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
            let running = shake_hands(transport, greeting, wiring).await?;
            Ok((running, Arc::new(client) as Arc<dyn Carrier>))
        })
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
