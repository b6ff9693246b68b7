//! System texts: of the agent, and of personalities.

use std::sync::Arc;

use toolcrib_config::Problems;

use super::{root::Root, text_file::MAX_TEXT};
use crate::file::SystemText;

/// The text; `None` if its file cannot be read, which is recorded.
pub(crate) fn system_text(text: &SystemText, root: &Root, problems: &Problems) -> Option<Arc<str>> {
    match text {
        SystemText::Here(text) => Some(Arc::clone(text)),
        SystemText::File(file) => {
            root.by_values().named_text(file, MAX_TEXT, problems).map(Arc::from)
        }
    }
}
