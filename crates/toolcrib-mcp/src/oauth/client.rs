//! The identity of this client at an authorization server: assigned, a metadata document, or
//! registered by itself.

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{CancellationToken, Secret};

use super::{
    authorization::Authority,
    discovery::AuthorizationServer,
    error::{OAuthError, plain},
    fetch::parse,
    grant::refusal,
    record::{ClientRegistration, Method, Record, Tokens, now},
};

/// The name that a person reads when asked for consent.
const NAME: &str = "Toolcrib";

/// The client at one authorization server.
pub(super) struct ClientIdentity {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) method: Method,
}

/// The response to a registration, in errors.
const REGISTRATION: &str = "the registration";

#[derive(Deserialize)]
struct Registration {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    /// Seconds since 1970; 0 for never.
    #[serde(default)]
    client_secret_expires_at: Option<u64>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    redirect_uris: Option<Vec<String>>,
}

impl Registration {
    /// The method of a usable registration, which is the requested one unless the server named another.
    fn check(&self, redirect_uri: &str, requested: Method) -> Result<Method, OAuthError> {
        let unusable = |problem: &str| Err(OAuthError::unusable(REGISTRATION, problem));
        if self.client_secret_expires_at.is_some_and(|end| end != 0 && end <= now()) {
            return unusable("its secret has expired");
        }
        if let Some(others) = self.redirect_uris.as_ref().filter(|uris| !uris.is_empty())
            && !others.iter().any(|uri| uri == redirect_uri)
        {
            return Err(OAuthError::Mismatch {
                what: "the redirect address in the registration",
                found: plain(&others.join(", ")),
                expected: redirect_uri.to_owned(),
            });
        }
        let method = match self.token_endpoint_auth_method.as_deref() {
            None => requested,
            Some(named) => {
                let known = Method::ALL.into_iter().find(|method| method.name() == named);
                known.ok_or_else(no_method)?
            }
        };
        if method != Method::None && self.client_secret.is_none() {
            return unusable("it has no secret, which its method requires");
        }
        Ok(method)
    }
}

impl Authority {
    /// The client for a login. A registration is valid at its authorization server only.
    pub(super) async fn client(
        &self,
        server: &AuthorizationServer,
        record: &mut Record,
        redirect_uri: &str,
        cancel: &CancellationToken,
    ) -> Result<ClientIdentity, OAuthError> {
        if let Some(assigned) = self.assigned(server)? {
            return Ok(assigned);
        }
        if let Some(id) = &self.settings.client_id
            && server.client_id_metadata_document_supported == Some(true)
        {
            return Ok(ClientIdentity { id: id.clone(), secret: None, method: Method::None });
        }
        let known = record
            .client
            .take()
            .filter(|client| client.issuer == server.issuer && client.redirect_uri == redirect_uri);
        let registered = match known {
            Some(known) => known,
            None => self.register(server, redirect_uri, cancel).await?,
        };
        let client = ClientIdentity::of(&registered);
        record.client = Some(registered);
        Ok(client)
    }

    /// The client with an assigned id, if one is declared.
    pub(super) fn assigned(
        &self,
        server: &AuthorizationServer,
    ) -> Result<Option<ClientIdentity>, OAuthError> {
        let settings = &self.settings;
        let Some(id) = settings.client_id.clone().filter(|_| !settings.is_document()) else {
            return Ok(None);
        };
        let secret = settings.client_secret.clone();
        let method = match &secret {
            None => Method::None,
            Some(_) => method_with_secret(server)?,
        };
        Ok(Some(ClientIdentity { id, secret, method }))
    }

    /// The client that got these tokens; `None` if it is another one by now.
    pub(super) fn client_of(&self, tokens: &Tokens, record: &Record) -> Option<ClientIdentity> {
        let settings = &self.settings;
        let (id, method) = (tokens.client_id.clone(), tokens.method);
        if settings.issuer.as_ref().is_some_and(|only| *only != tokens.issuer) {
            return None;
        }
        match &settings.client_id {
            Some(own) if *own == id => {
                Some(ClientIdentity { id, secret: settings.client_secret.clone(), method })
            }
            Some(_) if !settings.is_document() => None,
            _ => {
                let registered = record.client.as_ref()?;
                let is_same = registered.issuer == tokens.issuer && registered.client_id == id;
                is_same.then(|| ClientIdentity::of(registered))
            }
        }
    }

    async fn register(
        &self,
        server: &AuthorizationServer,
        redirect_uri: &str,
        cancel: &CancellationToken,
    ) -> Result<ClientRegistration, OAuthError> {
        let Some(endpoint) = &server.registration_endpoint else {
            return Err(OAuthError::Declaration(format!(
                "clients cannot register themselves at {}; register one there with the redirect \
                 address http://127.0.0.1/callback, and write its `client_id` into `auth` of the \
                 server",
                plain(&server.issuer)
            )));
        };
        let endpoint = self.fetch.address(endpoint, "registration endpoint")?;
        let supported = server.token_endpoint_auth_methods_supported.as_deref();
        let is_supported = |method: &Method| match supported {
            Some(supported) => supported.iter().any(|known| known == method.name()),
            None => *method == Method::Basic,
        };
        let method = Method::ALL.into_iter().find(is_supported).ok_or_else(no_method)?;
        let body = json!({
            "client_name": NAME,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method.name(),
            "application_type": "native",
        });
        let response = self.fetch.json(&endpoint, &body, cancel).await?;
        if !response.status.is_success() {
            return Err(refusal(&response));
        }
        let found: Registration = parse(&response.body, REGISTRATION)?;
        let method = found.check(redirect_uri, method)?;
        if let Some(secret) = &found.client_secret {
            (self.settings.on_secret)(secret);
        }
        Ok(ClientRegistration {
            issuer: server.issuer.clone(),
            client_id: found.client_id,
            client_secret: found.client_secret,
            method,
            redirect_uri: redirect_uri.to_owned(),
        })
    }
}

impl ClientIdentity {
    fn of(registered: &ClientRegistration) -> Self {
        Self {
            id: registered.client_id.clone(),
            secret: registered.client_secret.as_deref().map(Secret::new),
            method: registered.method,
        }
    }
}

fn method_with_secret(server: &AuthorizationServer) -> Result<Method, OAuthError> {
    let Some(supported) = &server.token_endpoint_auth_methods_supported else {
        return Ok(Method::Basic);
    };
    let is_supported = |method: &Method| supported.iter().any(|known| known == method.name());
    [Method::Basic, Method::Post].into_iter().find(is_supported).ok_or_else(no_method)
}

fn no_method() -> OAuthError {
    OAuthError::unusable(
        "the authorization server",
        "it supports none of the methods none, client_secret_basic and client_secret_post of its \
         token endpoint",
    )
}
