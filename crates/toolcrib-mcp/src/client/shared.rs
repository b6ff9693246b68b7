//! State shared by all sessions of one server.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::task::TaskTracker;
use toolcrib_core::{__internal::LruCache, ClientPort};

use super::{scope::IdentityScope, settings::Settings, status::StateChange};
use crate::{
    connection::{Connector, types::ServerNotice},
    oauth::Authority,
    server::{CallerAccess, name::ServerName},
};

/// The limit of sessions of one server that connect at the same time: each may start a program.
const STARTS: usize = 4;

/// The limit of announcements that a slow receiver has not read; the oldest are lost.
const MOST_NOTICES: usize = 256;

/// The limit of conversations whose loaded skills are remembered. The least recently used one is
/// evicted, and loads them again.
const MOST_CONVERSATIONS: usize = 1_024;

/// Called at each change of state.
pub(super) type Listener = Box<dyn Fn(&StateChange) + Send + Sync>;

/// The access of a caller, by tenant and principal; else the reason why there is none.
pub(super) type AccessFn =
    Box<dyn Fn(Option<&str>, Option<&str>) -> Result<CallerAccess, String> + Send + Sync>;

/// A server's declaration, and the state shared by its sessions.
pub(super) struct Shared {
    pub(super) name: ServerName,
    /// The server's name as an `Arc`.
    pub(super) server: Arc<str>,
    /// `mcp:git`.
    pub(super) origin: Arc<str>,
    /// `mcp__git__*`.
    pub(super) pattern: String,
    pub(super) target: Arc<str>,
    pub(super) connect: Arc<Connector>,
    pub(super) authority: Option<Arc<Authority>>,
    pub(super) settings: Settings,
    pub(super) listeners: Vec<Listener>,
    /// `None`: all callers have the same.
    pub(super) access: Option<AccessFn>,
    pub(super) changes: watch::Sender<u64>,
    /// Announcements of all sessions.
    pub(super) notices: broadcast::Sender<(IdentityScope, ServerNotice)>,
    /// The tasks of all sessions, evicted ones too.
    pub(super) tasks: TaskTracker,
    /// A session that connects has a permit.
    pub(super) starts: Semaphore,
    /// The clients of each session that its server may ask outside of calls.
    attached: Mutex<HashMap<IdentityScope, Vec<Weak<dyn ClientPort>>>>,
    /// The names of the skills that each conversation has loaded.
    loaded: Mutex<LruCache<IdentityScope, HashSet<Arc<str>>>>,
}

impl Shared {
    pub(super) fn new(
        name: ServerName,
        (connect, authority): (Arc<Connector>, Option<Arc<Authority>>),
        settings: Settings,
        listeners: Vec<Listener>,
        access: Option<AccessFn>,
    ) -> Self {
        Self {
            server: name.as_str().into(),
            origin: format!("mcp:{name}").into(),
            pattern: name.pattern(),
            target: connect.target().into(),
            name,
            connect,
            authority,
            settings,
            listeners,
            access,
            changes: watch::Sender::new(0),
            notices: broadcast::Sender::new(MOST_NOTICES),
            tasks: TaskTracker::new(),
            starts: Semaphore::new(STARTS),
            attached: Mutex::default(),
            loaded: Mutex::new(LruCache::new(MOST_CONVERSATIONS)),
        }
    }

    /// Adds a client of a session, for as long as it lives.
    pub(super) fn attach(&self, whose: &IdentityScope, client: &Arc<dyn ClientPort>) {
        let mut attached = self.attached.lock();
        attached.retain(|_, clients| {
            clients.retain(|client| client.strong_count() > 0);
            !clients.is_empty()
        });
        attached.entry(whose.clone()).or_default().push(Arc::downgrade(client));
    }

    /// The client of a session that has one client.
    pub(super) fn only_client(&self, whose: &IdentityScope) -> Option<Arc<dyn ClientPort>> {
        let clients = self.attached.lock().get(whose)?.clone();
        let mut clients = clients.iter().filter_map(Weak::upgrade);
        let first = clients.next()?;
        clients.all(|other| other.key() == first.key()).then_some(first)
    }

    /// The skills that a conversation has loaded.
    pub(super) fn loaded_skills(&self, conversation: &IdentityScope) -> HashSet<Arc<str>> {
        self.loaded.lock().get(conversation).cloned().unwrap_or_default()
    }

    /// Remembers a skill that a conversation has loaded.
    pub(super) fn loads_skill(&self, conversation: &IdentityScope, skill: &Arc<str>) {
        let mut loaded = self.loaded.lock();
        match loaded.get(conversation) {
            Some(skills) => drop(skills.insert(Arc::clone(skill))),
            None => {
                let skills = HashSet::from([Arc::clone(skill)]);
                drop(loaded.insert(conversation.clone(), skills));
            }
        }
    }
}
