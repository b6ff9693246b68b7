//! Storage of results as artifacts.

use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::{
    __internal::LruCache, ArtifactStore, ArtifactStoreError, CancellationToken, Digest, Identity,
    TextOrigin, ToolError,
};

use crate::{
    artifact::Artifact,
    content::Content,
    kinds::{
        Kinds,
        kind::{ArtifactKind, Index, QueryRequest},
    },
    page::{Answer, Page},
    turn::{Turn, TurnArtifacts},
};

/// The number of turns whose quotas are remembered; the least recently used one is evicted, and starts
/// with an empty count.
const TURNS: usize = 256;

/// The number of cached indexes.
const INDEXES: usize = 8;

/// Limits of storage and of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArtifactLimits {
    /// The quota of one turn, in bytes. Default: 4 GiB.
    pub turn_bytes: u64,
    /// The quota of one session (tenant, principal and conversation), in bytes. Existing artifacts
    /// are counted when a turn first stores something; concurrent writes of other processes are
    /// not. Default: 8 GiB.
    pub session_bytes: u64,
    /// The maximum number of characters of an answer about an artifact; less if the call's budget
    /// is less. Default: 20,000.
    pub answer_chars: usize,
}

impl Default for ArtifactLimits {
    fn default() -> Self {
        Self { turn_bytes: 4 << 30, session_bytes: 8 << 30, answer_chars: 20_000 }
    }
}

/// An artifact store with its kinds and limits. Clones share it.
#[derive(Clone)]
pub struct Artifacts(Arc<Shared>);

struct Shared {
    store: Arc<dyn ArtifactStore>,
    kinds: Kinds,
    limits: ArtifactLimits,
    turns: Mutex<LruCache<TurnKey, Arc<Turn>>>,
    indexes: Mutex<LruCache<(Digest, Arc<str>), Index>>,
}

/// Owner and turn id.
type TurnKey = (Arc<Identity>, Arc<str>);

impl Artifacts {
    /// Artifacts in this store, with the built-in kinds.
    pub fn new(store: impl ArtifactStore) -> Self {
        Self::with(Arc::new(store), Vec::new(), ArtifactLimits::default())
    }

    /// Artifacts in this store with additional kinds, whose detection runs before that of the
    /// built-in ones.
    pub fn with(
        store: Arc<dyn ArtifactStore>,
        kinds: Vec<Arc<dyn ArtifactKind>>,
        limits: ArtifactLimits,
    ) -> Self {
        Self(Arc::new(Shared {
            store,
            kinds: Kinds::new(kinds),
            limits,
            turns: Mutex::new(LruCache::new(TURNS)),
            indexes: Mutex::new(LruCache::new(INDEXES)),
        }))
    }

    /// The artifacts of one turn: those of its session, and its own. The same identity and run give
    /// the same turn.
    pub fn turn(&self, owner: Arc<Identity>, turn_id: &str) -> TurnArtifacts {
        let key = (owner, Arc::from(turn_id));
        let mut turns = self.0.turns.lock();
        let turn = turns.get(&key).map(|turn| Arc::clone(turn)).unwrap_or_else(|| {
            let session = turns
                .values()
                .filter(|turn| turn.owner == key.0)
                .find_map(|turn| turn.session.if_not_over())
                .unwrap_or_default();
            let turn = Arc::new(Turn::new(Arc::clone(&key.0), Arc::clone(&key.1), session));
            turns.insert(key, Arc::clone(&turn));
            turn
        });
        drop(turns);
        TurnArtifacts::new(self.clone(), turn)
    }

    /// Removes all artifacts of an identity whose turns have ended: their pending writes are
    /// discarded. Blocks.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if some cannot be removed.
    pub fn forget(&self, owner: &Identity) -> Result<(), ArtifactStoreError> {
        let turns = self.0.turns.lock();
        let of_owner: Vec<_> =
            turns.values().filter(|turn| *turn.owner == *owner).cloned().collect();
        drop(turns);
        of_owner.iter().for_each(|turn| turn.session.end());
        self.0.store.forget(owner)
    }

    /// The limits of stored results.
    pub fn limits(&self) -> ArtifactLimits {
        self.0.limits
    }

    /// The names of the available kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.kinds.names()
    }

    pub(crate) fn store(&self) -> &dyn ArtifactStore {
        &*self.0.store
    }

    pub(crate) fn known_kinds(&self) -> &Kinds {
        &self.0.kinds
    }

    /// Runs a query of an artifact's kind.
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
        kind.query(&QueryRequest { query, args, content, index: &index, page, cancellation })
    }

    fn index(
        &self,
        content: &Content,
        kind: &dyn ArtifactKind,
        cancellation: &CancellationToken,
    ) -> Result<Index, ToolError> {
        let key = (content.entry().digest, Arc::from(kind.name()));
        if let Some(index) = self.0.indexes.lock().get(&key) {
            return Ok(index.clone());
        }
        // Made without the lock: two concurrent queries make two indexes, and one is kept.
        let index = kind.index(content, cancellation)?;
        self.0.indexes.lock().insert(key, index.clone());
        Ok(index)
    }
}

toolcrib_core::__internal::debug_fields!(
    Artifacts,
    artifacts,
    kinds = artifacts.0.kinds,
    limits = artifacts.0.limits,
    ..
);

/// The origin of an artifact and its metadata.
#[derive(Debug, Clone)]
pub struct ArtifactSource {
    /// The tool that made the result.
    pub tool: Arc<str>,
    /// The call's id, given by the model. It becomes the artifact's id if it is valid and free.
    pub call_id: Arc<str>,
    /// The name of the kind. Default: detected from the content.
    pub kind: Option<Arc<str>>,
    /// Whether the content may come from an untrusted author. Default: true.
    pub untrusted: bool,
    /// Where the content is from, if it is untrusted. Default: [`TextOrigin::Foreign`].
    pub text_origin: TextOrigin,
}

impl ArtifactSource {
    /// A tool's result with untrusted content.
    pub fn of(tool: impl Into<Arc<str>>, call_id: impl Into<Arc<str>>) -> Self {
        Self {
            tool: tool.into(),
            call_id: call_id.into(),
            kind: None,
            untrusted: true,
            text_origin: TextOrigin::Foreign,
        }
    }

    /// Sets the kind of the content.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Marks the content as trusted.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.untrusted = false;
        self
    }
}
