use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, Shared, WeakShared};
use tokio::time::Instant;

use super::{
    super::DiscoveryError,
    options::{CacheOptions, Key},
};
use crate::catalog::Catalog;

/// What comes of asking the source once, for all who wait.
pub(super) type Outcome = Result<Arc<Catalog>, DiscoveryError>;
pub(super) type Flight = Shared<BoxFuture<'static, Outcome>>;

/// The answers that are kept, and the questions that are under way.
#[derive(Default)]
pub(super) struct Store {
    entries: HashMap<Key, Entry>,
    /// Whoever waits holds its flight; here they are only remembered, so that one that nobody waits
    /// for ends.
    flights: HashMap<Key, (u64, WeakShared<BoxFuture<'static, Outcome>>)>,
    /// Counts uses, so that the least recent one is known.
    uses: u64,
    begun: u64,
}

pub(super) struct Entry {
    listing: Arc<Catalog>,
    made: Instant,
    /// For ever, if there is no such time.
    fresh_until: Option<Instant>,
    used: u64,
}

/// An answer that is kept, and how old it is.
pub(super) struct Kept {
    pub(super) listing: Arc<Catalog>,
    pub(super) age: Duration,
    /// How long its time has been over; none while it is fresh.
    pub(super) over_for: Option<Duration>,
}

impl Store {
    /// The answer that is kept under a key, which counts as a use of it.
    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<Kept> {
        let used = self.next_use();
        let entry = self.entries.get_mut(key)?;
        entry.used = used;
        Some(Kept {
            listing: Arc::clone(&entry.listing),
            age: now.saturating_duration_since(entry.made),
            over_for: entry
                .fresh_until
                .filter(|until| now >= *until)
                .map(|until| now.saturating_duration_since(until)),
        })
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// The question that is under way under a key, as long as somebody waits for its answer.
    pub(super) fn under_way(&self, key: &Key) -> Option<Flight> {
        self.flights.get(key).and_then(|(_, flight)| flight.upgrade())
    }

    /// The number of a flight that is about to begin.
    pub(super) fn next_number(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// Remembers a flight, in place of one that nobody waited for.
    pub(super) fn begin(&mut self, key: Key, number: u64, flight: &Flight) {
        if let Some(remembered) = flight.downgrade() {
            self.flights.insert(key, (number, remembered));
        }
    }

    /// Whether a flight is the one that counts: it is not, once the key was invalidated.
    pub(super) fn counts(&self, key: &Key, number: u64) -> bool {
        self.flights.get(key).is_some_and(|(current, _)| *current == number)
    }

    /// Forgets a flight that is over.
    pub(super) fn end(&mut self, key: &Key, number: u64) {
        if self.counts(key, number) {
            self.flights.remove(key);
        }
    }

    /// Keeps an answer. Gives back what it takes the place of, to be dropped without the lock.
    pub(super) fn keep(
        &mut self,
        key: Key,
        listing: Arc<Catalog>,
        options: &CacheOptions,
    ) -> Option<Entry> {
        let made = Instant::now();
        let fresh_until = options.fresh_until(made);
        let entry = Entry { listing, made, fresh_until, used: self.next_use() };
        if let Some(before) = self.entries.insert(key, entry) {
            return Some(before);
        }
        if self.entries.len() <= options.max_entries {
            return None;
        }
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
        let oldest = oldest.map(|(key, _)| key.clone())?;
        self.entries.remove(&oldest)
    }

    /// Forgets an answer, and that it is being asked for: who waits gets what was asked before, and
    /// it is not kept.
    pub(super) fn forget(&mut self, key: &Key) -> Option<Entry> {
        self.flights.remove(key);
        self.entries.remove(key)
    }

    /// Forgets everything.
    pub(super) fn forget_all(&mut self) -> HashMap<Key, Entry> {
        self.flights.clear();
        std::mem::take(&mut self.entries)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
