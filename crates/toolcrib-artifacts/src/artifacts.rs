//! Where results become artifacts.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolcrib_core::{CancellationToken, Digest, Identity, SpoolError, SpoolStore, ToolError};

use crate::{
    artifact::Artifact,
    content::Content,
    kinds::{ArtifactKind, Asked, Index, Kinds},
    page::{Answer, Page},
    turn::{Turn, TurnArtifacts},
};

/// How many turns are remembered with what they have kept; a turn that is forgotten begins to count
/// anew.
const TURNS: usize = 256;

/// How many indexes of kinds are kept.
const INDEXES: usize = 8;

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
        }))
    }

    /// The artifacts of one turn: those of its session, and what it adds to them. Asked again with the
    /// same identity and run, it is the same turn.
    pub fn turn(&self, owner: Arc<Identity>, run_id: &str) -> TurnArtifacts {
        let mut turns = locked(&self.0.turns);
        // The newest first: each call asks, and turns of long ago are over.
        let known = turns.iter().rev().find(|turn| *turn.run_id == *run_id && turn.owner == owner);
        let turn = known.cloned().unwrap_or_else(|| {
            let mut of_session = turns.iter().filter(|turn| turn.owner == owner);
            let session = of_session.find_map(|turn| turn.session.if_not_over());
            let turn = Arc::new(Turn::new(owner, run_id, session.unwrap_or_default()));
            turns.push_back(Arc::clone(&turn));
            if turns.len() > TURNS {
                turns.pop_front();
            }
            turn
        });
        drop(turns);
        TurnArtifacts::new(self.clone(), turn)
    }

    /// Lets go of all that is kept for an identity, whose turns are over: what they still write is not
    /// kept. It blocks.
    ///
    /// # Errors
    /// [`SpoolError`] when something stays.
    pub fn forget(&self, owner: &Identity) -> Result<(), SpoolError> {
        let turns = locked(&self.0.turns);
        let of_owner: Vec<_> = turns.iter().filter(|turn| *turn.owner == *owner).cloned().collect();
        drop(turns);
        of_owner.iter().for_each(|turn| turn.session.end());
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

    pub(crate) fn store(&self) -> &dyn SpoolStore {
        &*self.0.store
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

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
