//! Makes results of untrusted origin [harmless].

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolcrib_core::{
    __internal::is_plain, ChangeKind, ContentBlock, TextChange, TextOrigin, harmless,
};

use super::cut::CutResult;
use crate::json::map_texts;

/// A call's outcome, cut and sanitized.
pub(super) struct SanitizedResult(pub(super) CutResult);

impl SanitizedResult {
    /// The text, unfenced. The marker is with it unless a block has it.
    pub(super) fn value(&self) -> String {
        match self.0.is_marked_below {
            true => self.0.noted(),
            false => self.0.marked(&self.0.body),
        }
    }
}

/// Sanitizes only results that will be fenced: a trusted tool's text is unchanged.
pub(super) fn sanitize(mut cut: CutResult) -> SanitizedResult {
    if cut.fence.is_some() {
        // The part below begins a separate line with Toolcrib's text: no token spans both.
        cut.note = note(cut.origin, &cut.read(), cut.note_room);
        for text in [&mut cut.body, &mut cut.below] {
            if let Cow::Owned(clean) = cut.origin.harmless(text) {
                *text = clean;
            }
        }
        for block in &mut cut.blocks {
            *block = block.clone().map_texts(|text| cut.origin.harmless(text).into_owned());
        }
        cut.meta = cut.meta.take().and_then(|meta| metadata(Value::Object(*meta)));
        cut.structured = cut.structured.take().map(clean);
    }
    // Toolcrib's marker comes last: an earlier one is a forgery.
    if let Some((position, marker)) = cut.cut_block.take()
        && let Some(ContentBlock::Text { text, .. } | ContentBlock::Paragraph { text, .. }) =
            cut.blocks.get_mut(position)
    {
        *text = match text.is_empty() {
            true => marker.into(),
            false => format!("{text}\n{marker}").into(),
        };
        cut.is_marked_below = true;
    }
    SanitizedResult(cut)
}

/// The kinds of changes of a text that its reader should know: for text of other parties hidden
/// characters, since a look-alike in it shows itself and nothing has to be repeated exactly.
fn noted_kinds(origin: TextOrigin) -> &'static [ChangeKind] {
    match origin {
        TextOrigin::Project => &[ChangeKind::Token, ChangeKind::Hidden],
        _ => &[ChangeKind::Hidden],
    }
}

/// The line about the parts that the model does not read as they are, in at most `room` characters.
fn note(origin: TextOrigin, text: &str, room: usize) -> Option<String> {
    const BRACKETS: usize = "[]".len();
    let shown = origin.shown(text);
    let about = shown.about(text, 1, noted_kinds(origin), room.checked_sub(BRACKETS)?)?;
    Some(format!("[{about}]"))
}

/// Whether a text will have a note.
pub(super) fn needs_note(origin: TextOrigin, text: &str) -> bool {
    let has_noted = |changes: &[TextChange]| {
        changes.iter().any(|change| noted_kinds(origin).contains(&change.kind))
    };
    // Without a token only what is not plain changes.
    (origin == TextOrigin::Project || !is_plain(text)) && has_noted(&origin.shown(text).changes)
}

/// Metadata with harmless texts.
pub(super) fn metadata(meta: Value) -> Option<Box<Map<String, Value>>> {
    match clean(meta) {
        Value::Object(meta) => Some(Box::new(meta)),
        _ => None,
    }
}

/// Data with harmless texts.
fn clean(data: Value) -> Value {
    let mut leaf = |leaf| match leaf {
        Value::String(text) => Value::String(owned(text)),
        other => other,
    };
    map_texts(data, &mut leaf, &mut owned)
}

fn owned(text: String) -> String {
    match harmless(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    }
}
