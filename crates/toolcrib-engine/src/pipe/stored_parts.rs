//! The fate of the parts of a result that a model does not read, and the marker that tells it.

use std::sync::Arc;

use toolcrib_core::ArtifactEntry;

/// The fate of the part that a model does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remainder {
    /// It is lost; with the reason if there is an artifact store.
    NotKept(Option<String>),
    /// It is in the artifact with this id, with the rest of the result.
    Artifact(Arc<str>),
}

impl Default for Remainder {
    fn default() -> Self {
        Self::NotKept(None)
    }
}

/// The stored parts of a result.
#[derive(Debug, Default)]
pub(super) struct StoredParts {
    pub(super) text: Remainder,
    pub(super) data: Remainder,
    /// For the operator, when something could not be kept.
    pub(super) cause: Option<String>,
    /// The artifacts of the call, made by the tool's body or here.
    pub(super) artifacts: Vec<ArtifactEntry>,
    /// The characters of the artifacts that the text replaces; `None` if the text is the result
    /// itself.
    pub(super) stands_for_chars: Option<u64>,
}

/// The truncation marker, with how to read the rest.
pub(super) fn marker_of(total: usize, rest: &Remainder) -> String {
    match rest {
        Remainder::NotKept(None) => plain_marker_of(total),
        Remainder::NotKept(Some(why)) => {
            format!("[truncated — {total} chars total; the rest was not kept: {why}]")
        }
        Remainder::Artifact(id) => {
            format!("[truncated — {total} chars total; the rest: artifact_read {id}]")
        }
    }
}

/// The shortest marker, which fits if anything does.
pub(super) fn plain_marker_of(total: usize) -> String {
    format!("[truncated — {total} chars total; the rest was not kept]")
}
