//! The port from an engine to artifacts.

use std::{any::Any, sync::Arc};

use parking_lot::Mutex;

use super::{ArtifactEntry, ArtifactStoreError};
use crate::{
    names::identity::Identity,
    secrets::secret::Redact,
    tool::{Tool, definition::InvalidToolError, text_origin::TextOrigin},
};

/// Stores results that are too large for a model as artifacts, and provides the tools to read them.
/// Implemented by `toolcrib_artifacts::Artifacts`.
///
/// Neighbor: an [`ArtifactStore`](crate::ArtifactStore) only stores bytes, and provides no tools.
pub trait ArtifactPort: Send + Sync + 'static {
    /// Stores redacted content. Blocks.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if it cannot be stored; its text appears in the truncation marker.
    fn keep(&self, call: &ArtifactCall, content: &[u8])
    -> Result<StoredResult, ArtifactStoreError>;

    /// The tools by which a model reads artifacts. Called once, when an engine is built.
    ///
    /// # Errors
    /// [`InvalidToolError`] if they cannot be made.
    fn tools(&self) -> Result<Vec<Tool>, InvalidToolError>;

    /// The [handle](crate::ToolContext::handle) by which a tool's body makes artifacts from content
    /// that is not in memory as a whole. Each artifact is logged.
    fn handle(
        &self,
        call: ArtifactCall,
        redact: Arc<dyn Redact>,
        kept: ArtifactLog,
    ) -> Arc<dyn Any + Send + Sync>;

    /// Removes all artifacts of an identity whose conversation has ended. Blocks. Artifacts that
    /// cannot be removed now stay until they expire.
    fn forget(&self, identity: &Identity);
}

/// Collects the artifacts that a tool's body stored or failed to store, for the engine's events.
/// Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ArtifactLog(Arc<Mutex<Vec<LogEntry>>>);

/// The stored artifact, or the failure.
type LogEntry = Result<ArtifactEntry, Arc<str>>;

impl ArtifactLog {
    /// Records whether a result was stored.
    pub fn note(&self, kept: Result<&ArtifactEntry, &ArtifactStoreError>) {
        let noted = kept.cloned().map_err(|error| error.operator_text().into());
        self.0.lock().push(noted);
    }

    /// Removes and returns the recorded results: the artifact, or the failure for the operator.
    pub fn take(&self) -> Vec<Result<ArtifactEntry, Arc<str>>> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// The call whose result is stored.
#[derive(Debug, Clone)]
pub struct ArtifactCall {
    /// The owner of the artifact.
    pub identity: Arc<Identity>,
    /// The run's id.
    pub turn_id: Arc<str>,
    /// The call's id, given by the model.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The kind that the tool [names](crate::ToolBuilder::artifact_kind).
    pub kind: Option<Arc<str>>,
    /// Whether the content may come from an untrusted author.
    pub untrusted: bool,
    /// Where the content is from, if it is untrusted.
    pub text_origin: TextOrigin,
}

/// A result that was stored for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    /// The artifact's entry, with the id for the model.
    pub entry: ArtifactEntry,
    /// The text for the model instead of the content, if the tool requests that.
    pub handle: String,
}
