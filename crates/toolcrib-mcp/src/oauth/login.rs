//! A login: a person consents in a browser, and the browser brings back a code.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use toolcrib_capabilities::http::Url;
use toolcrib_core::CancellationToken;

use super::{
    authorization::Authority,
    challenge::Challenge,
    client::ClientIdentity,
    discovery::{AuthorizationServer, DiscoveryResult, discover},
    error::{OAuthError, plain},
    loopback::Loopback,
    record::{Record, Tokens},
};

/// How long a person may take.
const CONSENT_WITHIN: Duration = Duration::from_secs(10 * 60);

const OFFLINE: &str = "offline_access";

/// The secrets of one login.
struct Secrets {
    state: String,
    verifier: String,
}

impl Authority {
    /// Logs in. `record` receives the tokens and the registration of this client.
    pub(super) async fn log_in(
        &self,
        record: &mut Record,
        challenge: &Challenge,
        more: &[String],
        show: impl FnOnce(&str),
        cancel: &CancellationToken,
    ) -> Result<(), OAuthError> {
        let only = self.settings.issuer.as_deref();
        let found = discover(&self.fetch, &self.url, challenge, only, cancel).await?;
        self.fetch.address(&found.server.token_endpoint, "token endpoint")?;
        let granted = record.tokens.as_ref().filter(|old| old.issuer == found.server.issuer);
        let scopes = self.scopes(&found, challenge, granted, more);
        if self.settings.client_credentials {
            record.tokens = Some(self.as_itself(&found, &scopes, cancel).await?);
            return Ok(());
        }
        let endpoint = self.authorization_endpoint(&found.server)?;
        let loopback = self.listen(record, &found.server).await?;
        let redirect = loopback.redirect_uri();
        let client = self.client(&found.server, record, &redirect, cancel).await?;
        let secrets = Secrets { state: random()?, verifier: random()? };
        show(address(endpoint, &found, &client, &redirect, &scopes, &secrets).as_str());
        let answer = loopback.answer(|query| taken(query, &secrets.state, &found.server));
        let code = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(OAuthError::Cancelled),
            answer = timeout(CONSENT_WITHIN, answer) => {
                answer.map_err(|_| OAuthError::TimedOut(CONSENT_WITHIN))??
            }
        };
        (self.settings.on_secret)(&code);
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &code),
            ("redirect_uri", &redirect),
            ("code_verifier", &secrets.verifier),
        ];
        let tokens = self.first_tokens(&found, &client, &fields, &scopes, cancel).await?;
        record.tokens = Some(tokens);
        Ok(())
    }

    /// Gets tokens without a person.
    pub(super) async fn log_in_as_itself(
        &self,
        record: &mut Record,
        challenge: &Challenge,
        cancel: &CancellationToken,
    ) -> Result<(), OAuthError> {
        self.log_in(record, challenge, &[], |_| {}, cancel).await
    }

    async fn as_itself(
        &self,
        found: &DiscoveryResult,
        scopes: &[String],
        cancel: &CancellationToken,
    ) -> Result<Tokens, OAuthError> {
        let client = self.assigned(&found.server)?.ok_or_else(|| {
            OAuthError::Declaration("client credentials need a `client_id`".to_owned())
        })?;
        let scope = scopes.join(" ");
        let mut fields = vec![("grant_type", "client_credentials")];
        if !scopes.is_empty() {
            fields.push(("scope", &*scope));
        }
        self.first_tokens(found, &client, &fields, scopes, cancel).await
    }

    /// The scopes to request: the declared ones, or those of the server; and those that the server
    /// has demanded, that a login before was granted, and that the caller names.
    fn scopes(
        &self,
        found: &DiscoveryResult,
        challenge: &Challenge,
        granted: Option<&Tokens>,
        more: &[String],
    ) -> Vec<String> {
        let demanded = challenge.scopes.iter();
        let published = found.scopes.iter().flatten();
        let declared = &self.settings.scopes;
        let own: Vec<&String> = match (declared.is_empty(), challenge.scopes.is_empty()) {
            (false, _) => declared.iter().chain(demanded).collect(),
            (true, false) => demanded.collect(),
            (true, true) => published.collect(),
        };
        let before = granted.into_iter().flat_map(|tokens| &tokens.scopes);
        let mut scopes: Vec<String> = Vec::new();
        let offline = OFFLINE.to_owned();
        // With it, a login lasts longer than its first token.
        let lasting = (found.server.offers_scope(OFFLINE)
            && !self.settings.client_credentials
            && found.server.supports_grant("refresh_token"))
        .then_some(&offline);
        for scope in before.chain(own).chain(more).chain(lasting) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        scopes
    }

    fn authorization_endpoint(&self, server: &AuthorizationServer) -> Result<Url, OAuthError> {
        let unusable = |problem| Err(OAuthError::unusable("the authorization server", problem));
        let Some(endpoint) = &server.authorization_endpoint else {
            return unusable("it has no authorization endpoint");
        };
        let methods = server.code_challenge_methods_supported.iter().flatten();
        if !methods.into_iter().any(|method| method == "S256") {
            return unusable("it does not declare the code challenge method S256 (PKCE)");
        }
        self.fetch.address(endpoint, "authorization endpoint")
    }

    /// Listens on the declared port, else on the one that this client has registered, if it is free.
    async fn listen(
        &self,
        record: &Record,
        server: &AuthorizationServer,
    ) -> Result<Loopback, OAuthError> {
        if self.settings.redirect_port != 0 {
            return Loopback::bind(self.settings.redirect_port).await;
        }
        let registered = record.client.as_ref().filter(|client| client.issuer == server.issuer);
        let port = registered.and_then(|client| Url::parse(&client.redirect_uri).ok()?.port());
        if let Some(port) = port
            && let Ok(listening) = Loopback::bind(port).await
        {
            return Ok(listening);
        }
        Loopback::bind(0).await
    }
}

/// The address that a person opens.
fn address(
    mut endpoint: Url,
    found: &DiscoveryResult,
    client: &ClientIdentity,
    redirect: &str,
    scopes: &[String],
    secrets: &Secrets,
) -> Url {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&secrets.verifier));
    {
        let mut query = endpoint.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect)
            .append_pair("state", &secrets.state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &found.resource);
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
    }
    endpoint
}

/// The code in a redirect. `None` if its state is not that of this login: anyone can open this
/// address, and an answer of another login must not end this one.
fn taken(
    query: &str,
    state: &str,
    server: &AuthorizationServer,
) -> Option<Result<String, OAuthError>> {
    let pairs: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    let all = |name: &'static str| {
        pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value)
    };
    let single = |name: &'static str| {
        let mut values = all(name);
        values.next().filter(|_| values.next().is_none())
    };
    if single("state").is_none_or(|sent| **sent != *state) {
        return None;
    }
    const WHAT: &str = "the redirect";
    let unusable = |problem: &str| Some(Err(OAuthError::unusable(WHAT, problem)));
    match (all("iss").next(), single("iss")) {
        (None, _) if server.authorization_response_iss_parameter_supported == Some(true) => {
            return unusable(
                "it does not name its issuer, although the server declares that it does",
            );
        }
        (None, _) => {}
        (Some(_), Some(issuer)) if **issuer == *server.issuer => {}
        (Some(issuer), _) => {
            return Some(Err(OAuthError::Mismatch {
                what: "the issuer in the redirect",
                found: plain(issuer),
                expected: server.issuer.clone(),
            }));
        }
    }
    if let Some(error) = all("error").next() {
        return Some(Err(OAuthError::Refused {
            error: plain(error),
            description: all("error_description")
                .next()
                .map(|text| plain(text))
                .unwrap_or_default(),
        }));
    }
    match single("code") {
        Some(code) => Some(Ok(code.clone().into_owned())),
        None => unusable("it has no code"),
    }
}

/// 256 random bits.
fn random() -> Result<String, OAuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| OAuthError::Store(format!("made: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
