//! The address of an API.

use std::net::IpAddr;

use toolcrib_capabilities::http::{HttpError, Url, parse_url};

/// An invalid base URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the base URL {problem}")]
pub struct InvalidBaseUrlError {
    problem: String,
}

/// The address of an API: `http` or `https`, no user, no query, no fragment; without a trailing
/// `/`.
#[derive(Debug, Clone)]
pub(super) struct BaseUrl(Url);

impl BaseUrl {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidBaseUrlError> {
        let invalid = |problem: String| InvalidBaseUrlError { problem };
        if text.trim().chars().any(char::is_control) {
            // The parser would drop them silently.
            return Err(invalid("contains control characters".to_owned()));
        }
        let url = parse_url(text.trim()).map_err(|error| match error {
            HttpError::Url { problem } => invalid(format!("cannot be used: {problem}")),
            other => invalid(format!("cannot be used: {other}")),
        })?;
        if url.query().is_some() {
            return Err(invalid("has a query (`?…`); give the part before it".to_owned()));
        }
        if text.contains('#') {
            return Err(invalid("has a fragment (`#…`); give the part before it".to_owned()));
        }
        Ok(Self(url))
    }

    /// The URL of a path below it.
    pub(super) fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0.as_str().trim_end_matches('/'))
    }

    /// Whether the connection is private: encrypted, or within this machine.
    pub(super) fn is_private(&self) -> bool {
        use url::Host;
        self.0.scheme() == "https"
            || match self.0.host() {
                // Names below `localhost` may resolve to other machines.
                Some(Host::Domain(name)) => name == "localhost",
                Some(Host::Ipv4(address)) => is_here(address.into()),
                Some(Host::Ipv6(address)) => is_here(address.into()),
                None => false,
            }
    }

    /// Whether its host is this one, or a subdomain of it.
    pub(super) fn is_at(&self, host: &str) -> bool {
        let rest = self.0.host_str().and_then(|found| found.strip_suffix(host));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The error for a key that would be sent unencrypted.
    pub(super) fn in_the_clear(&self) -> InvalidBaseUrlError {
        let host = self.0.host_str().unwrap_or_default();
        InvalidBaseUrlError {
            problem: format!(
                "is http to `{host}`, which would send the key unencrypted; use https, or \
                 set no key"
            ),
        }
    }
}

fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}
