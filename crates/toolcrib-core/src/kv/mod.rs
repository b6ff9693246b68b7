//! Key-value: small texts that tools keep from one call to the next.

mod handle;
mod store;

pub use self::{
    handle::Kv,
    store::{KvArea, KvError, KvLimits, KvScope, KvStore, KvWrite},
};
