//! Fences what somebody else may have written.

use super::sanitise::Clean;

/// The text in both its forms.
pub(super) struct Fenced {
    pub(super) clean: Clean,
    /// As a model reads it.
    pub(super) text: String,
}

pub(super) fn fence(clean: Clean) -> Fenced {
    let mut text = match &clean.0.fence {
        Some(tool) => toolcrib_core::fence(tool, &clean.0.body),
        None => clean.0.body.clone(),
    };
    // Ours, so it stands outside: a marker inside a fence is somebody's forgery.
    if let Some(marker) = &clean.0.marker {
        text.push('\n');
        text.push_str(marker);
    }
    Fenced { clean, text }
}
