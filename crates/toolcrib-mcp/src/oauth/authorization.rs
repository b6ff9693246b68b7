use std::{
    collections::HashMap,
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    task::spawn_blocking,
    time::{Instant, sleep},
};
use toolcrib_capabilities::http::{HttpClient, Url};
use toolcrib_core::{BoxFuture, CancellationToken, Digest};

use super::{
    access::{Access, Owner},
    challenge::is_scope,
    error::{OAuthError, plain},
    fetch::Fetch,
    record::Record,
    settings::OAuth,
    store::{TokenLock, TokenStore},
};

/// Lists the server's tools, so that it states which scopes it demands.
pub(crate) type ListTools = Box<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// How long another process may have a record, and how often it is tried: longer than its requests
/// take.
const LOCK_WITHIN: Duration = Duration::from_secs(60);
const LOCK_EVERY: Duration = Duration::from_secs(1);

/// The first interval, which doubles with each attempt.
const LOCK_FIRST: Duration = Duration::from_millis(50);

/// The lock of a record, if it was free. Its end may block.
pub(super) struct HeldLock(Option<TokenLock>);

impl Drop for HeldLock {
    fn drop(&mut self) {
        let lock = self.0.take();
        if lock.is_some()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn_blocking(move || drop(lock));
        }
    }
}

/// Everything that a server's client needs for tokens, of all identities.
pub(crate) struct Authority {
    pub(super) server: Arc<str>,
    pub(super) url: Url,
    pub(super) settings: OAuth,
    pub(super) fetch: Fetch,
    accesses: Mutex<HashMap<Owner, Weak<Access>>>,
}

impl Authority {
    pub(crate) fn new(
        server: &str,
        url: Url,
        settings: OAuth,
        http: HttpClient,
        is_local: bool,
    ) -> Arc<Self> {
        if let Some(secret) = &settings.client_secret {
            (settings.on_secret)(secret.expose());
        }
        Arc::new(Self {
            server: server.into(),
            url,
            settings,
            fetch: Fetch { http, is_local },
            accesses: Mutex::default(),
        })
    }

    /// The access of an identity, which its connections share.
    pub(crate) fn access(self: &Arc<Self>, owner: &Owner) -> Arc<Access> {
        let mut accesses = self.accesses.lock();
        if let Some(access) = accesses.get(owner).and_then(Weak::upgrade) {
            return access;
        }
        accesses.retain(|_, access| access.strong_count() > 0);
        let access = Access::new(Arc::clone(self), owner.clone());
        accesses.insert(owner.clone(), Arc::downgrade(&access));
        access
    }

    fn key(&self, owner: &Owner) -> String {
        let (server, url) = (&*self.server, self.url.as_str());
        let mut parts = vec![server.into(), url.into()];
        parts.extend([&owner.tenant, &owner.principal].map(|part| serde_json::json!(part)));
        // What one client or grant has got is not for another.
        let settings = &self.settings;
        if settings.client_id.is_some() || settings.client_credentials {
            parts.push(serde_json::json!([settings.client_id, settings.client_credentials]));
        }
        let parts = serde_json::Value::Array(parts);
        Digest::of_json(&parts).to_string()
    }

    pub(super) async fn read(&self, owner: &Owner) -> Result<Option<Record>, OAuthError> {
        let key = self.key(owner);
        let text = self.in_store(move |store| store.read(&key)).await;
        self.record(text)
    }

    /// Uses the store, which may block, in a thread for it.
    async fn in_store<T: Send + 'static>(
        &self,
        using: impl FnOnce(&dyn TokenStore) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let store = Arc::clone(&self.settings.store);
        spawn_blocking(move || using(&*store)).await.map_err(io::Error::other)?
    }

    /// The record of a text, if it is one of this server.
    fn record(&self, text: io::Result<Option<String>>) -> Result<Option<Record>, OAuthError> {
        let Some(text) = text.map_err(|error| OAuthError::Store(format!("read: {error}")))? else {
            return Ok(None);
        };
        let record: Record = serde_json::from_str(&text).map_err(|_| {
            // The parser's message may quote a token.
            OAuthError::Store("read: their file is damaged; log out and in again".to_owned())
        })?;
        Ok(Some(record).filter(|record| record.server == self.url.as_str()))
    }

    pub(super) async fn write(&self, owner: &Owner, record: &Record) -> Result<(), OAuthError> {
        let text = serde_json::to_string(record);
        let text = text.map_err(|error| OAuthError::Store(format!("stored: {error}")))?;
        self.store(owner, Some(text)).await
    }

    async fn store(&self, owner: &Owner, text: Option<String>) -> Result<(), OAuthError> {
        let key = self.key(owner);
        let stored = self.in_store(move |store| store.write(&key, text.as_deref())).await;
        stored.map_err(|error| OAuthError::Store(format!("stored: {error}")))
    }

    pub(super) async fn lock(&self, owner: &Owner) -> Result<HeldLock, OAuthError> {
        let (began, mut wait) = (Instant::now(), LOCK_FIRST);
        loop {
            let key = self.key(owner);
            let lock = self.in_store(move |store| Ok(HeldLock(store.try_lock(&key)?))).await;
            let lock = lock.map_err(|error| OAuthError::Store(format!("locked: {error}")))?;
            match lock.0 {
                Some(_) => return Ok(lock),
                None if began.elapsed() >= LOCK_WITHIN => {
                    let problem = "locked: another process has had them for a minute";
                    return Err(OAuthError::Store(problem.to_owned()));
                }
                None => {
                    sleep(wait).await;
                    wait = LOCK_EVERY.min(wait * 2);
                }
            }
        }
    }

    /// Changes a record under its lock.
    pub(super) async fn update(
        &self,
        owner: &Owner,
        change: impl FnOnce(&mut Record),
    ) -> Result<(), OAuthError> {
        let _lock = self.lock(owner).await?;
        let mut record = self.read(owner).await?.unwrap_or_else(|| self.empty());
        change(&mut record);
        self.write(owner, &record).await
    }

    pub(super) fn empty(&self) -> Record {
        Record { server: self.url.as_str().to_owned(), ..Record::default() }
    }

    /// Lets the secrets of a record be redacted.
    pub(super) fn learn(&self, record: &Record) {
        let learn = &self.settings.on_secret;
        if let Some(tokens) = &record.tokens {
            learn(&tokens.access_token);
            tokens.refresh_token.iter().for_each(|token| learn(token));
        }
        let secret = record.client.as_ref().and_then(|client| client.client_secret.as_deref());
        secret.into_iter().for_each(|secret| learn(secret));
    }
}

/// The login of one identity at one server; from
/// [`McpClient::authorization`](crate::McpClient::authorization).
pub struct Authorization {
    authority: Arc<Authority>,
    owner: Owner,
    list_tools: ListTools,
}

/// A login that waits for the user's consent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Login {
    /// The authorization server.
    pub issuer: String,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// How long the access token is valid; `None` if the server does not say, zero if it has
    /// expired.
    pub valid_for: Option<Duration>,
    /// Whether the token is renewed without another login.
    pub renewable: bool,
    /// The scopes that the server has demanded since.
    pub demanded: Vec<String>,
}

impl Authorization {
    pub(crate) fn new(authority: Arc<Authority>, owner: Owner, list_tools: ListTools) -> Self {
        Self { authority, owner, list_tools }
    }

    /// Logs in: calls `show` with the address that a person opens in a browser on this machine, and
    /// waits for the redirect to this machine. With client credentials no person is needed.
    ///
    /// The tools are listed first, unless an earlier request has already been refused: the refusal
    /// says which scopes the server demands.
    ///
    /// # Errors
    /// [`OAuthError`].
    pub async fn login(
        &self,
        scopes: &[String],
        show: impl FnOnce(&str),
        cancellation: &CancellationToken,
    ) -> Result<Login, OAuthError> {
        if let Some(invalid) = scopes.iter().find(|scope| !is_scope(scope)) {
            let problem = format!("`{}` is not a scope", plain(invalid));
            return Err(OAuthError::Declaration(problem));
        }
        let known = |record: &Option<Record>| record.as_ref().and_then(|it| it.challenge.clone());
        let mut record = self.authority.read(&self.owner).await?;
        if known(&record).is_none() {
            let had_tokens = record.as_ref().is_some_and(|record| record.tokens.is_some());
            let listed = (self.list_tools)().await;
            record = self.authority.read(&self.owner).await?;
            match listed {
                _ if known(&record).is_some() || had_tokens => {}
                Ok(()) => return Err(OAuthError::NotRequired),
                Err(error) => return Err(OAuthError::Unreachable(error)),
            }
        }
        let challenge = known(&record).unwrap_or_default();
        let mut fresh = record.unwrap_or_else(|| self.authority.empty());
        self.authority.learn(&fresh);
        let logged_in =
            self.authority.log_in(&mut fresh, &challenge, scopes, show, cancellation).await;
        self.authority
            .update(&self.owner, |record| {
                // A registration is worth keeping if the login fails.
                record.client = fresh.client;
                if logged_in.is_ok() {
                    record.tokens = fresh.tokens;
                    record.challenge = None;
                }
            })
            .await?;
        logged_in?;
        let granted = self.authority.read(&self.owner).await?.and_then(granted);
        granted.ok_or_else(|| OAuthError::Store("read: they have been removed".to_owned()))
    }

    /// The current login, if any. This blocks for the time that the store takes.
    ///
    /// # Errors
    /// [`OAuthError::Store`].
    pub fn status(&self) -> Result<Option<Login>, OAuthError> {
        let authority = &self.authority;
        let text = authority.settings.store.read(&authority.key(&self.owner));
        Ok(authority.record(text)?.and_then(granted))
    }

    /// Removes the tokens and the registration here, and revokes the tokens if the authorization
    /// server supports it. Returns whether there were any, and the error of the revocation.
    ///
    /// # Errors
    /// [`OAuthError::Store`] if they cannot be removed.
    pub async fn logout(
        &self,
        cancellation: &CancellationToken,
    ) -> Result<(bool, Option<OAuthError>), OAuthError> {
        let _lock = self.authority.lock(&self.owner).await?;
        // A damaged record is removed too.
        let record = self.authority.read(&self.owner).await.ok().flatten();
        let had = record.as_ref().is_some_and(|record| record.tokens.is_some());
        self.authority.store(&self.owner, None).await?;
        let Some((record, tokens)) =
            record.as_ref().and_then(|record| Some((record, record.tokens.as_ref()?)))
        else {
            return Ok((had, None));
        };
        self.authority.learn(record);
        let Some(client) = self.authority.client_of(tokens, record) else { return Ok((had, None)) };
        let revoked = self.authority.revoke(tokens, &client, cancellation).await;
        Ok((had, revoked.err()))
    }
}

/// The login of a record.
fn granted(record: Record) -> Option<Login> {
    let demanded = record.challenge.unwrap_or_default().scopes;
    let tokens = record.tokens?;
    Some(Login {
        valid_for: tokens.lasts(),
        renewable: tokens.refresh_token.is_some(),
        issuer: tokens.issuer,
        scopes: tokens.scopes,
        demanded,
    })
}

toolcrib_core::__internal::debug_fields!(
    Authorization,
    authorization,
    server = authorization.authority.server,
    ..
);
