//! The hosts and origins that requests may name. A page in a browser can make its name resolve to
//! this machine (DNS rebinding); it cannot make the browser send another name. So hosts are checked
//! first, and a page whose origin is the host of its request belongs to the endpoint itself.

use http::{
    HeaderMap, Uri,
    header::{HOST, ORIGIN},
    uri::Authority,
};

use crate::error::GatewayError;

/// The names of this machine, if no host is allowed by name.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// A normalized host: lower case, and a port if one is named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    name: String,
    port: Option<u16>,
}

impl Host {
    /// `None` also for a pattern: a `*` would be compared as a character and match nothing.
    fn parse(text: &str) -> Option<Self> {
        let authority: Authority = text.parse().ok()?;
        Self::of(&authority).filter(|host| !host.name.contains('*'))
    }

    /// `None` for one with a user, or with an invalid port.
    fn of(authority: &Authority) -> Option<Self> {
        let name = authority.host();
        let behind = authority.as_str().strip_prefix(name)?;
        let port = match behind.strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None if behind.is_empty() => None,
            None => return None,
        };
        (!name.is_empty()).then(|| Self { name: name.to_ascii_lowercase(), port })
    }
}

/// The hosts that requests may be sent to.
#[derive(Debug)]
pub(crate) struct Hosts(Vec<Host>);

impl Hosts {
    pub(crate) fn new(allowed: &[String]) -> Result<Self, GatewayError> {
        let parse = |text: &str| Host::parse(text).ok_or_else(|| GatewayError::Host(text.into()));
        if allowed.is_empty() {
            return LOOPBACK.into_iter().map(parse).collect::<Result<_, _>>().map(Self);
        }
        allowed.iter().map(|text| parse(text)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a request names an allowed host and no other, in its header and, if the request has
    /// a whole URL, there too.
    pub(crate) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return false;
        };
        let host = host.to_str().ok().and_then(Host::parse);
        let in_url = uri.authority().map(Host::of);
        host.is_some_and(|host| self.has(&host))
            && in_url.is_none_or(|host| host.is_some_and(|host| self.has(&host)))
    }

    fn has(&self, host: &Host) -> bool {
        let is_it = |allowed: &Host| {
            allowed.name == host.name && (allowed.port.is_none() || allowed.port == host.port)
        };
        self.0.iter().any(is_it)
    }
}

/// The origins whose pages may send requests, in addition to the endpoint's own.
#[derive(Debug)]
pub(crate) struct Origins(Vec<Origin>);

impl Origins {
    pub(crate) fn new(allowed: &[String]) -> Result<Self, GatewayError> {
        let parse =
            |text: &String| Origin::parse(text).ok_or_else(|| GatewayError::Origin(text.clone()));
        allowed.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a request to an allowed host comes from no page, or from one that may send it.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let mut all = headers.get_all(ORIGIN).iter().peekable();
        if all.peek().is_none() {
            return true;
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(Host::parse);
        all.all(|sent| {
            let sent = sent.to_str().ok().and_then(Origin::parse);
            let is_own = |sent: &Origin| host.as_ref().is_some_and(|host| sent.is_of(host));
            sent.is_some_and(|sent| self.0.contains(&sent) || is_own(&sent))
        })
    }
}

/// A normalized origin.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    is_https: bool,
    name: String,
    port: u16,
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.split_once("://")?;
        let is_https = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let Host { name, port } = Host::parse(host)?;
        Some(Self { is_https, name, port: port.unwrap_or_else(|| default_port(is_https)) })
    }

    /// Whether it is the origin of a page of this host. A proxy may terminate TLS. All names of the
    /// loopback are one host: with the same port they lead to the same server.
    fn is_of(&self, host: &Host) -> bool {
        let is_local = |name: &str| LOOPBACK.contains(&name);
        self.port == host.port.unwrap_or_else(|| default_port(self.is_https))
            && (self.name == host.name || (is_local(&self.name) && is_local(&host.name)))
    }
}

fn default_port(is_https: bool) -> u16 {
    if is_https { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)]) -> (Uri, HeaderMap) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        (uri.parse().unwrap(), map)
    }

    fn host_allowed(allowed: &[&str], uri: &str, hosts: &[&str]) -> bool {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        let (uri, headers) = request(uri, &headers);
        Hosts::new(&allowed).unwrap().allow(&uri, &headers)
    }

    #[test]
    fn without_a_list_only_the_loopback_is_named() {
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "[::1]"] {
            assert!(host_allowed(&[], "/mcp", &[host]), "{host}");
        }
        let others = [
            "evil.example",
            "localhost.evil.example",
            "evil.example:80",
            "127.0.0.2",
            "[::2]:80",
            "user@localhost",
            "localhost:80@evil.example",
            "localhost:port",
            "localhost:",
            "",
        ];
        for host in others {
            assert!(!host_allowed(&[], "/mcp", &[host]), "{host}");
        }
    }

    #[test]
    fn a_list_replaces_the_loopback_and_ports_count_where_they_are_named() {
        let allowed = ["tools.example", "other.example:8443"];
        for (host, is_allowed) in [
            ("tools.example", true),
            ("Tools.Example:1234", true),
            ("other.example:8443", true),
            ("other.example", false),
            ("other.example:8444", false),
            ("localhost", false),
        ] {
            assert_eq!(host_allowed(&allowed, "/mcp", &[host]), is_allowed, "{host}");
        }
    }

    #[test]
    fn one_host_is_named_and_the_url_agrees() {
        assert!(!host_allowed(&[], "/mcp", &[]));
        assert!(!host_allowed(&[], "/mcp", &["localhost", "localhost"]));
        assert!(host_allowed(&[], "http://localhost/mcp", &["localhost"]));
        assert!(!host_allowed(&[], "http://evil.example/mcp", &["localhost"]));
        assert!(!host_allowed(&[], "http://localhost/mcp", &["evil.example"]));
    }

    #[test]
    fn pages_need_an_allowed_origin_and_programs_none() {
        let allowed = |origins: &[&str], sent: &[&str]| {
            let origins: Vec<String> = origins.iter().map(ToString::to_string).collect();
            let sent: Vec<_> = sent.iter().map(|origin| ("origin", *origin)).collect();
            Origins::new(&origins).unwrap().allow(&request("/mcp", &sent).1)
        };
        assert!(allowed(&[], &[]));
        for sent in ["http://localhost", "null", "http://localhost:8080", "x", ""] {
            assert!(!allowed(&[], &[sent]), "{sent}");
        }
        let tools = &["https://tools.example"];
        assert!(allowed(tools, &["https://tools.example"]));
        assert!(allowed(tools, &["https://TOOLS.example:443"]));
        for sent in
            ["http://tools.example", "https://tools.example:8443", "https://a.tools.example"]
        {
            assert!(!allowed(tools, &[sent]), "{sent}");
        }
        assert!(!allowed(tools, &["https://tools.example", "https://evil.example"]));
    }

    #[test]
    fn what_is_no_host_or_origin_is_refused_at_the_start() {
        for host in ["http://x", "a b", "u@x", "x:99999", "*", "*.x", "*:80", ""] {
            let refused = Hosts::new(&[host.to_owned()]).unwrap_err();
            assert!(matches!(refused, GatewayError::Host(named) if named == host), "{host}");
        }
        let no_origins =
            ["tools.example", "ftp://x", "https://", "https://x/path", "https://x/", "null"];
        for origin in no_origins.into_iter().chain(["*", "https://*", "https://*.x", "http://x:*"])
        {
            let refused = Origins::new(&[origin.to_owned()]).unwrap_err();
            assert!(matches!(refused, GatewayError::Origin(named) if named == origin), "{origin}");
        }
    }
}
