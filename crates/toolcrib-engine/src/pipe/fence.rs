//! Fences what somebody else may have written.

use super::sanitise::Clean;

/// The text in both its forms.
pub(super) struct Fenced {
    pub(super) clean: Clean,
    /// As a model reads it.
    pub(super) text: String,
}

pub(super) fn fence(clean: Clean) -> Fenced {
    let text = match &clean.0.fence {
        // Where there was only room for the marker, nothing is left to be fenced.
        Some(tool) if !clean.0.is_marker_alone() => {
            // The marker is ours, so it stands outside: one inside is somebody's forgery.
            clean.0.marked(&toolcrib_core::fence(tool, &clean.0.read()))
        }
        _ => clean.0.marked(&clean.0.read()),
    };
    Fenced { clean, text }
}
