//! One computation per key, shared by all who wait for it.

use std::{collections::HashMap, hash::Hash};

use futures_util::future::{BoxFuture, FutureExt as _, Shared, WeakShared};

/// A computation that several callers wait for. It is dropped, and so cancelled, with its last
/// clone.
pub type Flight<T> = Shared<BoxFuture<'static, T>>;

/// The computations that are under way. Only their callers keep them alive.
#[derive(Debug)]
pub struct SingleFlight<K, T> {
    flights: HashMap<K, (u64, WeakShared<BoxFuture<'static, T>>)>,
    begun: u64,
}

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { flights: HashMap::new(), begun: 0 }
    }
}

impl<K: Hash + Eq, T: Clone> SingleFlight<K, T> {
    /// The flight of a key, while it is under way.
    pub fn join(&self, key: &K) -> Option<Flight<T>> {
        let (_, flight) = self.flights.get(key)?;
        flight.upgrade().filter(|flight| flight.peek().is_none())
    }

    /// Begins a flight, and replaces the key's last one. `make` receives the flight's number.
    pub fn begin(&mut self, key: K, make: impl FnOnce(u64) -> BoxFuture<'static, T>) -> Flight<T> {
        self.begun += 1;
        let flight = make(self.begun).shared();
        if let Some(weak) = flight.downgrade() {
            self.flights.insert(key, (self.begun, weak));
        }
        flight
    }

    /// Whether a flight is the last one of its key: not after another one, and not after it was
    /// forgotten.
    pub fn is_current(&self, key: &K, number: u64) -> bool {
        self.flights.get(key).is_some_and(|(current, _)| *current == number)
    }

    /// Forgets a flight that has ended, unless another one has begun.
    pub fn end(&mut self, key: &K, number: u64) {
        if self.is_current(key, number) {
            self.flights.remove(key);
        }
    }

    /// Forgets the flight of a key: its callers still get the outcome, and no one joins it.
    pub fn forget(&mut self, key: &K) {
        self.flights.remove(key);
    }

    /// Forgets all computations in flight.
    pub fn clear(&mut self) {
        self.flights.clear();
    }
}
