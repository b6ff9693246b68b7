//! The servers of the links in results, so that their readers can be recognized.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use toolcrib_core::ContentBlock;

/// The limit of remembered links.
const MOST_LINKS: usize = 4_096;

/// The servers of the links that results contained, so that clients can read them.
#[derive(Default)]
pub(crate) struct Links(Mutex<LinkCache>);

/// The caller that received a link, and its URI.
type LinkKey = (LinkOwner, Arc<str>);

/// The requests that may read a link: those of the same tenant, principal and personality. Without a
/// principal only those of the same session, or of the one client by stdio.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LinkOwner {
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) personality: Option<Arc<str>>,
    pub(crate) session: Option<Arc<str>>,
}

#[derive(Default)]
struct LinkCache {
    servers: HashMap<LinkKey, Arc<str>>,
    oldest: VecDeque<LinkKey>,
}

impl Links {
    /// Remembers the links in a result of a server, for its caller.
    pub(crate) fn note(&self, owner: &LinkOwner, server: &str, blocks: &[ContentBlock]) {
        let uris = blocks.iter().filter_map(|block| match block {
            ContentBlock::Link { uri, .. } => Some(Arc::clone(uri)),
            _ => None,
        });
        for uri in uris {
            let mut known = self.0.lock();
            let key = (owner.clone(), uri);
            if known.servers.insert(key.clone(), server.into()).is_none() {
                known.oldest.push_back(key);
            }
            if known.oldest.len() > MOST_LINKS
                && let Some(oldest) = known.oldest.pop_front()
            {
                known.servers.remove(&oldest);
            }
        }
    }

    pub(crate) fn server(&self, owner: LinkOwner, uri: &str) -> Option<Arc<str>> {
        let key = (owner, uri.into());
        self.0.lock().servers.get(&key).cloned()
    }
}
