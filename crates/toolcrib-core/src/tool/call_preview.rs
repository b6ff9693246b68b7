//! The change that a call would make.

use std::sync::Arc;

/// A change of a text that a call would make, for the person who approves it, from [`ToolBuilder::preview`](crate::ToolBuilder::preview).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallPreview {
    /// The difference in the unified format, without the names of files. Known secrets are redacted.
    pub difference: Arc<str>,
    /// The arguments that it shows in full, so that they need not be shown besides.
    pub arguments: Vec<Arc<str>>,
}

impl CallPreview {
    /// A difference, which shows these arguments in full.
    pub fn new(
        difference: impl Into<Arc<str>>,
        arguments: impl IntoIterator<Item = impl Into<Arc<str>>>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { difference: difference.into(), arguments }
    }
}
