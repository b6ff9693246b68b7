//! Contents that come piece by piece.

use std::{collections::VecDeque, sync::Arc};

use toolcrib_core::{KeptEntries, Redact, SpoolError, SpoolWriter};

use crate::{
    artifact::Artifact,
    artifacts::ArtifactSource,
    kinds::Start,
    turn::{Room, TurnArtifacts},
};

/// How much of the beginning and of the end is remembered in case that nothing can be kept.
const REMEMBERED: usize = 4 * 1024;

/// A content on its way to become an artifact. Memory does not grow with it.
///
/// Writing never fails: once something went wrong, what comes is counted and let go, so that whoever
/// writes can go on to its end, and [`finish`](Self::finish) says what happened and has the beginning
/// and the end. Dropped without that, nothing is kept.
pub struct ArtifactWriter {
    turn: TurnArtifacts,
    source: ArtifactSource,
    spool: Result<Box<dyn SpoolWriter>, SpoolError>,
    room: Room,
    redacting: Option<Redacting>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    chars: u64,
    noted_in: KeptEntries,
}

impl ArtifactWriter {
    pub(crate) fn new(
        turn: TurnArtifacts,
        source: ArtifactSource,
        spool: Box<dyn SpoolWriter>,
        redact: Option<Arc<dyn Redact>>,
    ) -> Self {
        Self {
            room: Room::of(&turn),
            turn,
            source,
            spool: Ok(spool),
            redacting: redact.map(Redacting::new),
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            chars: 0,
            noted_in: KeptEntries::default(),
        }
    }

    /// Where it is noted what becomes of it in the end.
    pub(crate) fn noted_in(mut self, kept: KeptEntries) -> Self {
        self.noted_in = kept;
        self
    }

    /// Takes the bytes that come next. It blocks.
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

    /// Whether what comes is still kept.
    pub fn is_keeping(&self) -> bool {
        self.spool.is_ok()
    }

    /// Makes an artifact of all of it.
    ///
    /// # Errors
    /// [`Unkept`], with what is left of it.
    pub fn finish(mut self) -> Result<Artifact, Unkept> {
        if let Some(redacting) = self.redacting.take() {
            let rest = redacting.finish();
            self.take(&rest);
        }
        let kinds = self.turn.artifacts().known_kinds();
        let named = self.source.kind.as_deref().filter(|kind| kinds.has(kind));
        let is_whole = self.bytes <= Start::BYTES as u64;
        let kind = match named {
            Some(kind) => kinds.named(kind),
            None => kinds.detect(&Start::new(&self.head, is_whole)),
        };
        let kept = self
            .spool
            .and_then(|spool| self.turn.commit(&self.source, &*kind, self.chars, spool, self.room));
        self.noted_in.note(kept.as_ref().map(Artifact::entry));
        kept.map_err(|error| {
            let head = self.head.get(..REMEMBERED).unwrap_or(&self.head);
            let behind_head = usize::try_from(self.bytes - head.len() as u64).unwrap_or(usize::MAX);
            let skipped = self.tail.len().saturating_sub(behind_head);
            let tail: Vec<u8> = self.tail.into_iter().skip(skipped).collect();
            Unkept {
                head: String::from_utf8_lossy(head).into_owned(),
                tail: String::from_utf8_lossy(&tail).into_owned(),
                bytes: self.bytes,
                error,
            }
        })
    }

    fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // Each character has one byte that does not go on with another.
        self.chars += bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count() as u64;
        let wanted = Start::BYTES.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..wanted).unwrap_or_default());
        let last = bytes.len().saturating_sub(REMEMBERED);
        self.tail.extend(bytes.get(last..).unwrap_or_default());
        let over = self.tail.len().saturating_sub(REMEMBERED);
        self.tail.drain(..over);
        let Ok(spool) = &mut self.spool else { return };
        let written = self.room.reach(self.bytes).and_then(|()| spool.write(bytes));
        if let Err(error) = written {
            // The writer goes, and with it what it has written, and the room for it.
            self.spool = Err(error);
            self.room = Room::of(&self.turn);
        }
    }
}

impl std::fmt::Debug for ArtifactWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArtifactWriter")
            .field("source", &self.source)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// A content that could not be kept: why, and what is left of it.
#[derive(Debug, thiserror::Error)]
#[error("the result was not kept: {error}")]
pub struct Unkept {
    /// Its beginning.
    pub head: String,
    /// Its end; what is behind the beginning, of a short one.
    pub tail: String,
    /// How many bytes it had.
    pub bytes: u64,
    /// Why.
    #[source]
    pub error: SpoolError,
}

impl Unkept {
    /// What a model reads in place of the whole.
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

/// Takes secrets out of bytes that come piece by piece.
struct Redacting {
    redact: Arc<dyn Redact>,
    stream: Box<dyn toolcrib_core::RedactStream>,
    /// The beginning of a character, or what is none.
    begun: Vec<u8>,
}

impl Redacting {
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
                // Up to three bytes, which may be a character that is still to come.
                self.begun = invalid.to_vec();
            } else {
                // No secret goes on behind what is no text.
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
