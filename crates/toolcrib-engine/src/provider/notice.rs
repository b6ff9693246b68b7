use std::sync::Arc;

use serde::Serialize;
use toolcrib_core::Catalog;

use super::OnFailure;

/// A source that failed in an iteration, which continued without it or with its previous listing.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Notice {
    /// The source's path.
    pub source: Arc<str>,
    /// The pattern of its tools' names, such as `mcp__git__*`; otherwise the source's id.
    pub name: Arc<str>,
    /// The outcome: [`Stale`](OnFailure::Stale) or [`Omit`](OnFailure::Omit).
    pub outcome: OnFailure,
    /// Why it failed, for the operator; without secrets.
    pub reason: Arc<str>,
    /// The source's last successful listing, if this process has it.
    #[serde(skip)]
    pub(crate) last_good: Option<Catalog>,
}

impl Notice {
    /// The text for a model: a sentence that names the tools, without the cause.
    pub fn model_text(&self) -> String {
        let name = &self.name;
        match self.outcome {
            OnFailure::Stale => {
                format!("The tools of `{name}` may not work at the moment.")
            }
            _ => format!("The tools of `{name}` cannot be used at the moment."),
        }
    }

    /// Whether the source is omitted.
    pub(crate) fn omits(&self) -> bool {
        self.outcome == OnFailure::Omit
    }
}

impl PartialEq for Notice {
    fn eq(&self, other: &Self) -> bool {
        let same_listing = match (&self.last_good, &other.last_good) {
            (Some(a), Some(b)) => a.same(b),
            (a, b) => a.is_none() == b.is_none(),
        };
        self.outcome == other.outcome
            && self.source == other.source
            && self.name == other.name
            && self.reason == other.reason
            && same_listing
    }
}

impl Eq for Notice {}
