//! The engine's port to artifacts.

use std::{any::Any, sync::Arc};

use toolcrib_core::{
    ArtifactCall, ArtifactLog, ArtifactPort, ArtifactStoreError, Identity, InvalidToolError,
    Redact, StoredResult, Tool,
};

use crate::{
    artifact::Artifact,
    artifacts::{ArtifactSource, Artifacts},
    turn::TurnArtifacts,
    writer::ArtifactWriter,
};

impl ArtifactPort for Artifacts {
    fn keep(
        &self,
        call: &ArtifactCall,
        content: &[u8],
    ) -> Result<StoredResult, ArtifactStoreError> {
        let artifact = self.turn_of(call).keep(source(call), content)?;
        Ok(StoredResult { entry: artifact.entry().clone(), handle: artifact.handle() })
    }

    fn tools(&self) -> Result<Vec<Tool>, InvalidToolError> {
        Self::tools(self)
    }

    fn handle(
        &self,
        call: ArtifactCall,
        redact: Arc<dyn Redact>,
        kept: ArtifactLog,
    ) -> Arc<dyn Any + Send + Sync> {
        Arc::new(CallArtifacts { turn: self.turn_of(&call), source: source(&call), redact, kept })
    }

    fn forget(&self, identity: &Identity) {
        // Remaining artifacts cannot be read, and are removed when they expire.
        let _ = Self::forget(self, identity);
    }
}

impl Artifacts {
    fn turn_of(&self, call: &ArtifactCall) -> TurnArtifacts {
        self.turn(Arc::clone(&call.identity), &call.turn_id)
    }
}

fn source(call: &ArtifactCall) -> ArtifactSource {
    ArtifactSource {
        tool: Arc::clone(&call.tool),
        call_id: Arc::clone(&call.call_id),
        kind: call.kind.clone(),
        untrusted: call.untrusted,
        text_origin: call.text_origin,
    }
}

/// Makes artifacts in a tool's body, as a handle of its context: for results that are too large for
/// memory. The model reads the artifact's handle.
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
/// # Ok::<(), toolcrib_core::InvalidToolError>(())
/// ```
#[derive(Clone)]
pub struct CallArtifacts {
    turn: TurnArtifacts,
    source: ArtifactSource,
    redact: Arc<dyn Redact>,
    kept: ArtifactLog,
}

impl CallArtifacts {
    /// Starts an artifact that is written in pieces, with redaction. Blocks.
    ///
    /// # Errors
    /// [`ArtifactStoreError`] if the store cannot be written to.
    pub fn writer(&self) -> Result<ArtifactWriter, ArtifactStoreError> {
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
    /// [`ArtifactStoreError::Unknown`] if it does not exist.
    pub fn get(&self, id: &str) -> Result<Artifact, ArtifactStoreError> {
        self.turn.get(id)
    }
}

toolcrib_core::__internal::debug_fields!(CallArtifacts, artifacts, artifacts.source);
