//! What an engine knows of artifacts: a port.

use std::{
    any::Any,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    definition::InvalidTool,
    identity::Identity,
    secrets::Redact,
    spool::{SpoolEntry, SpoolError},
    tool::Tool,
};

/// Makes artifacts of results that are too large for a model, and offers the tools to look at them.
/// `toolcrib_artifacts::Artifacts` is one.
///
/// Neighbour: a [`SpoolStore`](crate::SpoolStore) only keeps bytes, and knows of no tools.
pub trait Spooler: Send + Sync + 'static {
    /// Keeps a content, which is redacted. It blocks.
    ///
    /// # Errors
    /// [`SpoolError`] when it cannot be kept; its text stands in the marker of the cut.
    fn keep(&self, call: &SpooledCall, content: &[u8]) -> Result<KeptResult, SpoolError>;

    /// The tools by which a model looks at what was kept. Asked once, when an engine is built.
    ///
    /// # Errors
    /// [`InvalidTool`] when they cannot be made.
    fn tools(&self) -> Result<Vec<Tool>, InvalidTool>;

    /// What the body of a tool finds as a [handle](crate::ToolContext::handle), to make artifacts of
    /// what need not be in memory as a whole. Each of them is noted.
    fn handle(
        &self,
        call: SpooledCall,
        redact: Arc<dyn Redact>,
        kept: KeptEntries,
    ) -> Arc<dyn Any + Send + Sync>;

    /// Lets go of all that is kept for an identity whose conversation is over. It blocks. What cannot
    /// be taken away now stays until it expires.
    fn forget(&self, identity: &Identity);
}

/// What the body of a tool keeps or cannot keep, on its way to the engine, which tells of it. Cloning
/// shares it.
#[derive(Debug, Clone, Default)]
pub struct KeptEntries(Arc<Mutex<Vec<Noted>>>);

/// What was kept, or why it was not.
type Noted = Result<SpoolEntry, Arc<str>>;

impl KeptEntries {
    /// Notes what became of something.
    pub fn note(&self, kept: Result<&SpoolEntry, &SpoolError>) {
        let noted = kept.cloned().map_err(|error| error.why_not_kept().into());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(noted);
    }

    /// What was noted since the last time: what was kept, or why it was not, for the operator.
    pub fn take(&self) -> Vec<Result<SpoolEntry, Arc<str>>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The call whose result is kept.
#[derive(Debug, Clone)]
pub struct SpooledCall {
    /// On whose behalf. What is kept is theirs.
    pub identity: Arc<Identity>,
    /// The run's id.
    pub run_id: Arc<str>,
    /// The call's id, as the model gave it.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The kind that the tool [names](crate::ToolBuilder::artifact_kind).
    pub kind: Option<Arc<str>>,
    /// Whether somebody else may have written it.
    pub untrusted: bool,
}

/// A result that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResult {
    /// What is known of it: also the id that a model reads it by.
    pub entry: SpoolEntry,
    /// What a model reads in its place, where the tool asks for that.
    pub handle: String,
}
