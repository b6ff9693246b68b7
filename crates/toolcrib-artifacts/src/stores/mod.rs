//! Where artifacts are kept: in memory, or in files.

mod files;
mod memory;

use std::time::{Duration, SystemTime};

pub use self::{files::FileStore, memory::MemoryStore};

/// Milliseconds since 1970; 0 for a clock that stands before that.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    toolcrib_core::millis(since)
}

/// Whether what was made then has been kept for long enough.
fn has_expired(made_ms: u64, keep: Option<Duration>) -> bool {
    keep.is_some_and(|keep| now_ms().saturating_sub(made_ms) >= toolcrib_core::millis(keep))
}
