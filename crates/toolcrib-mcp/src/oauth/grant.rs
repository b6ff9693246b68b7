//! Requests to a token endpoint.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use toolcrib_capabilities::http::{HeaderValue, HttpResponse};
use toolcrib_core::CancellationToken;

use super::{
    authorization::Authority,
    challenge,
    client::ClientIdentity,
    discovery::DiscoveryResult,
    error::{OAuthError, plain},
    fetch::parse,
    record::{Method, Tokens, now},
};

/// A longer token cannot be sent in a header.
const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// A longer life is not believed.
const MAX_LIFE_SECONDS: u64 = 366 * 24 * 60 * 60;

#[derive(Deserialize)]
struct Response {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<serde_json::Number>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    scope: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
    #[serde(default)]
    error_description: Option<String>,
}

impl Authority {
    /// Requests the first tokens. `fields` are those of the grant.
    pub(super) async fn first_tokens(
        &self,
        found: &DiscoveryResult,
        client: &ClientIdentity,
        fields: &[(&str, &str)],
        requested: &[String],
        cancel: &CancellationToken,
    ) -> Result<Tokens, OAuthError> {
        let seed = Tokens {
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            life: None,
            scopes: requested.to_vec(),
            issuer: found.server.issuer.clone(),
            resource: found.resource.clone(),
            token_endpoint: found.server.token_endpoint.clone(),
            revocation_endpoint: found.server.revocation_endpoint.clone(),
            client_id: client.id.clone(),
            method: client.method,
        };
        self.tokens(seed, client, fields, cancel).await
    }

    /// Refreshes tokens.
    pub(super) async fn refreshed(
        &self,
        tokens: &Tokens,
        refresh: &str,
        client: &ClientIdentity,
        cancel: &CancellationToken,
    ) -> Result<Tokens, OAuthError> {
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh)];
        self.tokens(tokens.clone(), client, &fields, cancel).await
    }

    /// Tokens of the endpoint of `before`, whose parts remain where the answer does not change them.
    async fn tokens(
        &self,
        before: Tokens,
        client: &ClientIdentity,
        fields: &[(&str, &str)],
        cancel: &CancellationToken,
    ) -> Result<Tokens, OAuthError> {
        let endpoint = self.fetch.address(&before.token_endpoint, "token endpoint")?;
        let mut fields = fields.to_vec();
        fields.push(("resource", &before.resource));
        let authorization = identify(client, &mut fields)?;
        let response = self.fetch.form(&endpoint, &fields, authorization, cancel).await?;
        if !response.status.is_success() {
            return Err(refusal(&response));
        }
        const WHAT: &str = "the answer of the token endpoint";
        let found: Response = parse(&response.body, WHAT)?;
        let unusable = |problem: &str| Err(OAuthError::unusable(WHAT, problem));
        if !found.token_type.eq_ignore_ascii_case("bearer") {
            return unusable("its token is not a bearer token");
        }
        let is_sendable = |token: &str| {
            !token.is_empty()
                && token.len() <= MAX_TOKEN_BYTES
                && token.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !is_sendable(&found.access_token) {
            return unusable("its token cannot be sent in a header");
        }
        (self.settings.on_secret)(&found.access_token);
        if let Some(refresh) = &found.refresh_token {
            (self.settings.on_secret)(refresh);
        }
        let seconds = found.expires_in.and_then(|life| life.as_f64());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float is cast to the nearest integer there is"
        )]
        let life = seconds.map(|seconds| (seconds as u64).min(MAX_LIFE_SECONDS));
        Ok(Tokens {
            access_token: found.access_token,
            refresh_token: found.refresh_token.or(before.refresh_token),
            expires_at: life.map(|life| now().saturating_add(life)),
            life,
            scopes: found.scope.as_deref().map_or(before.scopes, challenge::scopes),
            ..before
        })
    }

    /// Revokes tokens where the authorization server supports it; returns whether it confirmed.
    pub(super) async fn revoke(
        &self,
        tokens: &Tokens,
        client: &ClientIdentity,
        cancel: &CancellationToken,
    ) -> Result<bool, OAuthError> {
        let Some(endpoint) = &tokens.revocation_endpoint else { return Ok(false) };
        let endpoint = self.fetch.address(endpoint, "revocation endpoint")?;
        let refresh = tokens.refresh_token.as_deref();
        let (kind, token) = match refresh {
            Some(refresh) => ("refresh_token", refresh),
            None => ("access_token", &*tokens.access_token),
        };
        let mut fields = vec![("token", token), ("token_type_hint", kind)];
        let authorization = identify(client, &mut fields)?;
        let response = self.fetch.form(&endpoint, &fields, authorization, cancel).await?;
        if response.status.is_success() { Ok(true) } else { Err(refusal(&response)) }
    }
}

/// Adds the client to a form, or returns its header.
fn identify<'a>(
    client: &'a ClientIdentity,
    fields: &mut Vec<(&'a str, &'a str)>,
) -> Result<Option<HeaderValue>, OAuthError> {
    let secret = client.secret.as_ref().map_or("", |secret| secret.expose());
    if client.method != Method::Basic {
        fields.push(("client_id", &client.id));
    }
    match client.method {
        Method::None => Ok(None),
        Method::Post => {
            fields.push(("client_secret", secret));
            Ok(None)
        }
        Method::Basic => {
            let encoded = |text| url::form_urlencoded::byte_serialize(text).collect::<String>();
            let pair = format!("{}:{}", encoded(client.id.as_bytes()), encoded(secret.as_bytes()));
            let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
            let mut value = value.map_err(|_| {
                OAuthError::Declaration("the client's secret cannot be sent".to_owned())
            })?;
            value.set_sensitive(true);
            Ok(Some(value))
        }
    }
}

/// The error in an answer.
pub(super) fn refusal(response: &HttpResponse) -> OAuthError {
    let status = || format!("HTTP {}", response.status.as_u16());
    match serde_json::from_slice::<Refusal>(&response.body) {
        Ok(refusal) => OAuthError::Refused {
            error: plain(&refusal.error),
            description: plain(&refusal.error_description.unwrap_or_default()),
        },
        Err(_) => OAuthError::Refused { error: status(), description: String::new() },
    }
}

// Without secrets.
toolcrib_core::__internal::debug_fields!(ClientIdentity { id, .. });
