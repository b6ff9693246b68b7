//! The token of one identity at one server, for its connections.

use std::{
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use toolcrib_core::{CancellationToken, Secret};

use super::{
    authorization::{Authority, HeldLock},
    challenge::Challenge,
    error::{OAuthError, plain},
    record::{Record, Tokens},
};

/// After a failure, the next attempt is this much later: many calls may wait for one token.
const REST: Duration = Duration::from_secs(5);

/// How often renewed tokens are stored again after a failure, and for how long: the lock of the record may be
/// one that expires.
const STORE_EVERY: Duration = Duration::from_secs(2);
const STORE_WITHIN: Duration = Duration::from_secs(45);

/// The identity that a login belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) principal: Option<Arc<str>>,
}

/// Gives connections their token, and renews it, once for all that wait.
pub(crate) struct Access {
    authority: Arc<Authority>,
    owner: Owner,
    held: Mutex<TokenState>,
    renewing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct TokenState {
    token: Token,
    /// Renewed tokens that could not be stored, and the access token that they replace: the stored refresh token
    /// is not valid any more.
    unsaved: Option<(String, Record)>,
    failed: Option<(Instant, Arc<OAuthError>)>,
}

#[derive(Default, Clone)]
enum Token {
    /// Not read yet.
    #[default]
    Unknown,
    /// There is none: the server may not need one.
    None,
    Some(Arc<Tokens>),
}

impl Access {
    pub(super) fn new(authority: Arc<Authority>, owner: Owner) -> Arc<Self> {
        Arc::new(Self {
            authority,
            owner,
            held: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
        })
    }

    /// The token for a request, renewed if it is about to expire; `None` to send none.
    pub(crate) async fn token(self: &Arc<Self>) -> Result<Option<Secret>, Arc<OAuthError>> {
        let held = self.held.lock().token.clone();
        match held {
            Token::Some(tokens) if !tokens.is_over() => Ok(Some(secret(&tokens))),
            Token::None => Ok(None),
            _ => self.renewed(None, None).await,
        }
    }

    /// The server has refused a request with this token, or without one. Returns another token, if
    /// there is one.
    pub(crate) async fn refused(
        self: &Arc<Self>,
        used: Option<&Secret>,
        challenge: &Challenge,
    ) -> Result<Option<Secret>, Arc<OAuthError>> {
        self.renewed(used.cloned(), Some(challenge.clone())).await
    }

    /// Stores what the server has demanded with its refusal of a request with this token, or without
    /// one, for the next login. Returns the error, which names what to do.
    pub(crate) async fn demand(
        &self,
        used: Option<&Secret>,
        mut challenge: Challenge,
    ) -> Arc<OAuthError> {
        let command = self.command(&challenge);
        let said = [challenge.error.clone(), challenge.description.take()];
        let audience = match self.note(challenge).await {
            Ok(audience) => audience,
            Err(error) => return Arc::new(error),
        };
        let Some(used) = used else { return Arc::new(OAuthError::LoginRequired { command }) };
        let next = match self.authority.settings.client_credentials {
            true => "check the `scopes` of its `auth`, and that the server accepts this audience"
                .to_owned(),
            false => format!("check that the server accepts this audience, or run `{command}`"),
        };
        // A server may quote the token.
        let quoted = |text: Option<String>| {
            plain(&text.unwrap_or_default().replace(used.expose(), "(token)"))
        };
        let [error, description] = said.map(quoted);
        Arc::new(OAuthError::TokenRefused { audience: plain(&audience), error, description, next })
    }

    /// The command by which a person logs in.
    fn command(&self, challenge: &Challenge) -> String {
        let mut command = format!("toolcrib mcp login {}", self.authority.server);
        let mut option = |name: &str, value: &str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/@".contains(c);
            let _ = match value.chars().all(is_plain) {
                true => write!(command, " {name} {value}"),
                false => write!(command, " {name} '{}'", value.replace('\'', "'\\''")),
            };
        };
        if let Some(principal) = &self.owner.principal {
            option("--as", principal);
        }
        if let Some(tenant) = &self.owner.tenant {
            option("--tenant", tenant);
        }
        if challenge.is_insufficient_scope() {
            for scope in &challenge.scopes {
                option("--scope", scope);
            }
        }
        command.push_str(&self.authority.settings.command_flags);
        command
    }

    /// Stores what the server has demanded, for the next login. Returns the resource of the tokens.
    async fn note(&self, challenge: Challenge) -> Result<String, OAuthError> {
        let known = self.authority.read(&self.owner).await?;
        let tokens = known.as_ref().and_then(|record| record.tokens.as_ref());
        let audience = tokens.map_or(self.authority.url.as_str(), |tokens| &*tokens.resource);
        let audience = audience.to_owned();
        if known.as_ref().and_then(|record| record.challenge.as_ref()) == Some(&challenge) {
            return Ok(audience);
        }
        let authority = &self.authority;
        authority.update(&self.owner, |record| record.challenge = Some(challenge)).await?;
        Ok(audience)
    }

    /// Another token than the refused one, or one that is not over. It continues if the caller is
    /// dropped: a refresh token is valid once.
    async fn renewed(
        self: &Arc<Self>,
        refused: Option<Secret>,
        challenge: Option<Challenge>,
    ) -> Result<Option<Secret>, Arc<OAuthError>> {
        let this = Arc::clone(self);
        let renewing = tokio::spawn(async move { this.renew(refused, challenge).await });
        let renewed = renewing
            .await
            .map_err(|error| Arc::new(OAuthError::Store(format!("renewed: {error}"))))?;
        Ok(renewed?.map(|tokens| secret(&tokens)))
    }

    async fn renew(
        self: &Arc<Self>,
        refused: Option<Secret>,
        challenge: Option<Challenge>,
    ) -> Result<Option<Arc<Tokens>>, Arc<OAuthError>> {
        let _one = self.renewing.lock().await;
        let is_new = |tokens: &Tokens| {
            !tokens.is_over()
                && refused.as_ref().is_none_or(|refused| refused.expose() != tokens.access_token)
        };
        {
            let held = self.held.lock();
            if let Token::Some(tokens) = &held.token
                && is_new(tokens)
            {
                return Ok(Some(Arc::clone(tokens)));
            }
            if let Some((at, error)) = &held.failed
                && at.elapsed() < REST
            {
                return Err(Arc::clone(error));
            }
        }
        let renewed = self.stored_or_fresh(is_new, challenge.as_ref()).await;
        let mut held = self.held.lock();
        match renewed {
            Ok(tokens) => {
                let tokens = tokens.map(Arc::new);
                held.token = tokens.clone().map_or(Token::None, Token::Some);
                held.failed = None;
                Ok(tokens)
            }
            Err(error) => {
                let error = Arc::new(error);
                held.failed = Some((Instant::now(), Arc::clone(&error)));
                Err(error)
            }
        }
    }

    /// The stored tokens, if another process has renewed them, else fresh ones.
    async fn stored_or_fresh(
        self: &Arc<Self>,
        is_new: impl Fn(&Tokens) -> bool,
        challenge: Option<&Challenge>,
    ) -> Result<Option<Tokens>, OAuthError> {
        let authority = &self.authority;
        if authority.read(&self.owner).await?.is_none() && !authority.settings.client_credentials {
            return Ok(None);
        }
        // Held until the fresh tokens are stored: other processes wait, and then read them.
        let lock = authority.lock(&self.owner).await?;
        let mut record = authority.read(&self.owner).await?.unwrap_or_else(|| authority.empty());
        let replaced = record.tokens.as_ref().map(|tokens| tokens.access_token.clone());
        let unsaved = self.held.lock().unsaved.clone();
        if let Some((_, unsaved)) = unsaved.filter(|(of, _)| Some(of) == replaced.as_ref()) {
            authority.write(&self.owner, &unsaved).await?;
            record = unsaved;
        }
        self.held.lock().unsaved = None;
        if let Some(tokens) = record.tokens.as_ref().filter(|tokens| is_new(tokens)) {
            authority.learn(&record);
            return Ok(Some(tokens.clone()));
        }
        let never = CancellationToken::new();
        if authority.settings.client_credentials {
            let challenge = match challenge {
                Some(challenge) => challenge,
                // Before the server has refused a request, it may not need a token.
                None if record.tokens.is_none() => return Ok(None),
                None => &Challenge::default(),
            };
            authority.log_in_as_itself(&mut record, challenge, &never).await?;
        } else if !self.refresh(&mut record, &never).await? {
            return Ok(None);
        }
        record.challenge = None;
        if let Err(error) = authority.write(&self.owner, &record).await {
            let Some(replaced) = replaced else { return Err(error) };
            self.store_later(lock, replaced, record.clone());
        }
        Ok(record.tokens)
    }

    /// Stores tokens that could not be stored when they were renewed. Other processes wait for the lock meanwhile,
    /// and do not send the refresh token that is not valid any more.
    fn store_later(self: &Arc<Self>, lock: HeldLock, replaced: String, record: Record) {
        self.held.lock().unsaved = Some((replaced, record.clone()));
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let stored = async {
                loop {
                    sleep(STORE_EVERY).await;
                    if this.authority.write(&this.owner, &record).await.is_ok() {
                        break;
                    }
                }
            };
            if timeout(STORE_WITHIN, stored).await.is_ok() {
                this.held.lock().unsaved = None;
            }
            drop(lock);
        });
    }

    /// Refreshes the tokens of a record; `false` if that is not possible.
    async fn refresh(
        &self,
        record: &mut Record,
        cancel: &CancellationToken,
    ) -> Result<bool, OAuthError> {
        let Some(tokens) = &record.tokens else { return Ok(false) };
        let Some(refresh) = tokens.refresh_token.clone() else { return Ok(false) };
        let Some(client) = self.authority.client_of(tokens, record) else { return Ok(false) };
        self.authority.learn(record);
        let refreshed = self.authority.refreshed(tokens, &refresh, &client, cancel).await;
        match refreshed {
            Ok(fresh) => {
                record.tokens = Some(fresh);
                Ok(true)
            }
            // Expired, used or revoked: it is not sent again.
            Err(OAuthError::Refused { .. }) => {
                let stored = self.authority.read(&self.owner).await?;
                let sent = Some(&refresh);
                let is_sent = |record: &Record| {
                    record.tokens.as_ref().and_then(|tokens| tokens.refresh_token.as_ref()) == sent
                };
                // Another process has renewed them, or a person has logged in.
                if let Some(stored) = stored.filter(|stored| !is_sent(stored)) {
                    *record = stored;
                    return Ok(record.tokens.is_some());
                }
                if let Some(tokens) = &mut record.tokens {
                    tokens.refresh_token = None;
                }
                self.authority.write(&self.owner, record).await?;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn secret(tokens: &Tokens) -> Secret {
    Secret::new(tokens.access_token.as_str())
}
