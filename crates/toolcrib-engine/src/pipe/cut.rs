//! A call's outcome from the stage `budget` on.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolcrib_core::{ArtifactEntry, ContentBlock, ErrorCode, TextOrigin};

/// A call's outcome, cut to its cap.
#[derive(Default)]
pub(super) struct CutResult {
    /// The tool's own text.
    pub(super) body: String,
    /// The lines for the blocks, below it.
    pub(super) below: String,
    /// The truncation marker, if a part is missing.
    pub(super) marker: Option<String>,
    /// The tool's name, when the body is to be sanitized and fenced.
    pub(super) fence: Option<String>,
    /// Where the text is from.
    pub(super) origin: TextOrigin,
    /// The characters that the cut left for the note.
    pub(super) note_room: usize,
    /// The line below the fence about the parts that the model does not read as they are.
    pub(super) note: Option<String>,
    pub(super) code: Option<ErrorCode>,
    pub(super) structured: Option<Value>,
    pub(super) meta: Option<Box<Map<String, Value>>>,
    pub(super) blocks: Vec<ContentBlock>,
    /// Whether the marker is in a block.
    pub(super) is_marked_below: bool,
    /// The block whose text is cut, and its marker, which is not in it yet.
    pub(super) cut_block: Option<(usize, String)>,
    pub(super) cost_usd: Option<f64>,
    pub(super) cause: Option<String>,
    pub(super) abandoned: bool,
    pub(super) artifacts: Vec<ArtifactEntry>,
    /// The number of characters before the cut.
    pub(super) produced_chars: u64,
}

impl CutResult {
    /// Whether the cap left room only for the marker.
    pub(super) fn is_marker_alone(&self) -> bool {
        self.body.is_empty() && self.below.is_empty() && self.marker.is_some()
    }

    /// The text that a model reads, without marker and fence.
    pub(super) fn read(&self) -> Cow<'_, str> {
        if self.below.is_empty() {
            Cow::Borrowed(&self.body)
        } else {
            Cow::Owned(format!("{}{}", self.body, self.below))
        }
    }

    /// A form of the body with the note and the marker appended.
    pub(super) fn marked(&self, body: &str) -> String {
        let lines = [&self.note, &self.marker].into_iter().flatten();
        let body = (!body.is_empty()).then_some(body);
        body.into_iter().chain(lines.map(String::as_str)).collect::<Vec<_>>().join("\n")
    }

    /// The body with the note appended, if there is one.
    pub(super) fn noted(&self) -> String {
        match &self.note {
            Some(note) => format!("{}\n{note}", self.body),
            None => self.body.clone(),
        }
    }
}
