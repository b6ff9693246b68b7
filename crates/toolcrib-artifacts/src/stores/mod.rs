//! Stores of artifacts: in memory, or in files.

#[cfg(not(portable))]
mod files;
mod memory;

use std::time::Duration;

use toolcrib_core::{
    __internal::{millis, now_ms},
    ArtifactEntry, ArtifactMeta, DigestHasher, LineIndex,
};

#[cfg(not(portable))]
pub use self::files::FileStore;
pub use self::memory::MemoryStore;

/// The metadata of a content, computed while it is written.
struct WriteSummary {
    lines: LineIndex,
    digest: DigestHasher,
}

impl WriteSummary {
    fn new() -> Self {
        Self { lines: LineIndex::new(), digest: DigestHasher::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        self.digest.push(bytes);
    }

    /// The entry of the whole content, created now, and its line index.
    fn finish(self, id: &str, note: ArtifactMeta) -> (ArtifactEntry, LineIndex) {
        let entry = ArtifactEntry {
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

/// Whether an artifact with this creation time has expired.
fn has_expired(made_ms: u64, keep: Option<Duration>) -> bool {
    keep.is_some_and(|keep| now_ms().saturating_sub(made_ms) >= millis(keep))
}
