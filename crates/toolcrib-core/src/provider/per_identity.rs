use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;

use super::{DiscoveryError, Listing, ToolProvider, context_list::ListContext};
use crate::{internal::lru_cache::LruCache, names::identity::Identity};

/// The key of [`per_identity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdentityScope {
    /// One provider per tenant.
    Tenant,
    /// One per principal within its tenant: `ada` of one tenant is not `ada` of another.
    Principal,
}

impl fmt::Display for IdentityScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tenant => "tenant",
            Self::Principal => "principal",
        })
    }
}

/// One provider per tenant or principal, made on first use: for a client with the tenant's
/// credentials, or a separate hub.
///
/// `make` receives only the key: tenant, or tenant and principal, with an empty conversation. It
/// runs once per key, however many callers wait, and blocks them, so it should not block for long:
/// connect on the first listing instead. If it fails, the listing fails, and the next listing calls
/// it again. At most `most` providers are kept, at least one; the least recently used is evicted.
/// Tools of an evicted provider stay alive as long as the provider's own rules allow.
///
/// Immediate listings stay immediate. The key is taken from [`Identity`]; identities without a name
/// share one provider.
///
/// ```
/// use toolcrib_core::{IdentityScope, per_identity, static_tools};
///
/// let provider = per_identity(IdentityScope::Tenant, 100, |identity| match identity.tenant.as_deref() {
///     Some(_tenant) => Ok(static_tools([])),
///     None => Err("tools of a tenant need a tenant"),
/// });
/// # let _ = provider;
/// ```
pub fn per_identity<F, E>(whose: IdentityScope, most: usize, make: F) -> Arc<PerIdentity>
where
    F: Fn(&Identity) -> Result<Arc<dyn ToolProvider>, E> + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Arc::new(PerIdentity {
        whose,
        make: Box::new(move |identity| {
            make(identity).map_err(|error| DiscoveryError::from_boxed(error.into()))
        }),
        made: Mutex::new(LruCache::new(most)),
        made_gated: AtomicBool::new(false),
    })
}

/// The provider returned by [`per_identity`].
pub struct PerIdentity {
    whose: IdentityScope,
    make: Box<ProviderFactory>,
    made: Mutex<LruCache<Key, Provider>>,
    /// Whether one of all that were made is gated, also when it is gone.
    made_gated: AtomicBool,
}

type ProviderFactory =
    dyn Fn(&Identity) -> Result<Arc<dyn ToolProvider>, DiscoveryError> + Send + Sync;

/// The provider of one key, once it is made. The lock is held while it is made.
type Provider = Arc<Mutex<Option<Arc<dyn ToolProvider>>>>;

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
}

impl PerIdentity {
    /// The number of cached providers.
    pub fn len(&self) -> usize {
        self.made.lock().len()
    }

    /// Whether no provider is cached.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops the provider of an identity, so that the next listing makes it again: for changed
    /// credentials.
    pub fn forget(&self, identity: &Identity) {
        let forgotten = self.made.lock().remove(&self.key(identity));
        drop(forgotten);
    }

    fn key(&self, identity: &Identity) -> Key {
        let principal = match self.whose {
            IdentityScope::Tenant => None,
            IdentityScope::Principal => identity.principal.clone(),
        };
        Key { tenant: identity.tenant.clone(), principal }
    }

    fn provider(&self, key: &Key) -> Result<Arc<dyn ToolProvider>, DiscoveryError> {
        let (slot, evicted) = self.slot(key);
        // Dropping a provider may take long, so it happens outside the lock.
        drop(evicted);
        let mut provider = slot.lock();
        if let Some(made) = &*provider {
            return Ok(Arc::clone(made));
        }
        let identity = Identity {
            tenant: key.tenant.clone(),
            principal: key.principal.clone(),
            conversation: Arc::default(),
        };
        let made = (self.make)(&identity).inspect_err(|_| {
            let mut kept = self.made.lock();
            if kept.get(key).is_some_and(|there| Arc::ptr_eq(there, &slot)) {
                kept.remove(key);
            }
        })?;
        if made.is_gated() {
            self.made_gated.store(true, Ordering::Relaxed);
        }
        Ok(Arc::clone(provider.insert(made)))
    }

    /// The slot of a key, and the one that was evicted for it.
    fn slot(&self, key: &Key) -> (Provider, Option<Provider>) {
        let mut made = self.made.lock();
        if let Some(slot) = made.get(key) {
            return (Arc::clone(slot), None);
        }
        let provider = Provider::default();
        let evicted = made.insert(key.clone(), Arc::clone(&provider));
        (provider, evicted)
    }
}

impl ToolProvider for PerIdentity {
    fn id(&self) -> &str {
        "per-identity"
    }

    fn path(&self) -> String {
        format!("per-identity({})", self.whose)
    }

    /// True once any provider made so far is gated; unknown before.
    fn is_gated(&self) -> bool {
        self.made_gated.load(Ordering::Relaxed)
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let provider = match self.provider(&self.key(cx.identity())) {
            Ok(provider) => provider,
            Err(error) => return Listing::failed(error.in_provider(&*self)),
        };
        // Errors name the inner provider, because it is one of many.
        Arc::clone(&provider)
            .list(cx)
            .then(move |answer| answer.map_err(|error| error.in_provider(&*provider)))
    }
}
