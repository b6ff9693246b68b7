//! The keys of an issuer, fetched through the guarded HTTP client, bounded and kept.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::jwk::Jwk;
use parking_lot::Mutex;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::Instant;
use toolcrib_capabilities::http::{HttpClient, HttpClientBuilder, HttpRequest};
use toolcrib_core::CancellationToken;

use super::{checked_url, jwt::TokenError, settings::ResourceServer};

const MAX_BYTES: usize = 256 * 1024;
const MAX_KEYS: usize = 64;
const WITHIN: Duration = Duration::from_secs(10);
/// Keys are fetched again after this time.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// Keys that cannot be fetched again are used for this time at most.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// Unknown keys do not make us fetch more often.
const REST: Duration = Duration::from_secs(10);

pub(crate) struct Keys {
    issuer: String,
    address: Option<String>,
    http: HttpClient,
    known: Mutex<CachedKeys>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct CachedKeys {
    keys: Arc<[Jwk]>,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

impl CachedKeys {
    fn is_usable(&self) -> bool {
        self.fetched.is_some_and(|fetched| fetched.elapsed() < STALE)
    }
}

#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    /// A key of an unknown kind does not invalidate the others.
    keys: Vec<serde_json::Value>,
}

impl Keys {
    pub(crate) fn new(settings: &ResourceServer) -> Result<Self, String> {
        let mut builder = match &settings.client {
            Some(client) => HttpClientBuilder::clone(client),
            None => HttpClient::builder(),
        };
        let issuer = checked_url(&settings.issuer, "the issuer")?;
        if issuer.scheme() == "http" {
            // The declaration names this machine.
            let loopback = ["127.0.0.0/8", "::1/128"];
            builder = builder.allow_addresses(loopback.iter().filter_map(|net| net.parse().ok()));
        }
        Ok(Self {
            issuer: settings.issuer.clone(),
            address: settings.jwks.clone(),
            http: builder.build(),
            known: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        })
    }

    /// The keys that may have signed a token with this key id.
    pub(crate) async fn of(&self, id: Option<&str>) -> Result<Vec<Jwk>, TokenError> {
        if let Some(keys) = self.known(id) {
            return Ok(keys);
        }
        // One fetches, the others wait for it.
        let _one = self.fetching.lock().await;
        if let Some(keys) = self.known(id) {
            return Ok(keys);
        }
        let may_fetch = self.known.lock().tried.is_none_or(|tried| tried.elapsed() >= REST);
        if may_fetch {
            let fetched = self.fetch().await;
            let mut known = self.known.lock();
            // Not before: a request that ends in the middle has tried nothing.
            known.tried = Some(Instant::now());
            match fetched {
                Ok(keys) => {
                    known.keys = keys.into();
                    known.fetched = Some(Instant::now());
                }
                // The kept keys are used until the issuer can be reached again.
                Err(_) if known.is_usable() => {}
                Err(problem) => return Err(TokenError(problem)),
            }
        }
        let known = self.known.lock();
        if !known.is_usable() {
            return Err(TokenError("the issuer's keys are not available".to_owned()));
        }
        Ok(matching(&known.keys, id))
    }

    /// The known keys, while they are fresh and contain one with this id.
    fn known(&self, id: Option<&str>) -> Option<Vec<Jwk>> {
        let known = self.known.lock();
        let is_fresh = known.fetched.is_some_and(|fetched| fetched.elapsed() < KEPT);
        is_fresh.then(|| matching(&known.keys, id)).filter(|keys| !keys.is_empty())
    }

    async fn fetch(&self) -> Result<Vec<Jwk>, String> {
        let address = match &self.address {
            Some(address) => address.clone(),
            None => self.address_of_metadata().await?,
        };
        checked_url(&address, "the address of the keys")?;
        let set: Option<KeySet> = self.document(&address).await?;
        let set = set.ok_or("the issuer publishes no keys")?;
        let keys = set.keys.into_iter().take(MAX_KEYS);
        Ok(keys.filter_map(|key| serde_json::from_value(key).ok()).collect())
    }

    async fn address_of_metadata(&self) -> Result<String, String> {
        let issuer = checked_url(&self.issuer, "the issuer")?;
        let path = issuer.path().trim_end_matches('/').to_owned();
        let paths = [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ];
        for path in paths {
            let mut url = issuer.clone();
            url.set_path(&path);
            let found: Option<Metadata> = self.document(url.as_str()).await?;
            if let Some(found) = found {
                return match found.issuer == self.issuer {
                    true => Ok(found.jwks_uri),
                    false => Err("the issuer's metadata names another issuer".to_owned()),
                };
            }
        }
        Err("the issuer publishes no metadata".to_owned())
    }

    /// A document; `None` if there is none.
    async fn document<T: DeserializeOwned>(&self, url: &str) -> Result<Option<T>, String> {
        let mut request = HttpRequest::get(url);
        request.max_body_bytes = MAX_BYTES;
        request.timeout = Some(WITHIN);
        let never = CancellationToken::new();
        let response = self.http.send(request, &never).await.map_err(|error| error.to_string())?;
        match response.status {
            status if status.is_success() => serde_json::from_slice(&response.body)
                .map(Some)
                .map_err(|_| "a document of the issuer cannot be read".to_owned()),
            status if status.is_client_error() => Ok(None),
            status => Err(format!("the issuer answered HTTP {}", status.as_u16())),
        }
    }
}

/// The keys with an id; without one, all.
fn matching(keys: &[Jwk], id: Option<&str>) -> Vec<Jwk> {
    keys.iter().filter(|key| id.is_none() || key.common.key_id.as_deref() == id).cloned().collect()
}
