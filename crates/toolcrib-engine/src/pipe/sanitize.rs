//! Makes results of untrusted origin [harmless].

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolcrib_core::{ContentBlock, harmless};

use super::cut::CutResult;
use crate::json::map_texts;

/// A call's outcome, cut and sanitized.
pub(super) struct SanitizedResult(pub(super) CutResult);

impl SanitizedResult {
    /// The text, unfenced. The marker is with it unless a block has it.
    pub(super) fn value(&self) -> String {
        match self.0.is_marked_below {
            true => self.0.body.clone(),
            false => self.0.marked(&self.0.body),
        }
    }
}

/// Sanitizes only results that will be fenced: a trusted tool's text is unchanged.
pub(super) fn sanitize(mut cut: CutResult) -> SanitizedResult {
    if cut.fence.is_some() {
        // The part below begins a separate line with Toolcrib's text: no token spans both.
        for text in [&mut cut.body, &mut cut.below] {
            if let Cow::Owned(clean) = harmless(text) {
                *text = clean;
            }
        }
        for block in &mut cut.blocks {
            *block = block.clone().map_texts(|text| harmless(text).into_owned());
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
