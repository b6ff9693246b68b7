//! The target of a request, parsed from its URL.

use hyper::{Uri, header::HeaderValue};
use url::{Host, ParseError, Position, Url};

use super::error::HttpError;

/// The length limit of a URL: 16 KiB. Few servers accept as much.
pub const MAX_URL_BYTES: usize = 16 * 1024;

/// The length limit of a DNS name.
const MAX_NAME_BYTES: usize = 253;

/// Parses a URL as a client does, to check it before a request. Its fragment and the final dot of
/// its host are removed.
///
/// # Errors
/// [`HttpError::Url`]: it is not `http` or `https`, has no host, contains a user or a password, or
/// has more than [`MAX_URL_BYTES`].
pub fn parse_url(text: &str) -> Result<Url, HttpError> {
    Target::parse(text).map(|target| target.url)
}

/// A URL with a valid text; the addresses of its host are not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// For messages, and as part of the key of its connections.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) https: bool,
    /// The target in a request's first line.
    pub(crate) path_and_query: Uri,
    /// The value of the header `Host`.
    pub(crate) authority: HeaderValue,
}

impl Target {
    /// Parses a URL. Messages do not contain the URL, which may contain secrets.
    pub(crate) fn parse(text: &str) -> Result<Self, HttpError> {
        if text.len() > MAX_URL_BYTES {
            return Err(too_long());
        }
        Self::of(Url::parse(text).map_err(unreadable)?)
    }

    /// Parses the URL of a redirect, relative to this one.
    pub(crate) fn join(&self, location: &str) -> Result<Self, HttpError> {
        let url = self.url.join(location);
        Self::of(url.map_err(unreadable)?)
    }

    pub(crate) fn of(mut url: Url) -> Result<Self, HttpError> {
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            other => {
                let scheme: String = other.chars().take(20).collect();
                return Err(invalid(format!(
                    "it begins with `{scheme}:`, and with neither http:// nor https://"
                )));
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid(
                "it contains a user or a password; pass them in a header".to_owned(),
            ));
        }
        url.set_fragment(None);
        if let Some(Host::Domain(name)) = url.host() {
            // With the dot it is the same host, and would bypass comparisons without it.
            let bare = name.strip_suffix('.').unwrap_or(name).to_owned();
            if bare.len() > MAX_NAME_BYTES || bare.split('.').any(str::is_empty) {
                return Err(invalid("its host is not a valid name".to_owned()));
            }
            url.set_host(Some(&bare))
                .map_err(|_| invalid("its host is not a valid name".to_owned()))?;
        }
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(too_long());
        }
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(invalid("it has no host".to_owned()));
        };
        let host = host.to_owned();
        let authority = match url.port() {
            Some(port) => HeaderValue::try_from(format!("{host}:{port}")),
            None => HeaderValue::try_from(&host),
        };
        let authority = authority.map_err(|error| invalid(error.to_string()))?;
        let path_and_query = Uri::try_from(&url[Position::BeforePath..Position::AfterQuery]);
        let path_and_query = path_and_query.map_err(|error| invalid(error.to_string()))?;
        Ok(Self { url, host, port, https, path_and_query, authority })
    }

    /// Different origins share no secret.
    pub(crate) fn same_origin(&self, other: &Self) -> bool {
        (self.https, self.port, &self.host) == (other.https, other.port, &other.host)
    }
}

pub(crate) fn invalid(problem: String) -> HttpError {
    HttpError::Url { problem }
}

fn unreadable(error: ParseError) -> HttpError {
    invalid(match error {
        ParseError::RelativeUrlWithoutBase => {
            "it begins with neither http:// nor https://".to_owned()
        }
        other => format!("it cannot be read: {other}"),
    })
}

fn too_long() -> HttpError {
    invalid(format!("it has more than {MAX_URL_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(url: &str) -> String {
        Target::parse(url).unwrap().host
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for spelling in [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0x7f.1",
            "017700000001",
            "0177.0.0.1",
            "127.0.0.1.",
            "0X7F.0x0.0.01",
            "%31%32%37.0.0.1",
            "①②⑦.0.0.1",
            "127。0。0。1",
        ] {
            assert_eq!(host(&format!("http://{spelling}/")), "127.0.0.1", "{spelling}");
        }
        assert_eq!(host("http://[0:0:0:0:0:0:0:1]/"), "[::1]");
        assert_eq!(host("http://[::ffff:127.0.0.1]/"), "[::ffff:7f00:1]");
    }

    #[test]
    fn a_name_is_one_name_however_it_is_written() {
        for spelling in ["LOCALHOST", "localhost.", "loc%61lhost", "local\thost", "ⓛocalhost"] {
            assert_eq!(host(&format!("http://{spelling}/")), "localhost", "{spelling}");
        }
        assert_eq!(host("https://bücher.example/"), "xn--bcher-kva.example");
        let target = Target::parse("https://a.example.:8443/x?y#z").unwrap();
        assert_eq!(target.url.as_str(), "https://a.example:8443/x?y");
        assert_eq!(target.authority, "a.example:8443");
        assert_eq!(target.path_and_query, "/x?y");
    }

    #[test]
    fn what_is_no_target_is_refused_without_showing_it() {
        let long = format!("https://a.example/{}", "x".repeat(MAX_URL_BYTES));
        let grows = format!("https://a.example/{}", "é".repeat(MAX_URL_BYTES / 4));
        let long_name = format!("https://{}example/", "abcdefg.".repeat(32));
        for url in [
            "",
            "secret",
            "//secret.example/",
            "file:///secret",
            "ftp://secret.example/",
            "gopher://secret.example/",
            "data:text/plain,secret",
            "javascript:secret",
            "http://user:secret@a.example/",
            "http://secret@a.example/",
            "http:///?secret",
            "http://[fe80::1%25eth0]/secret",
            "http://[fe80::1%eth0]/secret",
            "http://a b/secret",
            "http://a..example/secret",
            "http://a.example../secret",
            "http://.a.example/secret",
            "http://./secret",
            "http://256.1.1.1/secret",
            "http://1.2.3.4.5/secret",
            "http://0x100000000/secret",
            "http://a%00b/secret",
            "http://a.example:99999/secret",
            "http://a%2fb/secret",
            long.as_str(),
            grows.as_str(),
            long_name.as_str(),
        ] {
            let error = Target::parse(url).unwrap_err();
            assert!(matches!(error, HttpError::Url { .. }), "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{url}: {error}");
            assert!(!error.may_have_reached_server());
        }
    }
}
