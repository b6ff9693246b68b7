//! The hosts that a client may request.

use std::{fmt, str::FromStr, sync::Arc};

use toolcrib_core::NetworkRules;
use url::Host;

use super::{error::HttpError, target::Target};

/// A host, or all names below one: `api.example.com` or `*.example.com`, on any port. The second
/// does not match `example.com` itself. An address is a host as well: `192.0.2.7`, `[2001:db8::7]`.
///
/// A permitted host does not permit the addresses of its name; those are checked separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Exact(Host),
    /// The part after `*`, with its dot.
    Below(String),
}

impl HostPattern {
    /// Whether it matches all hosts of another pattern.
    fn covers(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Kind::Exact(mine), Kind::Exact(theirs)) => mine == theirs,
            (Kind::Below(_), Kind::Exact(host)) => self.admits(&borrowed(host)),
            (Kind::Below(mine), Kind::Below(theirs)) => theirs.ends_with(mine.as_str()),
            (Kind::Exact(_), Kind::Below(_)) => false,
        }
    }

    /// Whether it matches a target's host.
    pub(crate) fn admits(&self, host: &Host<&str>) -> bool {
        match (&self.0, host) {
            (Kind::Exact(exact), host) => exact == host,
            (Kind::Below(suffix), Host::Domain(name)) => {
                name.strip_suffix(suffix.as_str()).is_some_and(|below| !below.is_empty())
            }
            (Kind::Below(_), Host::Ipv4(_) | Host::Ipv6(_)) => false,
        }
    }
}

/// The lists of hosts that a client was narrowed with.
#[derive(Debug, Clone)]
pub(super) struct HostRules {
    /// A host has to be in each of these lists.
    pub(super) required: Vec<Arc<[HostPattern]>>,
    /// A host must not be in any of these.
    pub(super) denied: Vec<Arc<[HostPattern]>>,
}

impl HostRules {
    pub(super) fn admit(&self, target: &Target) -> Result<(), HttpError> {
        let host = target.url.host();
        let is_in = |list: &Arc<[HostPattern]>| {
            host.as_ref().is_some_and(|host| list.iter().any(|pattern| pattern.admits(host)))
        };
        if self.required.iter().all(is_in) && !self.denied.iter().any(is_in) {
            Ok(())
        } else {
            Err(HttpError::HostNotAllowed { host: target.host.clone() })
        }
    }
}

/// Whether these rules permit some host of a pattern. It compares patterns only: of `*.example.com`
/// without `a.example.com`, others remain.
///
/// # Errors
/// [`InvalidHostPatternError`] for an invalid host pattern.
pub fn may_reach(
    rules: &NetworkRules,
    pattern: &HostPattern,
) -> Result<bool, InvalidHostPatternError> {
    let any = |texts: &[Arc<str>], is: &dyn Fn(&HostPattern) -> bool| {
        texts.iter().try_fold(false, |found, text| Ok(found | is(&text.parse()?)))
    };
    let denied = any(&rules.deny, &|denied| denied.covers(pattern))?;
    let allowed = match &rules.allow {
        None => true,
        Some(allow) => any(allow, &|allowed| allowed.covers(pattern) || pattern.covers(allowed))?,
    };
    Ok(allowed && !denied)
}

impl FromStr for HostPattern {
    type Err = InvalidHostPatternError;

    fn from_str(text: &str) -> Result<Self, InvalidHostPatternError> {
        let invalid = || InvalidHostPatternError { pattern: text.to_owned() };
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        // The parser would accept them as part of a name.
        if name.contains('*') || name.split('.').any(str::is_empty) {
            return Err(invalid());
        }
        match (below, Host::parse(name).map_err(|_| invalid())?) {
            (false, host) => Ok(Self(Kind::Exact(host))),
            (true, Host::Domain(name)) => Ok(Self(Kind::Below(format!(".{name}")))),
            (true, Host::Ipv4(_) | Host::Ipv6(_)) => Err(invalid()),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exact(host) => host.fmt(f),
            Kind::Below(suffix) => write!(f, "*{suffix}"),
        }
    }
}

/// A text that is not a valid host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a valid host; write `api.example.com`, or `*.example.com` for all below that \
     name, without scheme, port and path",
    pattern.escape_debug()
)]
pub struct InvalidHostPatternError {
    /// The text.
    pub pattern: String,
}

fn borrowed(host: &Host) -> Host<&str> {
    match host {
        Host::Domain(name) => Host::Domain(name.as_str()),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(pattern: &str, host: &str) -> bool {
        let host = Host::parse(host).unwrap();
        pattern.parse::<HostPattern>().unwrap().admits(&borrowed(&host))
    }

    #[test]
    fn rules_may_reach_a_pattern_if_they_reach_some_host_of_it() {
        let texts = |texts: &[&str]| texts.iter().map(|text| Arc::from(*text)).collect::<Vec<_>>();
        let may_reach = |allow: Option<&[&str]>, deny: &[&str], pattern: &str| {
            let rules = NetworkRules { allow: allow.map(texts), deny: texts(deny) };
            super::may_reach(&rules, &pattern.parse().unwrap()).unwrap()
        };
        for (allow, deny, pattern, may) in [
            (None, &[][..], "a.test", true),
            (Some(&[][..]), &[], "a.test", false),
            (Some(&["a.test"]), &[], "a.test", true),
            (Some(&["b.test"]), &[], "a.test", false),
            (Some(&["b.test", "*.test"]), &[], "a.test", true),
            (Some(&["*.a.test"]), &[], "a.test", false),
            (Some(&["*.test"]), &[], "*.a.test", true),
            (Some(&["*.a.test"]), &[], "*.test", true),
            (Some(&["x.a.test"]), &[], "*.a.test", true),
            (Some(&["x.b.test"]), &[], "*.a.test", false),
            (None, &["a.test"], "a.test", false),
            (None, &["*.test"], "a.test", false),
            (None, &["*.test"], "*.a.test", false),
            (None, &["x.a.test"], "*.a.test", true),
            (Some(&["a.test"]), &["a.test"], "a.test", false),
            (Some(&["*.test"]), &["192.0.2.7"], "192.0.2.7", false),
        ] {
            assert_eq!(may_reach(allow, deny, pattern), may, "{allow:?} {deny:?} {pattern}");
        }
        let broken = NetworkRules { allow: None, deny: texts(&["https://a.test"]) };
        assert!(super::may_reach(&broken, &"b.test".parse().unwrap()).is_err());
    }

    #[test]
    fn a_pattern_is_a_host_or_all_below_a_name() {
        assert!(admits("api.example.com", "API.example.com"));
        assert!(admits("API.example.com.", "api.example.com"));
        assert!(!admits("example.com", "api.example.com"));
        assert!(admits("*.example.com", "api.example.com"));
        assert!(admits("*.example.com", "a.b.example.com"));
        assert!(!admits("*.example.com", "example.com"));
        assert!(!admits("*.example.com", "evil-example.com"));
        assert!(!admits("*.example.com", "example.com.evil.test"));
        assert!(admits("bücher.example", "xn--bcher-kva.example"));
        assert!(admits("127.0.0.1", "0x7f.1"));
        assert!(admits("[::1]", "[0:0::1]"));
    }

    #[test]
    fn what_names_no_host_is_said() {
        for text in
            ["", "*", "*.", "*.*.com", "a*.com", "https://a.com", "a.com/x", "a.com:1", "*.1.2.3.4"]
        {
            let error = text.parse::<HostPattern>().unwrap_err();
            assert!(error.to_string().contains("without scheme"), "{text}: {error}");
        }
        assert_eq!("*.Example.com".parse::<HostPattern>().unwrap().to_string(), "*.example.com");
    }
}
