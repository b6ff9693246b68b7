//! The port to limits that several processes share.

use std::{num::NonZeroU32, time::Duration};

use crate::store_error::SessionStoreError;

/// A limit of a number in a period, such as of calls a minute: a token bucket (as in RFC 2697), which is
/// full at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedLimit {
    /// The number that may come at once.
    pub most: NonZeroU32,
    /// The time in which an empty bucket is full again.
    pub period: Duration,
}

impl SharedLimit {
    /// The time in which one is added to the bucket, in microseconds, and the period.
    pub fn micros(&self) -> (i64, i64) {
        let period = self.period.as_micros();
        let micros = |micros: u128| i64::try_from(micros).unwrap_or(i64::MAX / 4);
        (micros(period / u128::from(self.most.get())), micros(period))
    }

    /// The time in which this number is added to the bucket, in microseconds, and the period.
    pub fn micros_of(&self, count: NonZeroU32) -> (i64, i64) {
        let (one, period) = self.micros();
        (one.saturating_mul(count.get().into()), period)
    }
}

/// Counts towards limits, for all processes that share the store, by the store's clock. Neighbor: a
/// [`KvStore`](super::KvStore) keeps values of tools. All methods block.
pub trait LimitStore: Send + Sync + 'static {
    /// Takes this number from the bucket of a name. Returns `None` if it had so many, else the time until it
    /// has; then it takes none.
    ///
    /// # Errors
    /// A failure of the store.
    fn take(
        &self,
        bucket: &str,
        count: NonZeroU32,
        limit: SharedLimit,
    ) -> Result<Option<Duration>, SessionStoreError>;
}
