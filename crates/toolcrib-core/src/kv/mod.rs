//! Key-value: small texts that tools keep from one call to the next.

mod limit;
mod store;

pub use self::limit::{LimitStore, SharedLimit};
pub use self::store::{KvArea, KvError, KvLimits, KvScope, KvStore, KvWrite};
