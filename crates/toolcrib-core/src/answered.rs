//! How a listing came about.

use std::{sync::Arc, time::Duration};

use serde::Serialize;

/// What a cache had to do with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheUse {
    /// No cache was asked.
    #[default]
    None,
    /// It had a fresh answer.
    Hit,
    /// It had none, and the answer is that of a question that was already under way for somebody else.
    Joined,
    /// It had none, and the source was asked for this listing.
    Miss,
    /// It had one that is no longer fresh, and gave that.
    Stale,
}

/// How a listing came about: a note in a [`Catalog`](crate::Catalog), for events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answered {
    /// What a cache had to do with it.
    pub cache: CacheUse,
    /// How old the answer is, where a cache had it.
    pub age: Option<Duration>,
    /// Why an older answer was given, where the source failed; for the operator.
    pub error: Option<Arc<str>>,
}

impl Answered {
    /// Both notes as one: the use that tells more, the higher age.
    pub(crate) fn merge(&mut self, other: Self) {
        self.cache = self.cache.max(other.cache);
        self.age = self.age.max(other.age);
        if self.error.is_none() {
            self.error = other.error;
        }
    }
}
