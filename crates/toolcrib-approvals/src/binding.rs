//! The digest of a call, which a decision is about.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{ApprovalRequest, Digest, ParkedCall, SessionOwner, StoredArguments};

/// A call as far as a decision depends on it.
pub(crate) struct CallBinding<'a> {
    pub(crate) owner: &'a SessionOwner,
    pub(crate) session: Option<&'a Arc<str>>,
    pub(crate) call_id: Option<&'a Arc<str>>,
    pub(crate) tool: &'a str,
    pub(crate) origin: &'a str,
    pub(crate) definition: Digest,
    pub(crate) arguments: &'a StoredArguments,
}

impl CallBinding<'_> {
    /// The digest of the call: of its owner, session, id, tool and arguments. Objects count without
    /// the order of their keys.
    pub(crate) fn digest(&self) -> Digest {
        Digest::of_json(&json!({
            "form": "toolcrib-call-1",
            "tenant": self.owner.tenant,
            "principal": self.owner.principal,
            "session": self.session,
            "call_id": self.call_id,
            "tool": self.tool,
            "origin": self.origin,
            "definition": self.definition,
            "arguments": self.arguments.value,
            "secrets": secrets(self.arguments),
        }))
    }
}

/// The places of the secrets, as JSON.
fn secrets(arguments: &StoredArguments) -> Vec<Value> {
    let secrets = arguments.secrets.iter();
    secrets.map(|secret| json!([secret.pointer, secret.at, secret.name])).collect()
}

/// The digest of a stored call; `None` without arguments. A row whose digest differs from its own
/// binding was changed.
pub(crate) fn digest_of(call: &ParkedCall) -> Option<Digest> {
    let bound = CallBinding {
        owner: &call.owner,
        session: call.session.as_ref(),
        call_id: call.call_id.as_ref(),
        tool: &call.tool,
        origin: &call.origin,
        definition: call.definition,
        arguments: call.arguments.as_ref()?,
    };
    Some(bound.digest())
}

/// The digest of a tool and its arguments for one identity: what a person permits for a run.
pub(crate) fn scope_of(request: &ApprovalRequest<'_>, arguments: &StoredArguments) -> Digest {
    let bound = CallBinding {
        owner: &SessionOwner::from(request.identity),
        session: None,
        call_id: None,
        tool: request.tool.name(),
        origin: request.tool.origin(),
        definition: request.tool.approved_digest(),
        arguments,
    };
    bound.digest()
}

/// The digest of a tool for one identity and conversation, by which a permission for a session is
/// found.
pub(crate) fn tool_scope_of(request: &ApprovalRequest<'_>) -> Digest {
    let (tool, identity) = (request.tool, request.identity);
    Digest::of_json(&json!({
        "form": "toolcrib-tool-1",
        "tenant": identity.tenant,
        "principal": identity.principal,
        "conversation": identity.conversation,
        "tool": tool.name(),
        "origin": tool.origin(),
        "definition": tool.approved_digest(),
        "rule": request.rule.label,
    }))
}
