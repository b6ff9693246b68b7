//! Fences text that may be untrusted.

use super::sanitize::Clean;

/// The text in both its forms.
pub(super) struct Fenced {
    pub(super) clean: Clean,
    /// As a model reads it.
    pub(super) text: String,
}

pub(super) fn fence(clean: Clean) -> Fenced {
    let text = match &clean.0.fence {
        // With room only for the marker, no text is left to fence.
        Some(tool) if !clean.0.is_marker_alone() => {
            // The marker is Toolcrib's, so it is outside: one inside is a forgery.
            clean.0.marked(&toolcrib_core::fence(tool, &clean.0.read()))
        }
        _ => clean.0.marked(&clean.0.read()),
    };
    Fenced { clean, text }
}
