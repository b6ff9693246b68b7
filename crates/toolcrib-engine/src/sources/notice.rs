use std::sync::Arc;

use serde::Serialize;
use toolcrib_core::Catalog;

use super::OnFailure;

/// A source that failed in an iteration, which went on without it or with what it listed before.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Notice {
    /// The source's path.
    pub source: Arc<str>,
    /// What its tools are called, `mcp__git__*`; else the source's id.
    pub name: Arc<str>,
    /// What was done: [`Stale`](OnFailure::Stale) or [`Omit`](OnFailure::Omit).
    pub outcome: OnFailure,
    /// Why it failed, for the operator; without secrets.
    pub reason: Arc<str>,
    /// What the source listed when it last could, if this process has that.
    #[serde(skip)]
    pub(crate) last_good: Option<Arc<Catalog>>,
}

impl Notice {
    /// What a model may read of it: a sentence that names the tools, and nothing of the cause.
    pub fn model_text(&self) -> String {
        let name = &self.name;
        match self.outcome {
            OnFailure::Stale => {
                format!("The tools of `{name}` may not work at the moment.")
            }
            _ => format!("The tools of `{name}` cannot be used at the moment."),
        }
    }

    /// Whether the source is left out.
    pub(crate) fn omits(&self) -> bool {
        self.outcome == OnFailure::Omit
    }
}

impl PartialEq for Notice {
    fn eq(&self, other: &Self) -> bool {
        let listing = |notice: &Self| notice.last_good.as_ref().map(Arc::as_ptr);
        self.outcome == other.outcome
            && self.source == other.source
            && self.name == other.name
            && self.reason == other.reason
            && listing(self) == listing(other)
    }
}

impl Eq for Notice {}
