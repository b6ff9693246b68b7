//! Where an API is.

use toolcrib_scope::http::{HttpError, Url, parse_url};

/// A base URL that is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the base URL {problem}")]
pub struct InvalidBaseUrl {
    problem: String,
}

/// Where an API is: `http` or `https`, no user, no query; without a `/` at its end.
#[derive(Debug, Clone)]
pub(super) struct BaseUrl(Url);

impl BaseUrl {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidBaseUrl> {
        let invalid = |problem: String| InvalidBaseUrl { problem };
        let url = parse_url(text.trim()).map_err(|error| match error {
            HttpError::Url { problem } => invalid(format!("cannot be used: {problem}")),
            other => invalid(format!("cannot be used: {other}")),
        })?;
        if url.query().is_some() {
            return Err(invalid("has a query (`?…`); give the part before it".to_owned()));
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
                Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
                Some(Host::Ipv4(address)) => address.is_loopback(),
                Some(Host::Ipv6(address)) => address.is_loopback(),
                None => false,
            }
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
