//! The gateway as a resource server of OAuth: access tokens of an authorization server, which are
//! verified here and never passed on.

mod jwt;
mod keys;
mod settings;

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderValue, StatusCode, header::WWW_AUTHENTICATE};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use toolcrib_capabilities::http::Url;
use toolcrib_engine::Engine;

pub use self::settings::{ResourceServer, TokenAlgorithm};
use self::{
    jwt::{TokenError, Unverified, expiry},
    keys::Keys,
};
use super::{
    Access,
    endpoints::{Endpoint, Endpoints},
};
use crate::wire::reply::Refusal;

/// The path of the metadata (RFC 9728), before the path of the resource.
const METADATA: &str = "/.well-known/oauth-protected-resource";
/// A claim that names an identity is not longer.
const MAX_NAME_BYTES: usize = 256;

/// Verifies tokens.
pub(crate) struct Verifier {
    settings: ResourceServer,
    keys: Keys,
    /// The URL of the metadata.
    metadata: String,
    /// The path of the resource.
    path: String,
}

/// Verifies tokens for one endpoint. Each endpoint is a separate resource: the URL of the declared
/// one, and its name.
pub(crate) struct EndpointVerifier<'a> {
    verifier: &'a Verifier,
    endpoint: Option<&'a Endpoint>,
}

/// The claims that say who the caller is, through which client, and for what.
const OF_RIGHTS: [&str; 7] = ["iss", "sub", "aud", "client_id", "azp", "scope", "scp"];

/// The rights of a verified token, by which its sessions are kept: a digest of the claims that
/// decide on them. Issuers add others, which differ between two tokens of the same rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RightsDigest([u8; 32]);

impl RightsDigest {
    /// Returns it as a text.
    pub(crate) fn name(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// `more` are the names of claims beside [`OF_RIGHTS`]. Absent ones are part of the digest too:
    /// if roles depend on another claim after a reload, no earlier session is continued.
    fn of<'a>(claims: &Map<String, Value>, more: impl Iterator<Item = &'a str>) -> Self {
        let names = OF_RIGHTS.into_iter().chain(more);
        let rights: BTreeMap<_, _> = names.map(|name| (name, claims.get(name))).collect();
        Self(Sha256::digest(json!(rights).to_string()).into())
    }
}

impl Verifier {
    pub(crate) fn new(settings: ResourceServer) -> Result<Self, String> {
        let resource = settings.checked()?;
        let (origin, path) = (resource.origin().ascii_serialization(), resource.path());
        let path = path.trim_end_matches('/').to_owned();
        let metadata = format!("{origin}{METADATA}{path}");
        Ok(Self { keys: Keys::new(&settings)?, metadata, path, settings })
    }

    /// The same for one endpoint; `None` is `/mcp`.
    pub(crate) fn at<'a>(&'a self, endpoint: Option<&'a Endpoint>) -> EndpointVerifier<'a> {
        EndpointVerifier { verifier: self, endpoint }
    }

    /// The metadata, if a path asks for it.
    pub(crate) fn metadata(&self, path: &str, endpoints: &Endpoints) -> Option<String> {
        let rest = path.strip_prefix(METADATA)?;
        let endpoint = match rest.is_empty() || rest == self.path {
            true => None,
            false => Some(endpoints.named(rest.strip_prefix(&self.path)?.strip_prefix('/')?)?),
        };
        let metadata = json!({
            "resource": self.at(endpoint.as_ref()).resource(),
            "authorization_servers": [self.settings.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": self.settings.scopes,
        });
        Some(metadata.to_string())
    }
}

impl EndpointVerifier<'_> {
    fn resource(&self) -> Cow<'_, str> {
        let resource = &*self.verifier.settings.resource;
        match self.endpoint {
            None => resource.into(),
            Some(Endpoint { name, .. }) => {
                format!("{}/{name}", resource.trim_end_matches('/')).into()
            }
        }
    }

    /// The challenge of a refusal: where the metadata of the endpoint is.
    fn challenge(&self) -> String {
        let name = self.endpoint.map(|endpoint| format!("/{}", endpoint.name)).unwrap_or_default();
        format!("Bearer resource_metadata=\"{}{name}\"", self.verifier.metadata)
    }

    /// The refusal of a request without a valid token. `cause` is for the operator.
    pub(crate) fn unauthorized(&self, cause: Option<&str>) -> Refusal {
        let message = "a valid token is needed: `Authorization: Bearer TOKEN`";
        let mut challenge = self.challenge();
        self.add_scopes(&mut challenge);
        if cause.is_some() {
            challenge.push_str(", error=\"invalid_token\"");
        }
        let refusal = refused(StatusCode::UNAUTHORIZED, message, &challenge);
        match cause {
            Some(cause) => refusal.cause(cause),
            None => refusal,
        }
    }

    /// The access of a token, and the moment from which it is refused. The engine has the roles that
    /// depend on its claims.
    pub(crate) async fn access(
        &self,
        token: &str,
        engine: &Engine,
    ) -> Result<(RightsDigest, Access, Option<Instant>), Refusal> {
        let settings = &self.verifier.settings;
        let verified = match Unverified::parse(token, &settings.algorithms) {
            Ok(unverified) => self.verified(&unverified).await,
            Err(invalid) => Err(invalid),
        };
        let claims = verified.map_err(|invalid| self.unauthorized(Some(&invalid.0)))?;
        let scopes = scopes(&claims);
        let missing = |scope: &&String| !scopes.iter().any(|granted| granted == *scope);
        if settings.scopes.iter().any(|scope| missing(&scope)) {
            let mut challenge = format!("{}, error=\"insufficient_scope\"", self.challenge());
            self.add_scopes(&mut challenge);
            let message = "the token lacks a scope";
            return Err(refused(StatusCode::FORBIDDEN, message, &challenge));
        }
        let expires = expiry(&claims);
        let (rights, access) =
            self.identity(claims, engine).map_err(|invalid| self.unauthorized(Some(&invalid.0)))?;
        Ok((rights, access, expires))
    }

    async fn verified(&self, token: &Unverified<'_>) -> Result<Map<String, Value>, TokenError> {
        let Verifier { settings, keys, .. } = self.verifier;
        let keys = keys.of(token.key_id()).await?;
        let audience = settings.audience.as_deref().map_or_else(|| self.resource(), Cow::Borrowed);
        token.verify(&keys, &settings.issuer, &audience)
    }

    fn identity(
        &self,
        claims: Map<String, Value>,
        engine: &Engine,
    ) -> Result<(RightsDigest, Access), TokenError> {
        let settings = &self.verifier.settings;
        let name = |claim: &str| -> Result<Arc<str>, TokenError> {
            let value = claims.get(claim).and_then(Value::as_str).map(str::trim);
            match value {
                Some(value) if !value.is_empty() && value.len() <= MAX_NAME_BYTES => {
                    Ok(value.into())
                }
                _ => Err(TokenError(format!("it has no usable claim `{claim}`"))),
            }
        };
        let principal = name(&settings.principal)?;
        let tenant = settings.tenant.as_deref().map(name).transpose()?;
        let mut access = settings.access.clone();
        let own = [Some(&settings.principal), settings.tenant.as_ref()].into_iter().flatten();
        let own = own.map(String::as_str).chain(engine.role_claims().map(|claim| &**claim));
        let rights = RightsDigest::of(&claims, own);
        access.principal = Some(principal);
        access.tenant = tenant;
        access.claims = claims;
        Ok((rights, access))
    }

    fn add_scopes(&self, challenge: &mut String) {
        let scopes = &self.verifier.settings.scopes;
        if !scopes.is_empty() {
            challenge.push_str(&format!(", scope=\"{}\"", scopes.join(" ")));
        }
    }
}

/// The granted scopes: `scope` as a text, or `scp` as a text or a list.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    let words = |value: &Value| -> Vec<String> {
        match value {
            Value::String(text) => text.split_ascii_whitespace().map(str::to_owned).collect(),
            Value::Array(list) => {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    };
    ["scope", "scp"].iter().filter_map(|claim| claims.get(*claim)).flat_map(words).collect()
}

fn refused(status: StatusCode, message: &str, challenge: &str) -> Refusal {
    let refusal = Refusal::new(status, message);
    match HeaderValue::from_str(challenge) {
        Ok(challenge) => refusal.header((WWW_AUTHENTICATE, challenge)),
        Err(_) => refusal,
    }
}

/// A URL that may be fetched or published: `https`, or `http` on this machine.
fn checked_url(text: &str, what: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("{what} `{text}` is not a URL: {error}"))?;
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_here => Ok(url),
        _ => Err(format!("{what} `{text}` must use https")),
    }
}
