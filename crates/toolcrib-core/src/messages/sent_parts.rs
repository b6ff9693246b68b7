//! The parts of requests, as they were first sent.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use crate::json::digest::Digest;

/// A part of a request: a message or a definition in a vendor's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPart {
    /// The digest of its source: of the message or the tool, and of everything else that decides
    /// its form, such as the vendor and the model. Not of the program that writes it.
    pub key: Digest,
    /// Its JSON.
    pub json: Arc<str>,
}

/// The parts of a session's requests, as they were first sent. A model that finds one here sends
/// the same bytes again, so a newer program misses no prompt cache. Clones of a request share it.
///
/// A message or tool that has changed, for example because a secret in it became known, has another
/// key, and is rewritten.
#[derive(Debug)]
pub struct SentParts(Mutex<Parts>);

#[derive(Debug)]
struct Parts {
    known: HashMap<Digest, Arc<str>>,
    new: Vec<SentPart>,
    version: u64,
}

/// A number that no other parts of this process have.
fn next_version() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Default for SentParts {
    fn default() -> Self {
        Self::new([])
    }
}

impl SentParts {
    /// The parts of earlier requests.
    pub fn new(parts: impl IntoIterator<Item = SentPart>) -> Self {
        let known = parts.into_iter().map(|part| (part.key, part.json)).collect();
        Self(Mutex::new(Parts { known, new: Vec::new(), version: next_version() }))
    }

    /// A number that changes when known parts are forgotten, and differs between sessions. Text that
    /// was made of known parts stays valid while it is the same.
    pub fn version(&self) -> u64 {
        self.0.lock().version
    }

    /// The JSON of a part.
    pub fn get(&self, key: &Digest) -> Option<Arc<str>> {
        self.0.lock().known.get(key).map(Arc::clone)
    }

    /// Sets the JSON of a part, to be stored.
    pub fn set(&self, part: SentPart) {
        let mut parts = self.0.lock();
        parts.known.insert(part.key, Arc::clone(&part.json));
        parts.new.push(part);
    }

    /// Removes and returns the parts that were set since the last time.
    pub fn take_new(&self) -> Vec<SentPart> {
        std::mem::take(&mut self.0.lock().new)
    }

    /// Forgets the parts of which a condition is false.
    pub fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        let mut parts = self.0.lock();
        let before = parts.known.len();
        parts.known.retain(|_, json| is_kept(json));
        parts.new.retain(|part| is_kept(&part.json));
        if parts.known.len() < before {
            parts.version = next_version();
        }
    }
}
