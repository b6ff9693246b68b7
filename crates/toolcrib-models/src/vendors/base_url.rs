//! Where an API is.

use std::net::IpAddr;

use toolcrib_scope::http::{HttpError, Url, parse_url};

/// A base URL that is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the base URL {problem}")]
pub struct InvalidBaseUrl {
    problem: String,
}

/// Where an API is: `http` or `https`, no user, no query, no fragment; without a `/` at its end.
#[derive(Debug, Clone)]
pub(super) struct BaseUrl(Url);

impl BaseUrl {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidBaseUrl> {
        let invalid = |problem: String| InvalidBaseUrl { problem };
        if text.trim().chars().any(char::is_control) {
            // They would be dropped in silence.
            return Err(invalid("holds control characters".to_owned()));
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

    /// Whether nobody on the way can read along: encrypted, or within this machine.
    pub(super) fn is_private(&self) -> bool {
        use url::Host;
        self.0.scheme() == "https"
            || match self.0.host() {
                // Below `localhost` there may be names that somebody else answers for.
                Some(Host::Domain(name)) => name == "localhost",
                Some(Host::Ipv4(address)) => is_here(address.into()),
                Some(Host::Ipv6(address)) => is_here(address.into()),
                None => false,
            }
    }

    /// Whether its host is this one, or one below it.
    pub(super) fn is_at(&self, host: &str) -> bool {
        let rest = self.0.host_str().and_then(|found| found.strip_suffix(host));
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    pub(super) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// For a message: a key that would go there in the clear.
    pub(super) fn in_the_clear(&self) -> InvalidBaseUrl {
        let host = self.0.host_str().unwrap_or_default();
        InvalidBaseUrl {
            problem: format!(
                "is http to `{host}`, and everybody on the way could read the key; use https, or \
                 give no key"
            ),
        }
    }
}

fn is_here(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}
