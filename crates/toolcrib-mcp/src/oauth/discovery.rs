//! Finds the authorization server of a server (RFC 9728), reads its metadata (RFC 8414, OpenID
//! Connect Discovery), and verifies that both are what was asked for.

use serde::Deserialize;
use toolcrib_capabilities::http::Url;
use toolcrib_core::CancellationToken;

use super::{
    challenge::{Challenge, is_scope},
    error::{OAuthError, plain},
    fetch::{Fetch, shown},
};

/// A server's metadata.
#[derive(Deserialize)]
struct ProtectedResource {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Option<Vec<String>>,
}

/// An authorization server's metadata.
#[derive(Clone, Deserialize)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    #[serde(default)]
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: String,
    #[serde(default)]
    pub(super) registration_endpoint: Option<String>,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) grant_types_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: Option<bool>,
}

/// The authorization server of a protected resource.
pub(super) struct DiscoveryResult {
    /// The identifier of the server, exactly as it is published.
    pub(super) resource: String,
    pub(super) scopes: Option<Vec<String>>,
    pub(super) server: AuthorizationServer,
}

/// Finds the authorization server for a URL. `only` is the only one that may be used.
pub(super) async fn discover(
    fetch: &Fetch,
    url: &Url,
    challenge: &Challenge,
    only: Option<&str>,
    cancel: &CancellationToken,
) -> Result<DiscoveryResult, OAuthError> {
    let resource = match protected_resource(fetch, url, challenge, cancel).await? {
        Some(resource) => resource,
        // Servers of the first version with authorization publish only the other document, at
        // their own origin.
        None => ProtectedResource {
            resource: url.as_str().to_owned(),
            authorization_servers: vec![url.origin().ascii_serialization()],
            scopes_supported: None,
        },
    };
    if !is_resource_of(&resource.resource, url) {
        return Err(OAuthError::Mismatch {
            what: "the resource in the server's metadata",
            found: plain(&resource.resource),
            expected: url.to_string(),
        });
    }
    let offered = resource.authorization_servers;
    let issuer = match only {
        Some(only) => {
            offered.iter().find(|offered| *offered == only).ok_or_else(|| OAuthError::Mismatch {
                what: "the authorization server in the server's metadata",
                found: plain(&offered.join(", ")),
                expected: only.to_owned(),
            })?
        }
        None => offered.first().ok_or_else(|| {
            OAuthError::unusable("the server's metadata", "it names no authorization server")
        })?,
    };
    let server = authorization_server(fetch, issuer, cancel).await?;
    let scopes = resource.scopes_supported.map(valid);
    Ok(DiscoveryResult { resource: resource.resource, scopes, server })
}

async fn protected_resource(
    fetch: &Fetch,
    url: &Url,
    challenge: &Challenge,
    cancel: &CancellationToken,
) -> Result<Option<ProtectedResource>, OAuthError> {
    if let Some(named) = &challenge.resource_metadata {
        let named = fetch.address(named, "address of the server's metadata")?;
        let found = fetch.document(&named, cancel).await?;
        return found.map(Some).ok_or_else(|| {
            let what = format!("the server's metadata at {}", shown(&named));
            OAuthError::unusable(what, "there is no such document")
        });
    }
    const NAME: &str = "/.well-known/oauth-protected-resource";
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![format!("{NAME}{path}")];
    if !path.is_empty() {
        paths.push(NAME.to_owned());
    }
    first(fetch, url, &paths, cancel).await
}

async fn authorization_server(
    fetch: &Fetch,
    issuer: &str,
    cancel: &CancellationToken,
) -> Result<AuthorizationServer, OAuthError> {
    const OAUTH: &str = "/.well-known/oauth-authorization-server";
    const OPENID: &str = "/.well-known/openid-configuration";
    let url = fetch.address(issuer, "authorization server")?;
    if url.query().is_some() {
        let what = format!("the authorization server `{}`", plain(issuer));
        return Err(OAuthError::unusable(what, "its identifier has a query"));
    }
    let path = url.path().trim_end_matches('/');
    let mut paths = vec![format!("{OAUTH}{path}"), format!("{OPENID}{path}")];
    if !path.is_empty() {
        paths.push(format!("{path}{OPENID}"));
    }
    let found: Option<AuthorizationServer> = first(fetch, &url, &paths, cancel).await?;
    let found = found.ok_or_else(|| {
        let what = format!("the authorization server {}", shown(&url));
        OAuthError::unusable(what, "it publishes no metadata")
    })?;
    // Compared as text: two spellings are two issuers.
    if found.issuer != issuer {
        return Err(OAuthError::Mismatch {
            what: "the issuer in the authorization server's metadata",
            found: plain(&found.issuer),
            expected: issuer.to_owned(),
        });
    }
    Ok(found)
}

/// The first document that exists, of these paths of an origin.
async fn first<T: serde::de::DeserializeOwned>(
    fetch: &Fetch,
    base: &Url,
    paths: &[String],
    cancel: &CancellationToken,
) -> Result<Option<T>, OAuthError> {
    for path in paths {
        let mut url = base.clone();
        url.set_path(path);
        url.set_query(None);
        url.set_fragment(None);
        if let Some(found) = fetch.document(&url, cancel).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether a server at this URL may be the resource: the same origin, and the same path or one below
/// it.
fn is_resource_of(resource: &str, url: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let own = resource.path().trim_end_matches('/');
    let is_below =
        url.path().strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == url.origin()
        && is_below
        && resource.fragment().is_none()
        && resource.query().is_none_or(|query| Some(query) == url.query())
}

fn valid(scopes: Vec<String>) -> Vec<String> {
    scopes.into_iter().filter(|scope| is_scope(scope)).collect()
}

impl AuthorizationServer {
    pub(super) fn supports_grant(&self, grant: &str) -> bool {
        self.grant_types_supported
            .as_ref()
            .is_none_or(|grants| grants.iter().any(|known| known == grant))
    }

    pub(super) fn offers_scope(&self, scope: &str) -> bool {
        self.scopes_supported.iter().flatten().any(|known| known == scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_the_server_or_above_it() {
        let url = Url::parse("https://a.example/team/mcp").unwrap();
        for resource in
            ["https://a.example", "https://a.example/team", "https://a.example/team/mcp/"]
        {
            assert!(is_resource_of(resource, &url), "{resource}");
        }
        for resource in [
            "https://b.example/team/mcp",
            "http://a.example/team/mcp",
            "https://a.example:8443/team/mcp",
            "https://a.example/te",
            "https://a.example/team/mcp/below",
            "https://a.example/team/mcp#part",
            "mcp",
        ] {
            assert!(!is_resource_of(resource, &url), "{resource}");
        }
    }
}
