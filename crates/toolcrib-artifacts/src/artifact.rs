//! One artifact.

use std::{fmt::Write as _, sync::Arc};

use toolcrib_core::{CancellationToken, IntoToolOutput, SpoolEntry, ToolError, ToolOutput};

use crate::{
    content::Content,
    kinds::{ArtifactKind, Asked, Index, Text},
    page::{Answer, Page, counted},
};

/// How many of the first lines a handle shows, and how many characters of each.
const HANDLE_LINES: usize = 5;
const HANDLE_LINE: usize = 120;

/// A result that was kept. What it was when it was handed out it stays, also when something else is
/// kept under its id, or it expires.
///
/// As what a tool returns it is its [handle](Self::handle).
#[derive(Clone)]
pub struct Artifact {
    content: Content,
    kind: Arc<dyn ArtifactKind>,
}

impl Artifact {
    pub(crate) fn new(content: Content, kind: Arc<dyn ArtifactKind>) -> Self {
        Self { content, kind }
    }

    /// The id.
    pub fn id(&self) -> &str {
        &self.content.entry().id
    }

    /// What is known of it: size, digest, where it came from, whether somebody else wrote it.
    pub fn entry(&self) -> &SpoolEntry {
        self.content.entry()
    }

    /// Its bytes.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Its kind.
    pub fn kind(&self) -> &Arc<dyn ArtifactKind> {
        &self.kind
    }

    /// What a model reads in its place: what it is, how large, its first lines, and how to go on.
    pub fn handle(&self) -> String {
        let entry = self.entry();
        let mut text = format!(
            "[artifact {}: {}, {}, {}; read on with artifact_read, artifact_search or artifact_query]",
            entry.id,
            entry.note.kind,
            counted(entry.bytes, "byte"),
            counted(entry.lines, "line")
        );
        // What cannot be read now will say so when it is read.
        let Ok(mut lines) = self.content.lines_from(0) else { return text };
        for _ in 0..HANDLE_LINES {
            let Ok(Some(line)) = lines.next(HANDLE_LINE * 4) else { break };
            if line.length == 0 && line.number + 1 == entry.lines {
                break;
            }
            let shown = line.text();
            let head: String = shown.chars().take(HANDLE_LINE).collect();
            let rest = if head.len() < shown.len() || !line.is_whole() { "…" } else { "" };
            let _ = write!(text, "\n{head}{rest}");
        }
        if entry.lines > HANDLE_LINES as u64 + 1 {
            text.push_str("\n…");
        }
        text
    }

    /// Asks what every artifact can be asked.
    pub(crate) fn ask_text(
        &self,
        query: &str,
        args: &serde_json::Value,
        page: Page,
        cancellation: &CancellationToken,
    ) -> Result<Answer, ToolError> {
        let index = Index::default();
        let content = &self.content;
        Text.query(&Asked { query, args, content, index: &index, page, cancellation })
    }
}

impl IntoToolOutput for Artifact {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self.handle()))
    }
}

impl std::fmt::Debug for Artifact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Artifact").field(self.entry()).finish()
    }
}
