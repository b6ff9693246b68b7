//! A call before it runs.

use std::sync::Arc;

use serde_json::Value;

use super::Tool;
use crate::{json::digest::Digest, names::identity::Identity};

/// A call before it runs, as seen by middleware, approvers, granters and journals.
#[derive(Debug, Clone)]
pub struct PendingCall<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// The call's id, given by the model.
    pub call_id: &'a Arc<str>,
    /// The validated arguments. For a middleware: the arguments that run unless it rewrites them;
    /// for all others: exactly the arguments that run.
    pub args: &'a Value,
    /// The content id of tool and arguments.
    pub args_digest: Digest,
    /// The identity that the run acts for.
    pub identity: &'a Identity,
    /// The run's id.
    pub turn_id: &'a Arc<str>,
    /// The id of the turn's personality.
    pub personality: &'a Arc<str>,
}
