//! Key-value: small texts that tools keep from one call to the next.

mod store;

pub use self::store::{KvArea, KvError, KvLimits, KvScope, KvStore, KvWrite};
