use std::{
    collections::HashMap,
    error::Error,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{DiscoveryError, FailedListing, Handed, Listing, ToolProvider};
use crate::{catalog::Catalog, context_list::ListContext, identity::Identity};

/// By what [`per_identity`] tells one from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Whose {
    /// One provider per tenant.
    Tenant,
    /// One per principal within its tenant: `ada` of one tenant is not `ada` of another.
    Principal,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tenant => "tenant",
            Self::Principal => "principal",
        })
    }
}

/// A provider for each tenant or principal, made when it is first asked for: a client with that
/// tenant's credentials, a hub of its own.
///
/// `make` sees only what tells them apart: tenant, or tenant and principal, without the
/// conversation, which is empty. It runs once for each, however many ask at the same time; the
/// others wait, so it should not block: a provider that connects does so when it is listed. When it
/// fails so does the listing, and the next one tries again. At most `most` are kept, at least one;
/// the one that was asked longest ago is dropped, and whoever has tools of it keeps those alive as
/// long as the provider's own rules let them.
///
/// Answers now where the provider inside does. What a run is named by stands in
/// [`Identity`]; without a name, all share one.
///
/// ```
/// use toolcrib_core::{Whose, per_identity, static_tools};
///
/// let provider = per_identity(Whose::Tenant, 100, |identity| match identity.tenant.as_deref() {
///     Some(_tenant) => Ok(static_tools([])),
///     None => Err("tools of a tenant need a tenant"),
/// });
/// # let _ = provider;
/// ```
pub fn per_identity<F, E>(whose: Whose, most: usize, make: F) -> Arc<PerIdentity>
where
    F: Fn(&Identity) -> Result<Arc<dyn ToolProvider>, E> + Send + Sync + 'static,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Arc::new(PerIdentity {
        whose,
        most: most.max(1),
        make: Box::new(move |identity| {
            make(identity).map_err(|error| DiscoveryError::from_boxed(error.into()))
        }),
        made: Mutex::default(),
        made_gated: AtomicBool::new(false),
    })
}

/// What [`per_identity`] makes.
pub struct PerIdentity {
    whose: Whose,
    most: usize,
    make: Box<Make>,
    made: Mutex<Made>,
    /// Whether one of all that were made is gated, also when it is gone.
    made_gated: AtomicBool,
}

type Make = dyn Fn(&Identity) -> Result<Arc<dyn ToolProvider>, DiscoveryError> + Send + Sync;

/// The provider of one, once it is made; whoever makes it holds the lock.
type Provider = Arc<Mutex<Option<Arc<dyn ToolProvider>>>>;

#[derive(Default)]
struct Made {
    by_key: HashMap<Key, Slot>,
    /// Counts uses, so that the least recent one is known.
    uses: u64,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
}

struct Slot {
    provider: Provider,
    used: u64,
}

impl PerIdentity {
    /// How many are kept now.
    pub fn len(&self) -> usize {
        lock(&self.made).by_key.len()
    }

    /// Whether none is kept now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops the provider of an identity, so that the next listing makes it anew: for credentials
    /// that have changed.
    pub fn forget(&self, identity: &Identity) {
        let forgotten = lock(&self.made).by_key.remove(&self.key(identity));
        drop(forgotten);
    }

    fn key(&self, identity: &Identity) -> Key {
        let principal = match self.whose {
            Whose::Tenant => None,
            Whose::Principal => identity.principal.clone(),
        };
        Key { tenant: identity.tenant.clone(), principal }
    }

    fn provider(&self, key: &Key) -> Result<Arc<dyn ToolProvider>, DiscoveryError> {
        let (slot, evicted) = self.slot(key);
        // A provider's own end may take its time: not while others wait for the list.
        drop(evicted);
        let mut provider = lock(&slot);
        if let Some(made) = &*provider {
            return Ok(Arc::clone(made));
        }
        let identity = Identity {
            tenant: key.tenant.clone(),
            principal: key.principal.clone(),
            conversation: Arc::default(),
        };
        let made = (self.make)(&identity).inspect_err(|_| {
            let mut kept = lock(&self.made);
            if kept.by_key.get(key).is_some_and(|there| Arc::ptr_eq(&there.provider, &slot)) {
                kept.by_key.remove(key);
            }
        })?;
        if made.is_gated() {
            self.made_gated.store(true, Ordering::Relaxed);
        }
        Ok(Arc::clone(provider.insert(made)))
    }

    /// The place of a key, and the one that had to make room for it.
    fn slot(&self, key: &Key) -> (Provider, Option<Slot>) {
        let mut made = lock(&self.made);
        made.uses += 1;
        let now = made.uses;
        if let Some(slot) = made.by_key.get_mut(key) {
            slot.used = now;
            return (Arc::clone(&slot.provider), None);
        }
        let mut evicted = None;
        if made.by_key.len() >= self.most {
            let oldest = made.by_key.iter().min_by_key(|(_, slot)| slot.used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                evicted = made.by_key.remove(&oldest);
            }
        }
        let slot = Slot { provider: Arc::default(), used: now };
        let provider = Arc::clone(&slot.provider);
        made.by_key.insert(key.clone(), slot);
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

    /// Once one of those that it made is: before, nobody knows.
    fn is_gated(&self) -> bool {
        self.made_gated.load(Ordering::Relaxed)
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let provider = match self.provider(&self.key(cx.identity())) {
            Ok(provider) => provider,
            Err(error) => return Listing::failed(into, error.in_provider(&*self)),
        };
        let handed = Handed::note(&into);
        // Its errors name the provider inside: who fails is one of many.
        let inside = Arc::clone(&provider);
        let named = move |mut failed: FailedListing| {
            failed.error = failed.error.in_provider(&*inside);
            failed
        };
        match provider.list(cx, into) {
            Listing::Now(answer) => {
                Listing::Now(answer.and_then(|catalog| handed.came_back(catalog)).map_err(named))
            }
            Listing::Later(future) => Listing::later(async move {
                future.await.and_then(|catalog| handed.came_back(catalog)).map_err(named)
            }),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
