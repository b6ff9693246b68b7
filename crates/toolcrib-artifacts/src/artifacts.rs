//! Where results become artifacts.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use toolcrib_core::{
    CancellationToken, Digest, Identity, IfTaken, Redact, SpoolEntry, SpoolError, SpoolStore,
    ToolError,
};

use crate::{
    artifact::Artifact,
    content::Content,
    kinds::{ArtifactKind, Asked, Index, Kinds},
    page::{Answer, Page},
    writer::{ArtifactWriter, Unkept},
};

/// How many turns are remembered with what they have kept; a turn that is forgotten begins to count
/// anew.
const TURNS: usize = 256;

/// How many indexes of kinds are kept.
const INDEXES: usize = 8;

/// How long an id may be that is a call's as it stands: it stands in markers, which have to fit.
const LONGEST_ID: usize = 32;

/// How much may be kept, and how much of it is shown at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactLimits {
    /// What one turn may keep, in bytes. Default: 4 GiB.
    pub turn_bytes: u64,
    /// What one session (tenant, principal and conversation) may keep, in bytes. What the store has of
    /// it is counted when a turn first keeps something; what other processes keep at the same time is
    /// not. Default: 8 GiB.
    pub session_bytes: u64,
    /// How many characters an answer about an artifact may have; less where the call's budget is
    /// less. Default: 20,000.
    pub answer_chars: usize,
}

impl Default for ArtifactLimits {
    fn default() -> Self {
        Self { turn_bytes: 4 << 30, session_bytes: 8 << 30, answer_chars: 20_000 }
    }
}

/// A store of artifacts, the kinds that they may be of, and limits. Cloning shares it.
#[derive(Clone)]
pub struct Artifacts(Arc<Shared>);

struct Shared {
    store: Arc<dyn SpoolStore>,
    kinds: Kinds,
    limits: ArtifactLimits,
    turns: Mutex<VecDeque<Arc<Turn>>>,
    indexes: Mutex<VecDeque<(Digest, Arc<str>, Index)>>,
    /// Held from looking for room and a free id until both are taken: turns of one session may want
    /// the same.
    taking: Mutex<()>,
}

/// What one turn has kept.
struct Turn {
    owner: Arc<Identity>,
    run_id: Arc<str>,
    used: Mutex<Used>,
    /// The bytes that the session has, shared by its turns.
    session_bytes: Arc<AtomicU64>,
}

#[derive(Default)]
struct Used {
    bytes: u64,
    /// Whether what the store has of the session was counted for this turn.
    knows_session: bool,
    /// How often an id was wanted.
    wanted: HashMap<Arc<str>, u32>,
}

impl Artifacts {
    /// Keeps artifacts in this store, of the kinds that are built in.
    pub fn new(store: impl SpoolStore) -> Self {
        Self::with(Arc::new(store), Vec::new(), ArtifactLimits::default())
    }

    /// The same with other kinds, which are asked before those that are built in whose a content is.
    pub fn with(
        store: Arc<dyn SpoolStore>,
        kinds: Vec<Arc<dyn ArtifactKind>>,
        limits: ArtifactLimits,
    ) -> Self {
        Self(Arc::new(Shared {
            store,
            kinds: Kinds::new(kinds),
            limits,
            turns: Mutex::default(),
            indexes: Mutex::default(),
            taking: Mutex::default(),
        }))
    }

    /// The artifacts of one turn: those of its session, and what it adds to them. Asked again with the
    /// same identity and run, it is the same turn.
    pub fn turn(&self, owner: Arc<Identity>, run_id: &str) -> TurnArtifacts {
        let mut turns = locked(&self.0.turns);
        let known = turns.iter().find(|turn| *turn.run_id == *run_id && turn.owner == owner);
        let turn = known.cloned().unwrap_or_else(|| {
            let of_session = turns.iter().find(|turn| turn.owner == owner);
            let session_bytes = of_session.map(|turn| Arc::clone(&turn.session_bytes));
            let turn = Arc::new(Turn {
                owner,
                run_id: run_id.into(),
                used: Mutex::default(),
                session_bytes: session_bytes.unwrap_or_default(),
            });
            turns.push_back(Arc::clone(&turn));
            if turns.len() > TURNS {
                turns.pop_front();
            }
            turn
        });
        drop(turns);
        TurnArtifacts { artifacts: self.clone(), turn }
    }

    /// Lets go of all that is kept for an identity, whose turns are over. It blocks.
    ///
    /// # Errors
    /// [`SpoolError`] when something stays.
    pub fn forget(&self, owner: &Identity) -> Result<(), SpoolError> {
        locked(&self.0.turns).retain(|turn| *turn.owner != *owner);
        self.0.store.forget(owner)
    }

    /// The limits.
    pub fn limits(&self) -> ArtifactLimits {
        self.0.limits
    }

    /// The names of the kinds that there are.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.kinds.names()
    }

    pub(crate) fn known_kinds(&self) -> &Kinds {
        &self.0.kinds
    }

    /// Asks a query of an artifact's kind.
    pub(crate) fn ask(
        &self,
        artifact: &Artifact,
        query: &str,
        args: &serde_json::Value,
        page: Page,
        cancellation: &CancellationToken,
    ) -> Result<Answer, ToolError> {
        let (content, kind) = (artifact.content(), artifact.kind());
        let index = self.index(content, &**kind, cancellation)?;
        kind.query(&Asked { query, args, content, index: &index, page, cancellation })
    }

    fn index(
        &self,
        content: &Content,
        kind: &dyn ArtifactKind,
        cancellation: &CancellationToken,
    ) -> Result<Index, ToolError> {
        let digest = content.entry().digest;
        let known = locked(&self.0.indexes)
            .iter()
            .find(|(of, name, _)| *of == digest && **name == *kind.name())
            .map(|(_, _, index)| index.clone());
        if let Some(index) = known {
            return Ok(index);
        }
        // Made without the lock: two who ask at once make two, and one is kept.
        let index = kind.index(content, cancellation)?;
        let mut indexes = locked(&self.0.indexes);
        indexes.push_back((digest, kind.name().into(), index.clone()));
        if indexes.len() > INDEXES {
            indexes.pop_front();
        }
        Ok(index)
    }
}

impl std::fmt::Debug for Artifacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Artifacts")
            .field("kinds", &self.0.kinds)
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

/// Where an artifact comes from, and what it is said to be.
#[derive(Debug, Clone)]
pub struct ArtifactSource {
    /// The tool whose result it is.
    pub tool: Arc<str>,
    /// The call, as the model named it. It becomes the artifact's id where it can be one and is free.
    pub call_id: Arc<str>,
    /// The kind, by name. Default: what the content looks like.
    pub kind: Option<Arc<str>>,
    /// Whether somebody else may have written it. Default: yes.
    pub untrusted: bool,
}

impl ArtifactSource {
    /// A result of a tool, whose content somebody else may have written.
    pub fn of(tool: impl Into<Arc<str>>, call_id: impl Into<Arc<str>>) -> Self {
        Self { tool: tool.into(), call_id: call_id.into(), kind: None, untrusted: true }
    }

    /// Names the kind.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Says that nobody else has written it.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.untrusted = false;
        self
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
        let room = self.room()?;
        let spool = self.artifacts.0.store.create(&self.turn.owner)?;
        Ok(ArtifactWriter::new(self.clone(), source, spool, room, redact))
    }

    /// The artifact of an id.
    ///
    /// # Errors
    /// [`SpoolError::Unknown`] when this session has none, whoever else has one.
    pub fn get(&self, id: &str) -> Result<Artifact, SpoolError> {
        let spooled = self.artifacts.0.store.open(&self.turn.owner, id)?;
        let kind = self.artifacts.known_kinds().named(&spooled.entry.note.kind);
        Ok(Artifact::new(Content::new(spooled), kind))
    }

    /// All artifacts of the session, the newest last.
    ///
    /// # Errors
    /// [`SpoolError`] when the store cannot list them.
    pub fn live(&self) -> Result<Vec<SpoolEntry>, SpoolError> {
        self.artifacts.0.store.entries(&self.turn.owner)
    }

    /// The artifacts that these are among.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    pub(crate) fn run_id(&self) -> &Arc<str> {
        &self.turn.run_id
    }

    /// What may still be kept, and whose limit that is.
    pub(crate) fn room(&self) -> Result<Room, SpoolError> {
        let _taking = locked(&self.artifacts.0.taking);
        self.room_now()
    }

    /// The same, under the lock: what is counted cannot change meanwhile.
    fn room_now(&self) -> Result<Room, SpoolError> {
        let limits = self.artifacts.limits();
        let session_bytes = &self.turn.session_bytes;
        if !self.used().knows_session {
            let bytes = self.live()?.iter().map(|entry| entry.bytes).sum();
            session_bytes.store(bytes, Ordering::Relaxed);
            self.used().knows_session = true;
        }
        let turn = limits.turn_bytes.saturating_sub(self.used().bytes);
        let session = limits.session_bytes.saturating_sub(session_bytes.load(Ordering::Relaxed));
        Ok(if session < turn {
            Room { bytes: session, limit: limits.session_bytes, whose: "session" }
        } else {
            Room { bytes: turn, limit: limits.turn_bytes, whose: "turn" }
        })
    }

    /// Puts what was written under an id of its own, if there is still room: something else may have
    /// been kept since it was begun.
    pub(crate) fn commit(
        &self,
        source: &ArtifactSource,
        kind: &dyn ArtifactKind,
        chars: u64,
        spool: Box<dyn toolcrib_core::SpoolWriter>,
        bytes: u64,
    ) -> Result<Artifact, SpoolError> {
        let note = toolcrib_core::SpoolNote {
            kind: kind.name().into(),
            tool: Arc::clone(&source.tool),
            call_id: Arc::clone(&source.call_id),
            run_id: Arc::clone(self.run_id()),
            untrusted: source.untrusted,
            chars,
        };
        let taking = locked(&self.artifacts.0.taking);
        let room = self.room_now()?;
        if bytes > room.bytes {
            return Err(room.exceeded());
        }
        let id = self.free_id(&source.call_id)?;
        spool.commit(&id, note, IfTaken::Fail)?;
        self.used().bytes += bytes;
        self.turn.session_bytes.fetch_add(bytes, Ordering::Relaxed);
        drop(taking);
        self.get(&id)
    }

    /// The call's id, or one made of it: vendors begin to count anew, and what a model has read of an
    /// id must stay what it was.
    fn free_id(&self, call_id: &str) -> Result<Arc<str>, SpoolError> {
        let base = as_id(call_id);
        loop {
            let id: Arc<str> = {
                let mut used = self.used();
                let wanted = used.wanted.entry(Arc::clone(&base)).or_default();
                *wanted += 1;
                if *wanted == 1 { Arc::clone(&base) } else { format!("{base}.{wanted}").into() }
            };
            match self.artifacts.0.store.open(&self.turn.owner, &id) {
                Err(SpoolError::Unknown { .. }) => return Ok(id),
                Ok(_) | Err(SpoolError::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
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

/// How much may still be kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    limit: u64,
    whose: &'static str,
}

impl Room {
    pub(crate) fn exceeded(self) -> SpoolError {
        SpoolError::Quota { limit: self.limit, whose: self.whose }
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
