//! Fences text that may be untrusted.

use super::sanitize::SanitizedResult;

/// The text in both its forms.
pub(super) struct FencedResult {
    pub(super) clean: SanitizedResult,
    /// As a model reads it.
    pub(super) text: String,
    /// The text before the blocks, if there are blocks.
    pub(super) lead: Option<String>,
}

pub(super) fn fence(clean: SanitizedResult) -> FencedResult {
    let text = match &clean.0.fence {
        // With room only for the marker, no text is left to fence.
        Some(tool) if !clean.0.is_marker_alone() => {
            // The marker is Toolcrib's, so it is outside: one inside is a forgery.
            clean.0.marked(&toolcrib_core::fence(tool, &clean.0.read()))
        }
        _ => clean.0.marked(&clean.0.read()),
    };
    let lead = (!clean.0.blocks.is_empty()).then(|| lead(&clean));
    FencedResult { clean, text, lead }
}

/// The body alone. The marker is with it unless a block has it.
fn lead(clean: &SanitizedResult) -> String {
    let cut = &clean.0;
    let body = match &cut.fence {
        Some(tool) if !cut.body.is_empty() => toolcrib_core::fence(tool, &cut.body),
        _ => cut.body.clone(),
    };
    match (cut.is_marked_below, &cut.note) {
        (true, Some(note)) => format!("{body}\n{note}"),
        (true, None) => body,
        (false, _) => cut.marked(&body),
    }
}
