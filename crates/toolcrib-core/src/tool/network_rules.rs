//! Rules for the hosts that a call may reach.

use std::sync::Arc;

/// Limits on the hosts that a call may reach over HTTP. They only narrow: a tool still reaches only
/// hosts that it declares, and the client only hosts that it is configured for.
///
/// Hosts are written as in [`Capabilities::network`](crate::Capabilities): `api.example.com`, or
/// `*.example.com` for all subdomains, excluding `example.com` itself. An invalid pattern blocks
/// all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkRules {
    /// Allowed hosts; `None` allows all, an empty list none.
    pub allow: Option<Vec<Arc<str>>>,
    /// Denied hosts; takes precedence over `allow`.
    pub deny: Vec<Arc<str>>,
}

impl NetworkRules {
    /// Whether any host may be reached.
    pub fn is_open(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    /// The rules that allow a host only if both allow it.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.deny.extend(other.deny.iter().cloned());
        self.allow = match (self.allow, &other.allow) {
            (Some(own), Some(others)) => {
                let within =
                    |one: &Arc<str>, all: &[Arc<str>]| all.iter().any(|by| covers(by, one));
                let of_own = own.iter().filter(|host| within(host, others));
                let of_others = others.iter().filter(|host| within(host, &own));
                Some(of_own.chain(of_others).cloned().collect())
            }
            (own, others) => own.or_else(|| others.clone()),
        };
        self
    }
}

/// Whether a pattern has all hosts of another one.
fn covers(pattern: &str, other: &str) -> bool {
    let (pattern, other) = (pattern.to_ascii_lowercase(), other.to_ascii_lowercase());
    pattern == other || pattern.strip_prefix('*').is_some_and(|suffix| other.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_rules_must_allow_a_host() {
        let rules = |allow: &[&str], deny: &[&str]| NetworkRules {
            allow: Some(allow.iter().map(|host| (*host).into()).collect()),
            deny: deny.iter().map(|host| (*host).into()).collect(),
        };
        let wide = rules(&["*.example.com", "a.org"], &["x.example.com"]);
        let other = rules(&["api.EXAMPLE.com", "*.b.example.com", "example.com", "*.org"], &["c"]);
        let expected =
            rules(&["a.org", "api.EXAMPLE.com", "*.b.example.com"], &["x.example.com", "c"]);
        assert_eq!(wide.clone().and(&other), expected);
        assert_eq!(wide.clone().and(&NetworkRules::default()), wide);
        assert_eq!(NetworkRules::default().and(&wide), wide);
    }
}
