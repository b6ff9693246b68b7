//! The settings of a resource server.

use std::sync::Arc;

use toolcrib_capabilities::http::{HttpClientBuilder, Url};

use super::{super::Access, checked_url};

/// An algorithm of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenAlgorithm {
    /// RSA, PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// RSA, PSS with SHA-256.
    Ps256,
    /// ECDSA, P-256 with SHA-256.
    Es256,
    /// ECDSA, P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl TokenAlgorithm {
    /// Every algorithm that signatures may have.
    pub const ALL: [Self; 5] = [Self::Rs256, Self::Ps256, Self::Es256, Self::Es384, Self::EdDsa];

    /// The name in a token's header, such as `ES256`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }
}

/// Access by the tokens of an authorization server: signed JWTs for this endpoint (RFC 9068).
#[derive(Clone)]
pub struct ResourceServer {
    pub(crate) resource: String,
    pub(crate) issuer: String,
    pub(crate) audience: Option<String>,
    pub(crate) jwks: Option<String>,
    pub(crate) algorithms: Vec<TokenAlgorithm>,
    pub(crate) scopes: Vec<String>,
    pub(crate) principal: String,
    pub(crate) tenant: Option<String>,
    pub(crate) access: Access,
    pub(crate) client: Option<Arc<HttpClientBuilder>>,
}

impl ResourceServer {
    /// Accepts the tokens of an issuer for a resource: the URL of the endpoint as clients know it,
    /// such as `https://tools.example/mcp`.
    pub fn new(resource: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            issuer: issuer.into(),
            audience: None,
            jwks: None,
            algorithms: TokenAlgorithm::ALL.to_vec(),
            scopes: Vec::new(),
            principal: "sub".to_owned(),
            tenant: None,
            access: Access::new(),
            client: None,
        }
    }

    /// Sets the audience that tokens must have, at every endpoint. Default: the resource, and at
    /// another [endpoint](crate::HttpAccess::endpoint) its URL: the resource, `/` and the name.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Sets the address of the keys. Default: that of the issuer's metadata.
    #[must_use]
    pub fn jwks(mut self, address: impl Into<String>) -> Self {
        self.jwks = Some(address.into());
        self
    }

    /// Sets the accepted algorithms. Default: all of [`TokenAlgorithm`].
    #[must_use]
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = TokenAlgorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Requires a scope of each token. May be called again to add.
    #[must_use]
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Sets the claim with the principal. Default: `sub`.
    #[must_use]
    pub fn principal_claim(mut self, claim: impl Into<String>) -> Self {
        self.principal = claim.into();
        self
    }

    /// Sets the claim with the tenant. Default: no tenant.
    #[must_use]
    pub fn tenant_claim(mut self, claim: impl Into<String>) -> Self {
        self.tenant = Some(claim.into());
        self
    }

    /// Sets the rest of the access: personality, skills, fence. Principal, tenant and claims are
    /// those of the token.
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets the HTTP client for metadata and keys. Default: the public internet.
    #[must_use]
    pub fn client(mut self, client: HttpClientBuilder) -> Self {
        self.client = Some(Arc::new(client));
        self
    }

    /// The access without the parts of a token.
    pub(crate) fn template(&self) -> &Access {
        &self.access
    }

    /// Checks the settings for contradictions.
    ///
    /// # Errors
    /// The problem.
    pub fn check(&self) -> Result<(), String> {
        self.checked().map(drop)
    }

    /// The URL of the resource, if all settings are valid.
    pub(crate) fn checked(&self) -> Result<Url, String> {
        let resource = checked_url(&self.resource, "the resource")?;
        if resource.query().is_some() || resource.fragment().is_some() {
            return Err(format!("the resource `{}` has a query or a fragment", self.resource));
        }
        checked_url(&self.issuer, "the issuer")?;
        if let Some(jwks) = &self.jwks {
            checked_url(jwks, "the address of the keys")?;
        }
        let is_scope = |scope: &String| {
            !scope.is_empty()
                && scope.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
        };
        match self.scopes.iter().find(|scope| !is_scope(scope)) {
            Some(scope) => Err(format!("`{scope}` is not a scope")),
            None if self.algorithms.is_empty() => Err("no algorithm is accepted".to_owned()),
            None => Ok(resource),
        }
    }
}

toolcrib_core::__internal::debug_fields!(ResourceServer { resource, issuer, .. });
