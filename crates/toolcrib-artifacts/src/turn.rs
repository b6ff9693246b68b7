//! The artifacts of one turn: ids, quotas, and the end of a session.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{
    ArtifactEntry, ArtifactMeta, ArtifactStoreError, CommitError, Digest, Identity, OnConflict,
    Redact, StoreWriter,
};
use uuid::Uuid;

use crate::{
    artifact::Artifact,
    artifacts::{ArtifactSource, Artifacts},
    content::Content,
    kinds::kind::ArtifactKind,
    writer::{ArtifactWriter, KeepError},
};

/// The maximum length of a call's id as an artifact id: it appears in truncation markers, which
/// have to fit.
const LONGEST_ID: usize = 32;

/// The number of ids tried by counting before a random one: counting past the ids of earlier turns
/// would take longer each time.
const COUNTED_IDS: u32 = 16;

/// The number of random ids tried before a store counts as one that accepts none.
const MADE_UP_IDS: u32 = 16;

/// The step in which quota is reserved for a write.
const STEP: u64 = 1 << 20;

/// The stored bytes of one turn, and its writes in progress.
pub(crate) struct Turn {
    pub(crate) owner: Arc<Identity>,
    pub(crate) turn_id: Arc<str>,
    pub(crate) session: Arc<Session>,
    used: Mutex<Usage>,
}

impl Turn {
    pub(crate) fn new(owner: Arc<Identity>, turn_id: Arc<str>, session: Arc<Session>) -> Self {
        Self { owner, turn_id, session, used: Mutex::default() }
    }
}

#[derive(Default)]
struct Usage {
    /// In bytes: stored, and reserved for writes.
    bytes: u64,
    /// Whether the session's existing artifacts were counted for this turn.
    knows_session: bool,
    /// The number of requests per id.
    wanted: HashMap<Arc<str>, u32>,
}

/// The shared state of the turns of one session.
#[derive(Default)]
pub(crate) struct Session {
    /// Locked while an id and its bytes are committed, while the store's existing artifacts are
    /// counted, and to end the session.
    taking: Mutex<()>,
    bytes: Mutex<SessionBytes>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct SessionBytes {
    kept: u64,
    /// Quota reserved for writes in progress.
    taken: u64,
}

impl Session {
    pub(crate) fn if_not_over(self: &Arc<Self>) -> Option<Arc<Self>> {
        (!self.is_over.load(Ordering::Relaxed)).then(|| Arc::clone(self))
    }

    /// Later commits are discarded.
    pub(crate) fn end(&self) {
        let _taking = self.taking.lock();
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), ArtifactStoreError> {
        if self.is_over.load(Ordering::Relaxed) { Err(ArtifactStoreError::Over) } else { Ok(()) }
    }
}

/// The artifacts of one turn. Clones share them.
///
/// A turn sees all artifacts of its session: those of another turn of the same tenant, principal
/// and conversation can be read until they expire.
#[derive(Clone)]
pub struct TurnArtifacts {
    artifacts: Artifacts,
    turn: Arc<Turn>,
}

impl TurnArtifacts {
    pub(crate) fn new(artifacts: Artifacts, turn: Arc<Turn>) -> Self {
        Self { artifacts, turn }
    }

    /// Stores redacted content from memory. Blocks.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if it cannot be stored: nothing of it is kept then.
    pub fn keep(
        &self,
        source: ArtifactSource,
        content: &[u8],
    ) -> Result<Artifact, ArtifactStoreError> {
        let mut writer = self.writer(source, None)?;
        writer.write(content);
        writer.finish().map_err(|unkept: KeepError| unkept.error)
    }

    /// Starts content that is written in pieces, so that it need not fit in memory. The redactor is
    /// applied to all of it. Blocks.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if the store cannot be written to.
    pub fn writer(
        &self,
        source: ArtifactSource,
        redact: Option<Arc<dyn Redact>>,
    ) -> Result<ArtifactWriter, ArtifactStoreError> {
        self.turn.session.check()?;
        let artifact_store = self.artifacts.store().create(&self.turn.owner)?;
        Ok(ArtifactWriter::new(self.clone(), source, artifact_store, redact))
    }

    /// The artifact with an id.
    ///
    /// # Errors
    /// [`ArtifactStoreError::Unknown`] if this session has none, even if another one has.
    pub fn get(&self, id: &str) -> Result<Artifact, ArtifactStoreError> {
        let stored = self.artifacts.store().open(&self.turn.owner, id)?;
        let kind = self.artifacts.known_kinds().named(&stored.entry.note.kind);
        Ok(Artifact::new(Content::new(stored), kind))
    }

    /// All artifacts of the session, the newest last.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if the store cannot list them.
    pub fn live(&self) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        self.artifacts.store().entries(&self.turn.owner)
    }

    /// The artifacts object that this turn belongs to.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    pub(crate) fn turn_id(&self) -> &Arc<str> {
        &self.turn.turn_id
    }

    /// Reserves more bytes.
    fn take_room(&self, bytes: u64) -> Result<(), ArtifactStoreError> {
        let limits = self.artifacts.limits();
        if !self.used().knows_session {
            let _taking = self.turn.session.taking.lock();
            let kept = self.live()?.iter().map(|entry| entry.bytes).sum();
            self.turn.session.bytes.lock().kept = kept;
            self.used().knows_session = true;
        }
        let mut session = self.turn.session.bytes.lock();
        let mut used = self.used();
        if used.bytes.saturating_add(bytes) > limits.turn_bytes {
            return Err(ArtifactStoreError::Quota { limit: limits.turn_bytes, whose: "turn" });
        }
        if (session.kept + session.taken).saturating_add(bytes) > limits.session_bytes {
            return Err(ArtifactStoreError::Quota {
                limit: limits.session_bytes,
                whose: "session",
            });
        }
        used.bytes += bytes;
        session.taken += bytes;
        Ok(())
    }

    /// Commits a draft under a new id.
    pub(crate) fn commit(
        &self,
        source: &ArtifactSource,
        kind: &dyn ArtifactKind,
        chars: u64,
        mut artifact_store: Box<dyn StoreWriter>,
        room: Reservation,
    ) -> Result<Artifact, ArtifactStoreError> {
        let note = ArtifactMeta {
            kind: kind.name().into(),
            tool: Arc::clone(&source.tool),
            call_id: Arc::clone(&source.call_id),
            turn_id: Arc::clone(self.turn_id()),
            untrusted: source.untrusted,
            text_origin: source.text_origin,
            chars,
        };
        let taking = self.turn.session.taking.lock();
        self.turn.session.check()?;
        let base = as_id(&source.call_id);
        for id in self.ids(&base) {
            match artifact_store.commit(&id, note.clone(), OnConflict::Fail) {
                Err(CommitError::Taken { writer, .. }) => artifact_store = writer,
                kept => {
                    room.settle(kept?.bytes);
                    drop(taking);
                    return self.get(&id);
                }
            }
        }
        Err(ArtifactStoreError::Taken { id: base })
    }

    /// The call's id, and ids derived from it: vendors restart their numbering, and the content of
    /// an id that a model has read must not change.
    fn ids(&self, base: &Arc<str>) -> impl Iterator<Item = Arc<str>> {
        let counted = (0..COUNTED_IDS).map(move |_| {
            let mut used = self.used();
            let wanted = used.wanted.entry(Arc::clone(base)).or_default();
            *wanted += 1;
            if *wanted == 1 { Arc::clone(base) } else { format!("{base}.{wanted}").into() }
        });
        // Five random digits.
        let made_up = (0..MADE_UP_IDS).map(move |_| {
            let digits: String = Uuid::new_v4().simple().to_string().chars().take(5).collect();
            format!("{base}.{digits}").into()
        });
        counted.chain(made_up)
    }

    fn used(&self) -> MutexGuard<'_, Usage> {
        self.turn.used.lock()
    }
}

toolcrib_core::__internal::debug_fields!(
    TurnArtifacts,
    artifacts,
    owner = artifacts.turn.owner,
    turn_id = artifacts.turn.turn_id,
    ..
);

/// Quota reserved for a write; released on drop.
pub(crate) struct Reservation {
    turn: TurnArtifacts,
    bytes: u64,
}

impl Reservation {
    pub(crate) fn of(turn: &TurnArtifacts) -> Self {
        Self { turn: turn.clone(), bytes: 0 }
    }

    /// Reserves more until the given number of bytes is covered.
    pub(crate) fn reach(&mut self, bytes: u64) -> Result<(), ArtifactStoreError> {
        let needed = bytes.saturating_sub(self.bytes);
        if needed == 0 {
            return Ok(());
        }
        let step = needed.max(STEP);
        let taken = match self.turn.take_room(step) {
            Err(ArtifactStoreError::Quota { .. }) => {
                self.turn.take_room(needed).map(|()| needed)?
            }
            taken => taken.map(|()| step)?,
        };
        self.bytes += taken;
        Ok(())
    }

    /// Keeps the given number of bytes; the rest is released.
    fn settle(mut self, kept: u64) {
        self.give_back(kept);
    }

    fn give_back(&mut self, kept: u64) {
        let taken = std::mem::take(&mut self.bytes);
        let mut session = self.turn.turn.session.bytes.lock();
        let mut used = self.turn.used();
        used.bytes = (used.bytes - taken.min(used.bytes)).saturating_add(kept);
        session.taken = session.taken.saturating_sub(taken);
        session.kept = session.kept.saturating_add(kept);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

/// The call's id if a model can repeat it safely, else a new one.
fn as_id(call_id: &str) -> Arc<str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=LONGEST_ID).contains(&call_id.len()) && call_id.chars().all(plain) {
        return call_id.into();
    }
    let digest: String = Digest::of(call_id).to_string().chars().take(12).collect();
    format!("a_{digest}").into()
}
