//! The artifacts of one turn: ids, quotas, and the end of a session.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use toolcrib_core::{
    CommitError, Digest, Identity, IfTaken, Redact, SpoolEntry, SpoolError, SpoolNote, SpoolWriter,
};
use uuid::Uuid;

use crate::{
    artifact::Artifact,
    artifacts::{ArtifactSource, Artifacts, locked},
    content::Content,
    kinds::ArtifactKind,
    writer::{ArtifactWriter, Unkept},
};

/// How long an id may be that is a call's as it stands: it stands in markers, which have to fit.
const LONGEST_ID: usize = 32;

/// How many ids are tried that only count on before one is made up: counting on through what earlier turns
/// have kept would take longer each time.
const COUNTED_IDS: u32 = 16;

/// How many are made up before a store counts as one that takes none.
const MADE_UP_IDS: u32 = 16;

/// How much room is taken at once for what is written.
const STEP: u64 = 1 << 20;

/// What one turn has kept, and what it is writing.
pub(crate) struct Turn {
    pub(crate) owner: Arc<Identity>,
    pub(crate) run_id: Arc<str>,
    pub(crate) session: Arc<Session>,
    used: Mutex<Used>,
}

impl Turn {
    pub(crate) fn new(owner: Arc<Identity>, run_id: &str, session: Arc<Session>) -> Self {
        Self { owner, run_id: run_id.into(), session, used: Mutex::default() }
    }
}

#[derive(Default)]
struct Used {
    /// In bytes: what was kept, and room that was taken for more.
    bytes: u64,
    /// Whether what the store has of the session was counted for this turn.
    knows_session: bool,
    /// How often an id was wanted.
    wanted: HashMap<Arc<str>, u32>,
}

/// What the turns of one session share.
#[derive(Default)]
pub(crate) struct Session {
    /// Held while an id and its bytes are taken, while what the store has is counted, and to end the
    /// session.
    taking: Mutex<()>,
    bytes: Mutex<SessionBytes>,
    is_over: AtomicBool,
}

#[derive(Default)]
struct SessionBytes {
    kept: u64,
    /// Room that was taken for what is being written.
    taken: u64,
}

impl Session {
    pub(crate) fn if_not_over(self: &Arc<Self>) -> Option<Arc<Self>> {
        (!self.is_over.load(Ordering::Relaxed)).then(|| Arc::clone(self))
    }

    /// Nothing is kept of it from here on.
    pub(crate) fn end(&self) {
        let _taking = locked(&self.taking);
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), SpoolError> {
        if self.is_over.load(Ordering::Relaxed) { Err(SpoolError::Over) } else { Ok(()) }
    }
}

/// The artifacts of one turn. Cloning shares them.
///
/// A turn sees all that its session has: what another turn of the same tenant, principal and
/// conversation has kept can be read until it expires.
#[derive(Clone)]
pub struct TurnArtifacts {
    artifacts: Artifacts,
    turn: Arc<Turn>,
}

impl TurnArtifacts {
    pub(crate) fn new(artifacts: Artifacts, turn: Arc<Turn>) -> Self {
        Self { artifacts, turn }
    }

    /// Keeps a content that is at hand, and redacted. It blocks.
    ///
    /// # Errors
    /// [`SpoolError`] when it cannot be kept: nothing of it is then.
    pub fn keep(&self, source: ArtifactSource, content: &[u8]) -> Result<Artifact, SpoolError> {
        let mut writer = self.writer(source, None)?;
        writer.write(content);
        writer.finish().map_err(|unkept: Unkept| unkept.error)
    }

    /// Begins a content that comes piece by piece, so that it need not be in memory. What is given to
    /// redact is applied to all of it on the way. It blocks.
    ///
    /// # Errors
    /// [`SpoolError`] when there is no place to write to.
    pub fn writer(
        &self,
        source: ArtifactSource,
        redact: Option<Arc<dyn Redact>>,
    ) -> Result<ArtifactWriter, SpoolError> {
        self.turn.session.check()?;
        let spool = self.artifacts.store().create(&self.turn.owner)?;
        Ok(ArtifactWriter::new(self.clone(), source, spool, redact))
    }

    /// The artifact of an id.
    ///
    /// # Errors
    /// [`SpoolError::Unknown`] when this session has none, whoever else has one.
    pub fn get(&self, id: &str) -> Result<Artifact, SpoolError> {
        let spooled = self.artifacts.store().open(&self.turn.owner, id)?;
        let kind = self.artifacts.known_kinds().named(&spooled.entry.note.kind);
        Ok(Artifact::new(Content::new(spooled), kind))
    }

    /// All artifacts of the session, the newest last.
    ///
    /// # Errors
    /// [`SpoolError`] when the store cannot list them.
    pub fn live(&self) -> Result<Vec<SpoolEntry>, SpoolError> {
        self.artifacts.store().entries(&self.turn.owner)
    }

    /// The artifacts that these are among.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    pub(crate) fn run_id(&self) -> &Arc<str> {
        &self.turn.run_id
    }

    /// Takes room for so many bytes more.
    fn take_room(&self, bytes: u64) -> Result<(), SpoolError> {
        let limits = self.artifacts.limits();
        if !self.used().knows_session {
            let _taking = locked(&self.turn.session.taking);
            let kept = self.live()?.iter().map(|entry| entry.bytes).sum();
            locked(&self.turn.session.bytes).kept = kept;
            self.used().knows_session = true;
        }
        let mut session = locked(&self.turn.session.bytes);
        let mut used = self.used();
        if used.bytes.saturating_add(bytes) > limits.turn_bytes {
            return Err(SpoolError::Quota { limit: limits.turn_bytes, whose: "turn" });
        }
        if (session.kept + session.taken).saturating_add(bytes) > limits.session_bytes {
            return Err(SpoolError::Quota { limit: limits.session_bytes, whose: "session" });
        }
        used.bytes += bytes;
        session.taken += bytes;
        Ok(())
    }

    /// Puts what was written under an id of its own.
    pub(crate) fn commit(
        &self,
        source: &ArtifactSource,
        kind: &dyn ArtifactKind,
        chars: u64,
        mut spool: Box<dyn SpoolWriter>,
        room: Room,
    ) -> Result<Artifact, SpoolError> {
        let note = SpoolNote {
            kind: kind.name().into(),
            tool: Arc::clone(&source.tool),
            call_id: Arc::clone(&source.call_id),
            run_id: Arc::clone(self.run_id()),
            untrusted: source.untrusted,
            chars,
        };
        let taking = locked(&self.turn.session.taking);
        self.turn.session.check()?;
        let base = as_id(&source.call_id);
        for id in self.ids(&base) {
            match spool.commit(&id, note.clone(), IfTaken::Fail) {
                Err(CommitError::Taken { writer, .. }) => spool = writer,
                kept => {
                    room.settle(kept?.bytes);
                    drop(taking);
                    return self.get(&id);
                }
            }
        }
        Err(SpoolError::Taken { id: base })
    }

    /// The call's id, and those made of it: vendors begin to count anew, and what a model has read of an
    /// id must stay what it was.
    fn ids(&self, base: &Arc<str>) -> impl Iterator<Item = Arc<str>> {
        let counted = (0..COUNTED_IDS).map(move |_| {
            let mut used = self.used();
            let wanted = used.wanted.entry(Arc::clone(base)).or_default();
            *wanted += 1;
            if *wanted == 1 { Arc::clone(base) } else { format!("{base}.{wanted}").into() }
        });
        // Of five digits, as long as five that count.
        let made_up = (0..MADE_UP_IDS).map(move |_| {
            let digits: String = Uuid::new_v4().simple().to_string().chars().take(5).collect();
            format!("{base}.{digits}").into()
        });
        counted.chain(made_up)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        locked(&self.turn.used)
    }
}

impl std::fmt::Debug for TurnArtifacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TurnArtifacts")
            .field("owner", &self.turn.owner)
            .field("run_id", &self.turn.run_id)
            .finish_non_exhaustive()
    }
}

/// Room that is taken for a content that is being written; given back when it is dropped.
pub(crate) struct Room {
    turn: TurnArtifacts,
    bytes: u64,
}

impl Room {
    pub(crate) fn of(turn: &TurnArtifacts) -> Self {
        Self { turn: turn.clone(), bytes: 0 }
    }

    /// Takes more until there is room for so many bytes.
    pub(crate) fn reach(&mut self, bytes: u64) -> Result<(), SpoolError> {
        let needed = bytes.saturating_sub(self.bytes);
        if needed == 0 {
            return Ok(());
        }
        let step = needed.max(STEP);
        let taken = match self.turn.take_room(step) {
            Err(SpoolError::Quota { .. }) => self.turn.take_room(needed).map(|()| needed)?,
            taken => taken.map(|()| step)?,
        };
        self.bytes += taken;
        Ok(())
    }

    /// So many bytes of it are kept; the rest is free again.
    fn settle(mut self, kept: u64) {
        self.give_back(kept);
    }

    fn give_back(&mut self, kept: u64) {
        let taken = std::mem::take(&mut self.bytes);
        let mut session = locked(&self.turn.turn.session.bytes);
        let mut used = self.turn.used();
        used.bytes = (used.bytes - taken.min(used.bytes)).saturating_add(kept);
        session.taken = session.taken.saturating_sub(taken);
        session.kept = session.kept.saturating_add(kept);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.give_back(0);
    }
}

/// A call's id where a model can repeat it without harm, else one of its own.
fn as_id(call_id: &str) -> Arc<str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if (1..=LONGEST_ID).contains(&call_id.len()) && call_id.chars().all(plain) {
        return call_id.into();
    }
    let digest: String = Digest::of(call_id).to_string().chars().take(12).collect();
    format!("a_{digest}").into()
}
