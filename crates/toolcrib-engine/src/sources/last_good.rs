//! What a source listed when it last could.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use toolcrib_core::{Catalog, ListContext, SkillId};

/// How many listings are kept per source; the one that was made longest ago makes room.
const MOST_LISTINGS: usize = 64;

/// Under what a listing is the same for everybody. A conversation is none of it: what is kept would
/// help nobody but that one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
    active_skills: Arc<[SkillId]>,
}

impl Key {
    pub(crate) fn of(cx: &ListContext) -> Self {
        Self {
            tenant: cx.identity().tenant.clone(),
            principal: cx.identity().principal.clone(),
            active_skills: Arc::clone(cx.active_skills()),
        }
    }
}

/// The last good listings of one source, one per [`Key`].
#[derive(Default)]
pub(super) struct LastGood(Mutex<Listings>);

#[derive(Default)]
struct Listings {
    /// The one that was made last stands last.
    known: VecDeque<Known>,
    /// A list whose memory the next listing uses.
    spare: Catalog,
}

struct Known {
    key: Key,
    listing: Arc<Catalog>,
    made: Instant,
}

impl LastGood {
    /// An empty list to be filled.
    pub(super) fn spare(&self) -> Catalog {
        std::mem::take(&mut self.lock().spare)
    }

    /// Keeps what the source has just listed.
    pub(super) fn keep(&self, key: Key, mut listing: Catalog) {
        let mut this = self.lock();
        let made = Instant::now();
        let before = this.known.iter().position(|known| known.key == key);
        let known = match before.and_then(|at| this.known.remove(at)) {
            Some(known) if known.listing.same(&listing) => {
                listing.clear();
                this.spare = listing;
                Known { made, ..known }
            }
            _ => Known { key, listing: Arc::new(listing), made },
        };
        if this.known.len() >= MOST_LISTINGS {
            this.known.pop_front();
        }
        this.known.push_back(known);
    }

    /// What the source listed last under this key, and how long ago.
    pub(super) fn get(&self, key: &Key) -> Option<(Arc<Catalog>, Duration)> {
        let this = self.lock();
        let known = this.known.iter().find(|known| known.key == *key)?;
        Some((Arc::clone(&known.listing), known.made.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, Listings> {
        // Nothing under this lock can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
