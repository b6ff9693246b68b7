use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use toolcrib_capabilities::http::{HttpClientBuilder, Url, parse_url};
use url::Host;

use crate::oauth::OAuth;

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

/// The loopback addresses that a URL names, literally or as `localhost`.
pub(crate) fn local_addresses(url: &Url) -> Vec<SocketAddr> {
    let (v4, v6) = (Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into());
    let ips: Vec<IpAddr> = match url.host() {
        Some(Host::Domain("localhost")) => vec![v4, v6],
        Some(Host::Ipv4(address)) if address.is_loopback() => vec![address.into()],
        Some(Host::Ipv6(address)) if address.is_loopback() => vec![address.into()],
        _ => Vec::new(),
    };
    let port = url.port_or_known_default().unwrap_or_default();
    ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

/// Without the values of its headers, which may be secrets.
impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Http")
            .field("url", &self.url)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}
