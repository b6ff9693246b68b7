//! One artifact.

use std::{fmt::Write as _, sync::Arc};

use toolcrib_core::{
    __internal::counted, ArtifactEntry, CancellationToken, IntoToolOutput, ToolError, ToolOutput,
};

use crate::{
    content::Content,
    kinds::{
        Text,
        kind::{ArtifactKind, Index, QueryRequest},
    },
    page::{Answer, Page},
};

/// The number of lines in a handle, and the number of characters of each.
const HANDLE_LINES: usize = 5;
const HANDLE_LINE: usize = 120;

/// A result that a store keeps. It stays the same as when it was opened, even if its id is
/// overwritten or expires.
///
/// Returned from a tool, it becomes its [handle](Self::handle).
#[derive(Clone)]
pub struct Artifact {
    content: Content,
    kind: Arc<dyn ArtifactKind>,
}

impl Artifact {
    pub(crate) fn new(content: Content, kind: Arc<dyn ArtifactKind>) -> Self {
        Self { content, kind }
    }

    /// The id by which tools read it.
    pub fn id(&self) -> &Arc<str> {
        &self.content.entry().id
    }

    /// The metadata: size, digest, origin, whether it is untrusted.
    pub fn entry(&self) -> &ArtifactEntry {
        self.content.entry()
    }

    /// The bytes of the result.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The kind, which answers queries.
    pub fn kind(&self) -> &Arc<dyn ArtifactKind> {
        &self.kind
    }

    /// The text for a model instead of the content: description, size, first lines, and the tools
    /// to read on.
    pub fn handle(&self) -> String {
        let entry = self.entry();
        let mut text = format!(
            "[artifact {}: {}, {}, {}; read on with artifact_read, artifact_search or artifact_query]",
            entry.id,
            entry.note.kind,
            counted(entry.bytes, "byte"),
            counted(entry.lines, "line")
        );
        // Read errors are reported when the artifact is read.
        let Ok(mut lines) = self.content.lines_from(0) else { return text };
        for _ in 0..HANDLE_LINES {
            let Ok(Some(line)) = lines.next(HANDLE_LINE * 4) else { break };
            if line.length == 0 && line.number + 1 == entry.lines {
                break;
            }
            let shown = line.text();
            let head: String = shown.chars().take(HANDLE_LINE).collect();
            let rest = if head.len() < shown.len() || !line.is_complete() { "…" } else { "" };
            let _ = write!(text, "\n{head}{rest}");
        }
        if entry.lines > HANDLE_LINES as u64 + 1 {
            text.push_str("\n…");
        }
        text
    }

    /// Runs a query that every kind supports.
    pub(crate) fn ask_text(
        &self,
        query: &str,
        args: &serde_json::Value,
        page: Page,
        cancellation: &CancellationToken,
    ) -> Result<Answer, ToolError> {
        let index = Index::default();
        let content = &self.content;
        Text.query(&QueryRequest { query, args, content, index: &index, page, cancellation })
    }
}

impl IntoToolOutput for Artifact {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self.handle()))
    }
}

toolcrib_core::__internal::debug_fields!(Artifact, artifact, artifact.entry());
