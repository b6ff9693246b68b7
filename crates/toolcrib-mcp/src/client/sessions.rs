//! The sessions of one server: one per identity, so that principals do not share state.

use std::{
    collections::HashSet,
    ops::Deref,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolcrib_core::{__internal::LruCache, Catalog, ClientAbilities, Identity};

use super::{
    McpError, listed::ServerListing, scope::IdentityScope, settings::SessionScope, shared::Shared,
    state::Phase, supervisor::Supervisor,
};
use crate::server::CallerAccess;

/// Sessions that are not needed any more are looked for after this number of uses.
const CHECKED_AFTER: u64 = 64;

/// The sessions of a server, each with a separate connection.
pub(super) struct Sessions {
    me: Weak<Self>,
    shared: Arc<Shared>,
    /// Ends all of them.
    shutdown: CancellationToken,
    open: Mutex<OpenSessions>,
    /// Counts uses.
    uses: AtomicU64,
}

type OpenSessions = LruCache<IdentityScope, Arc<Supervisor>>;

/// A session in use, which is not evicted meanwhile.
pub(super) struct SessionLease(Arc<Supervisor>);

impl SessionLease {
    fn new(supervisor: &Arc<Supervisor>) -> Self {
        supervisor.users.fetch_add(1, Ordering::Acquire);
        Self(Arc::clone(supervisor))
    }
}

impl Deref for SessionLease {
    type Target = Arc<Supervisor>;

    fn deref(&self) -> &Arc<Supervisor> {
        &self.0
    }
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Release);
    }
}

impl Sessions {
    pub(super) fn new(shared: Shared) -> Arc<Self> {
        let open = Mutex::new(LruCache::new(shared.settings.max_sessions));
        Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            shared: Arc::new(shared),
            shutdown: CancellationToken::new(),
            open,
            uses: AtomicU64::new(0),
        })
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The identity whose session is used.
    pub(super) fn whose(&self, identity: &Identity, abilities: ClientAbilities) -> IdentityScope {
        let conversation = match self.shared.settings.session {
            SessionScope::Shared => return IdentityScope::default(),
            SessionScope::Principal => None,
            SessionScope::Client => Some(Arc::clone(&identity.conversation)),
        };
        let (tenant, principal) = (identity.tenant.clone(), identity.principal.clone());
        let abilities = match abilities.can_something() {
            true => abilities,
            false => ClientAbilities::default(),
        };
        IdentityScope { tenant, principal, conversation, abilities }
    }

    /// A conversation, which loads skills.
    pub(super) fn conversation(identity: &Identity) -> IdentityScope {
        IdentityScope {
            tenant: identity.tenant.clone(),
            principal: identity.principal.clone(),
            conversation: Some(Arc::clone(&identity.conversation)),
            abilities: ClientAbilities::default(),
        }
    }

    /// The list for a conversation, which has loaded some of the server's skills.
    pub(super) fn catalog(&self, list: &ServerListing, conversation: &IdentityScope) -> Catalog {
        match list.has_gates() {
            false => list.catalog().clone(),
            true => list.catalog_with(&self.shared.loaded_skills(conversation)),
        }
    }

    /// The session of an identity. A new one connects when it is needed; at the limit, it replaces
    /// the least recently used one.
    pub(super) fn of(&self, whose: &IdentityScope) -> Result<SessionLease, McpError> {
        let access = self.access(whose)?;
        let most = self.shared.settings.max_sessions;
        let uses = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut open = self.open.lock();
        // Under the lock, so that it is not evicted in between.
        let known = open.get(whose).map(|known| SessionLease::new(known));
        let mut ended = match known.is_none() || uses.is_multiple_of(CHECKED_AFTER) {
            true => take_unneeded(&mut open),
            false => Vec::new(),
        };
        let lease = match known {
            Some(known) => known,
            None => {
                let server = Arc::clone(&self.shared.server);
                if self.shutdown.is_cancelled() {
                    return Err(McpError::Closed { server });
                }
                if open.len() >= most {
                    let evicted = open.evict(is_idle);
                    ended.push(evicted.ok_or(McpError::Busy { server, sessions: most })?);
                }
                let new = self.supervisor(whose, access);
                let lease = SessionLease::new(&new);
                open.insert(whose.clone(), new);
                lease
            }
        };
        drop(open);
        for ended in ended {
            ended.end();
        }
        Ok(lease)
    }

    /// The access of an identity. It is evaluated at each use: no session of an identity without
    /// access is used further.
    fn access(&self, whose: &IdentityScope) -> Result<CallerAccess, McpError> {
        let Some(access) = &self.shared.access else { return Ok(CallerAccess::default()) };
        access(whose.tenant.as_deref(), whose.principal.as_deref()).map_err(|reason| {
            McpError::NoAccess { server: Arc::clone(&self.shared.server), reason: reason.into() }
        })
    }

    /// A session that is not connected.
    fn supervisor(&self, whose: &IdentityScope, access: CallerAccess) -> Arc<Supervisor> {
        let shutdown = self.shutdown.child_token();
        let (shared, me) = (Arc::clone(&self.shared), Weak::clone(&self.me));
        Supervisor::new(shared, me, whose.clone(), access, shutdown)
    }

    /// The session of an identity for its status; if there is none, the most recently used one.
    pub(super) fn shown(&self, whose: &IdentityScope) -> Arc<Supervisor> {
        let open = self.open.lock();
        let supervisor = open.peek(whose).or_else(|| open.latest()).cloned();
        drop(open);
        supervisor.unwrap_or_else(|| {
            // It is only looked at, and never connects.
            let supervisor = self.supervisor(whose, CallerAccess::default());
            if self.shutdown.is_cancelled() {
                // Not `end`: listeners need no event of a session that never existed.
                supervisor.state().phase = Phase::Closed;
            }
            supervisor
        })
    }

    /// The session of an identity, if there is one.
    pub(super) fn find(&self, whose: &IdentityScope) -> Option<Arc<Supervisor>> {
        self.open.lock().peek(whose).cloned()
    }

    /// Ends the sessions that only this conversation uses, without waiting.
    pub(super) fn end_conversation(&self, conversation: &Identity) {
        if self.shared.settings.session != SessionScope::Client {
            return;
        }
        let is_of_it = |whose: &IdentityScope, _: &Arc<Supervisor>| {
            whose.tenant == conversation.tenant
                && whose.principal == conversation.principal
                && whose.conversation.as_ref() == Some(&conversation.conversation)
        };
        let ended = self.open.lock().extract(is_of_it);
        for supervisor in ended {
            supervisor.end();
        }
    }

    /// Lists all sessions again.
    pub(super) fn recheck(&self) {
        self.all().iter().for_each(Supervisor::pins_changed);
    }

    fn all(&self) -> Vec<Arc<Supervisor>> {
        self.open.lock().values().cloned().collect()
    }

    /// Ends all sessions, without waiting.
    pub(super) fn end(&self) {
        self.shutdown.cancel();
        for supervisor in self.all() {
            supervisor.end();
        }
    }

    /// Ends all sessions and waits until everything of them has ended.
    pub(super) async fn close(&self) {
        self.end();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

/// Takes the sessions that were only listed, for a client without abilities, if a client of the
/// same identity has another: a program runs once, not once more for its first list.
fn take_unneeded(open: &mut OpenSessions) -> Vec<Arc<Supervisor>> {
    let others = open.keys().filter(|whose| whose.can_something());
    let others: HashSet<_> = others.map(IdentityScope::without_abilities).collect();
    if others.is_empty() {
        return Vec::new();
    }
    open.extract(|whose, supervisor| {
        !whose.can_something()
            && others.contains(whose)
            && is_idle(supervisor)
            && !supervisor.had_call.load(Ordering::Acquire)
    })
}

fn is_idle(supervisor: &Arc<Supervisor>) -> bool {
    supervisor.users.load(Ordering::Acquire) == 0
}
