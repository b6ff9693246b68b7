//! The challenge in `WWW-Authenticate` (RFC 6750, RFC 9728).

use serde::{Deserialize, Serialize};
use toolcrib_capabilities::http::{HeaderMap, header};

/// A server's demand for a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Challenge {
    /// The required scopes.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    /// The address of the server's metadata.
    #[serde(default)]
    pub(crate) resource_metadata: Option<String>,
    /// Its error, such as `insufficient_scope`.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Its explanation. It is not stored, because each may be another.
    #[serde(skip)]
    pub(crate) description: Option<String>,
}

impl Challenge {
    /// The bearer challenge among the headers of an answer; empty if there is none.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::WWW_AUTHENTICATE).iter();
        values.filter_map(|value| Self::parse(value.to_str().ok()?)).next().unwrap_or_default()
    }

    pub(crate) fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// `None` if it is for other schemes only.
    fn parse(text: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        let mut is_bearer = false;
        for item in items(text) {
            let parameter = match item.split_once([' ', '\t']) {
                Some((scheme, rest)) if !scheme.contains('=') => {
                    is_bearer = scheme.eq_ignore_ascii_case("bearer");
                    rest.trim_start()
                }
                None if !item.contains('=') => {
                    is_bearer = item.eq_ignore_ascii_case("bearer");
                    ""
                }
                _ => item,
            };
            if !is_bearer {
                continue;
            }
            let challenge = found.get_or_insert_default();
            let Some((name, value)) = parameter.split_once('=') else { continue };
            let value = unquoted(value.trim());
            match name.trim().to_ascii_lowercase().as_str() {
                "scope" => challenge.scopes = scopes(&value),
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "error" => challenge.error = Some(value),
                "error_description" => challenge.description = Some(value),
                _ => {}
            }
        }
        found
    }
}

/// The scopes in a text, without those that a request cannot contain.
pub(super) fn scopes(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().filter(|scope| is_scope(scope)).map(str::to_owned).collect()
}

/// Visible ASCII, without `"` and `\` (RFC 6749).
pub(super) fn is_scope(scope: &str) -> bool {
    !scope.is_empty()
        && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

/// The parts between commas that are not in quotes.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = text.split(move |c| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return c == ',' && !is_quoted,
        }
        false
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let text = "Basic realm=\"a, Bearer scope=\\\"no\\\"\", Bearer realm=\"x\", \
                    scope=\"mcp:read  mcp:write\", resource_metadata=\"https://a.example/meta\", \
                    error=insufficient_scope, Digest scope=\"other\"";
        let found = Challenge::parse(text).unwrap();
        assert_eq!(found.scopes, ["mcp:read", "mcp:write"]);
        assert_eq!(found.resource_metadata.as_deref(), Some("https://a.example/meta"));
        assert!(found.is_insufficient_scope());
        assert_eq!(Challenge::parse("Bearer"), Some(Challenge::default()));
        assert_eq!(Challenge::parse("Basic realm=\"Bearer\""), None);
    }

    proptest! {
        #[test]
        fn any_header_can_be_read(text in "\\PC{0,80}") {
            let _ = Challenge::parse(&text);
        }

        #[test]
        fn a_quoted_value_is_read_back(value in "[ -~]{0,40}") {
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let found = Challenge::parse(&format!("Bearer resource_metadata=\"{quoted}\"")).unwrap();
            prop_assert_eq!(found.resource_metadata, Some(value));
        }
    }
}
