//! Requests to authorization servers, through the guarded HTTP client: bounded, and not to private
//! addresses unless the MCP server may be there.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use serde::de::DeserializeOwned;
use toolcrib_capabilities::http::{
    Bytes, HeaderValue, HttpClient, HttpRequest, HttpResponse, Method, StatusCode, Url, header,
    parse_url,
};
use toolcrib_core::CancellationToken;
use url::Host;

use super::error::{OAuthError, plain};

const MAX_BYTES: usize = 256 * 1024;
const WITHIN: Duration = Duration::from_secs(15);
/// Documents may have moved; each redirect is checked like the first request.
const MAX_REDIRECTS: usize = 3;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

#[derive(Clone)]
pub(super) struct Fetch {
    pub(super) http: HttpClient,
    /// Whether the MCP server is on this machine; then its authorization server may be too.
    pub(super) is_local: bool,
}

impl Fetch {
    /// A document; `None` if there is none.
    pub(super) async fn document<T: DeserializeOwned>(
        &self,
        url: &Url,
        cancel: &CancellationToken,
    ) -> Result<Option<T>, OAuthError> {
        let mut request = HttpRequest::get(url.as_str());
        request.max_redirects = MAX_REDIRECTS;
        request.headers.insert(header::ACCEPT, JSON);
        let what = || format!("the metadata at {}", shown(url));
        let response = self.send(request, &what(), cancel).await?;
        match response.status {
            status if status.is_success() => parse(&response.body, &what()).map(Some),
            status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                Ok(None)
            }
            status => Err(OAuthError::unusable(what(), format!("HTTP {}", status.as_u16()))),
        }
    }

    /// The answer to a form.
    pub(super) async fn form(
        &self,
        url: &Url,
        fields: &[(&str, &str)],
        authorization: Option<HeaderValue>,
        cancel: &CancellationToken,
    ) -> Result<HttpResponse, OAuthError> {
        let mut request = self.post(url, form(fields), FORM);
        if let Some(authorization) = authorization {
            request.headers.insert(header::AUTHORIZATION, authorization);
        }
        self.send(request, &format!("the token endpoint {}", shown(url)), cancel).await
    }

    /// The answer to a document.
    pub(super) async fn json(
        &self,
        url: &Url,
        body: &serde_json::Value,
        cancel: &CancellationToken,
    ) -> Result<HttpResponse, OAuthError> {
        let request = self.post(url, Bytes::from(body.to_string()), JSON);
        self.send(request, &format!("the registration endpoint {}", shown(url)), cancel).await
    }

    fn post(&self, url: &Url, body: Bytes, kind: HeaderValue) -> HttpRequest {
        let mut request = HttpRequest::new(Method::POST, url.as_str());
        request.body = Some(body);
        request.max_redirects = 0;
        request.headers.insert(header::ACCEPT, JSON);
        request.headers.insert(header::CONTENT_TYPE, kind);
        request
    }

    async fn send(
        &self,
        mut request: HttpRequest,
        what: &str,
        cancel: &CancellationToken,
    ) -> Result<HttpResponse, OAuthError> {
        request.max_body_bytes = MAX_BYTES;
        request.timeout = Some(WITHIN);
        let sent = self.http.send(request, cancel).await;
        sent.map_err(|source| OAuthError::Http { what: what.to_owned(), source })
    }

    /// An address that another party names: `https`, or on this machine if the MCP server is there.
    pub(super) fn address(&self, text: &str, what: &str) -> Result<Url, OAuthError> {
        let unusable =
            |problem: &str| OAuthError::unusable(format!("the {what} `{}`", plain(text)), problem);
        let url = parse_url(text).map_err(|error| unusable(&error.to_string()))?;
        let is_here = self.is_local && !local_addresses(&url).is_empty();
        if url.scheme() != "https" && !is_here {
            return Err(unusable("it does not use https"));
        }
        if url.fragment().is_some() {
            return Err(unusable("it has a fragment"));
        }
        Ok(url)
    }
}

fn form(fields: &[(&str, &str)]) -> Bytes {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    Bytes::from(form.extend_pairs(fields).finish())
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, OAuthError> {
    serde_json::from_slice(body).map_err(|error| OAuthError::unusable(what, error.to_string()))
}

/// An address without its query.
pub(super) fn shown(url: &Url) -> String {
    plain(&format!("{}{}", url.origin().ascii_serialization(), url.path()))
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
