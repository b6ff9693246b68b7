//! Content that is written in pieces.

use std::{collections::VecDeque, sync::Arc};

use toolcrib_core::{ArtifactLog, ArtifactStoreError, Redact, RedactStream, StoreWriter};

use crate::{
    artifact::Artifact,
    artifacts::ArtifactSource,
    kinds::kind::ContentHead,
    turn::{Reservation, TurnArtifacts},
};

/// The number of bytes of the beginning and of the end that are kept if nothing can be stored.
const REMEMBERED: usize = 4 * 1024;

/// A content that becomes an artifact. Memory use is constant.
///
/// Writing never fails: after an error, further bytes are counted and discarded, so that the writer
/// can continue to its end, and [`finish`](Self::finish) returns the error with the beginning and
/// the end. Dropping it without `finish` discards the content.
pub struct ArtifactWriter {
    turn: TurnArtifacts,
    source: ArtifactSource,
    artifact_store: Result<Box<dyn StoreWriter>, ArtifactStoreError>,
    room: Reservation,
    redacting: Option<StreamingRedactor>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    chars: u64,
    noted_in: ArtifactLog,
}

impl ArtifactWriter {
    pub(crate) fn new(
        turn: TurnArtifacts,
        source: ArtifactSource,
        artifact_store: Box<dyn StoreWriter>,
        redact: Option<Arc<dyn Redact>>,
    ) -> Self {
        Self {
            room: Reservation::of(&turn),
            turn,
            source,
            artifact_store: Ok(artifact_store),
            redacting: redact.map(StreamingRedactor::new),
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            chars: 0,
            noted_in: ArtifactLog::default(),
        }
    }

    /// Records the final result in a log.
    pub(crate) fn noted_in(mut self, kept: ArtifactLog) -> Self {
        self.noted_in = kept;
        self
    }

    /// Appends bytes to the artifact. Blocks.
    pub fn write(&mut self, bytes: &[u8]) {
        match self.redacting.take() {
            None => self.take(bytes),
            Some(mut redacting) => {
                let redacted = redacting.push(bytes);
                self.take(&redacted);
                self.redacting = Some(redacting);
            }
        }
    }

    /// Whether bytes are still being stored.
    pub fn is_keeping(&self) -> bool {
        self.artifact_store.is_ok()
    }

    /// Makes an artifact of the content.
    ///
    /// # Errors
    /// [`KeepError`] with the remaining parts.
    pub fn finish(mut self) -> Result<Artifact, KeepError> {
        if let Some(redacting) = self.redacting.take() {
            let rest = redacting.finish();
            self.take(&rest);
        }
        let kinds = self.turn.artifacts().known_kinds();
        let named = self.source.kind.as_deref().filter(|kind| kinds.has(kind));
        let is_complete = self.bytes <= ContentHead::BYTES as u64;
        let kind = match named {
            Some(kind) => kinds.named(kind),
            None => kinds.detect(&ContentHead::new(&self.head, is_complete)),
        };
        let kept = self.artifact_store.and_then(|artifact_store| {
            self.turn.commit(&self.source, &*kind, self.chars, artifact_store, self.room)
        });
        self.noted_in.note(kept.as_ref().map(Artifact::entry));
        kept.map_err(|error| {
            let head = self.head.get(..REMEMBERED).unwrap_or(&self.head);
            let behind_head = usize::try_from(self.bytes - head.len() as u64).unwrap_or(usize::MAX);
            let skipped = self.tail.len().saturating_sub(behind_head);
            let tail: Vec<u8> = self.tail.into_iter().skip(skipped).collect();
            KeepError {
                head: String::from_utf8_lossy(head).into_owned(),
                tail: String::from_utf8_lossy(&tail).into_owned(),
                bytes: self.bytes,
                error,
            }
        })
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // Each character has exactly one byte that is not a continuation byte.
        self.chars += bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64;
        let wanted = ContentHead::BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
        let last = bytes.len().saturating_sub(REMEMBERED);
        self.tail.extend(bytes.get(last..).unwrap_or_default());
        let over = self.tail.len().saturating_sub(REMEMBERED);
        self.tail.drain(..over);
        let Ok(artifact_store) = &mut self.artifact_store else { return };
        let written = self.room.reach(self.bytes).and_then(|()| artifact_store.write(bytes));
        if let Err(error) = written {
            // Drops the store's writer with its draft, and its quota.
            self.artifact_store = Err(error);
            self.room = Reservation::of(&self.turn);
        }
    }
}

toolcrib_core::__internal::debug_fields!(ArtifactWriter { source, bytes, .. });

/// A content that could not be stored: the error, and its remaining parts.
#[derive(Debug, thiserror::Error)]
#[error("the result was not kept: {error}")]
pub struct KeepError {
    /// The beginning.
    pub head: String,
    /// The end; for a short content the part after the beginning.
    pub tail: String,
    /// The total number of bytes.
    pub bytes: u64,
    /// The error.
    #[source]
    pub error: ArtifactStoreError,
}

impl KeepError {
    /// The text for a model instead of the content.
    pub fn text(&self) -> String {
        let left_out = self.bytes.saturating_sub((self.head.len() + self.tail.len()) as u64);
        if left_out == 0 {
            return format!("{}{}", self.head, self.tail);
        }
        format!(
            "{}\n[about {left_out} of {} bytes are missing here and were not kept: {}]\n{}",
            self.head, self.bytes, self.error, self.tail
        )
    }
}

/// Redacts bytes that arrive in pieces.
struct StreamingRedactor {
    redact: Arc<dyn Redact>,
    stream: Box<dyn RedactStream>,
    /// The start of an incomplete character, or invalid bytes.
    begun: Vec<u8>,
}

impl StreamingRedactor {
    fn new(redact: Arc<dyn Redact>) -> Self {
        Self { stream: Arc::clone(&redact).stream(), redact, begun: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let joined;
        let bytes = if self.begun.is_empty() {
            bytes
        } else {
            self.begun.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.begun);
            &joined
        };
        let mut redacted = Vec::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            redacted.extend_from_slice(self.stream.push(chunk.valid()).as_bytes());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() {
                // Up to three bytes, which may start an incomplete character.
                self.begun = invalid.to_vec();
            } else {
                // Secrets do not span invalid bytes.
                let next = Arc::clone(&self.redact).stream();
                let ended = std::mem::replace(&mut self.stream, next);
                redacted.extend_from_slice(ended.finish().as_bytes());
                redacted.extend_from_slice(invalid);
            }
        }
        redacted
    }

    fn finish(self) -> Vec<u8> {
        let mut rest = self.stream.finish().into_bytes();
        rest.extend_from_slice(&self.begun);
        rest
    }
}
