//! Where artifacts are kept: in memory, or in files.

mod files;
mod memory;

use std::time::{Duration, SystemTime};

use toolcrib_core::{DigestHasher, LineIndex, SpoolEntry, SpoolNote};

pub use self::{files::FileStore, memory::MemoryStore};

/// What a store learns of a content while it is written.
struct Written {
    lines: LineIndex,
    digest: DigestHasher,
}

impl Written {
    fn new() -> Self {
        Self { lines: LineIndex::new(), digest: DigestHasher::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        self.digest.push(bytes);
    }

    /// The entry of all of it, made now, and where its lines are.
    fn finish(self, id: &str, note: SpoolNote) -> (SpoolEntry, LineIndex) {
        let entry = SpoolEntry {
            id: id.into(),
            digest: self.digest.finish(),
            bytes: self.lines.bytes(),
            lines: self.lines.lines(),
            made_ms: now_ms(),
            note,
        };
        (entry, self.lines)
    }
}

/// Milliseconds since 1970; 0 for a clock that stands before that.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    toolcrib_core::millis(since)
}

/// Whether what was made then has been kept for long enough.
fn has_expired(made_ms: u64, keep: Option<Duration>) -> bool {
    keep.is_some_and(|keep| now_ms().saturating_sub(made_ms) >= toolcrib_core::millis(keep))
}
