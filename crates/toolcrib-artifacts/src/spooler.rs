//! Artifacts as an engine knows them.

use std::{any::Any, sync::Arc};

use toolcrib_core::{
    Identity, InvalidTool, KeptEntries, KeptResult, Redact, SpoolError, SpooledCall, Spooler, Tool,
};

use crate::{
    artifact::Artifact,
    artifacts::{ArtifactSource, Artifacts},
    turn::TurnArtifacts,
    writer::ArtifactWriter,
};

impl Spooler for Artifacts {
    fn keep(&self, call: &SpooledCall, content: &[u8]) -> Result<KeptResult, SpoolError> {
        let artifact = self.turn_of(call).keep(source(call), content)?;
        Ok(KeptResult { entry: artifact.entry().clone(), handle: artifact.handle() })
    }

    fn tools(&self) -> Result<Vec<Tool>, InvalidTool> {
        Self::tools(self)
    }

    fn handle(
        &self,
        call: SpooledCall,
        redact: Arc<dyn Redact>,
        kept: KeptEntries,
    ) -> Arc<dyn Any + Send + Sync> {
        Arc::new(CallArtifacts { turn: self.turn_of(&call), source: source(&call), redact, kept })
    }

    fn forget(&self, identity: &Identity) {
        // What stays is found by nobody, and goes when it expires.
        let _ = Self::forget(self, identity);
    }
}

impl Artifacts {
    fn turn_of(&self, call: &SpooledCall) -> TurnArtifacts {
        self.turn(Arc::clone(&call.identity), &call.run_id)
    }
}

fn source(call: &SpooledCall) -> ArtifactSource {
    ArtifactSource {
        tool: Arc::clone(&call.tool),
        call_id: Arc::clone(&call.call_id),
        kind: call.kind.clone(),
        untrusted: call.untrusted,
    }
}

/// What the body of a tool makes artifacts with, as a handle of its context: for results that it would
/// rather not hold in memory, and of which a model reads the handle.
///
/// ```
/// use toolcrib_artifacts::CallArtifacts;
/// use toolcrib_core::{Tool, ToolContext, ToolError};
///
/// let export = Tool::builder("export")
///     .description("Exports all orders.")
///     .blocking(|_: serde_json::Value, cx: ToolContext| {
///         let mut writer = cx.handle::<CallArtifacts>()?.writer()?;
///         for order in 1..=1_000_000 {
///             writer.write(format!("{{\"order\":{order}}}\n").as_bytes());
///         }
///         // The handle; or, where it could not be kept, its beginning and its end.
///         Ok::<_, ToolError>(match writer.finish() {
///             Ok(artifact) => artifact.handle(),
///             Err(unkept) => unkept.text(),
///         })
///     })?;
/// # Ok::<(), toolcrib_core::InvalidTool>(())
/// ```
#[derive(Clone)]
pub struct CallArtifacts {
    turn: TurnArtifacts,
    source: ArtifactSource,
    redact: Arc<dyn Redact>,
    kept: KeptEntries,
}

impl CallArtifacts {
    /// Begins an artifact that is written piece by piece, and redacted on the way. It blocks.
    ///
    /// # Errors
    /// [`SpoolError`] when there is no place to write to.
    pub fn writer(&self) -> Result<ArtifactWriter, SpoolError> {
        let redact = Some(Arc::clone(&self.redact));
        match self.turn.writer(self.source.clone(), redact) {
            Ok(writer) => Ok(writer.noted_in(self.kept.clone())),
            Err(error) => {
                self.kept.note(Err(&error));
                Err(error)
            }
        }
    }

    /// An artifact of the session.
    ///
    /// # Errors
    /// [`SpoolError::Unknown`] when there is none.
    pub fn get(&self, id: &str) -> Result<Artifact, SpoolError> {
        self.turn.get(id)
    }
}

impl std::fmt::Debug for CallArtifacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallArtifacts").field(&self.source).finish()
    }
}
