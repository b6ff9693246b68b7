//! Ends a call of a dry run before its effect, unless the tool has none in a dry run.

use std::sync::Arc;

use toolcrib_core::{CallPlan, Tool, ToolOutput};

use super::{
    call::{Batch, Call},
    policy::PolicyDecision,
};

/// The result of a call that is not made; `None` if its body runs. A call that needs approval is
/// never made, since no approver is asked.
pub(super) fn plan(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &mut Call,
    ruled: &PolicyDecision<'_>,
) -> Option<ToolOutput> {
    let mut plan = CallPlan::default();
    let text = match ruled {
        PolicyDecision::Allow if tool.runs_in_dry_run() => return None,
        PolicyDecision::Allow => {
            format!("dry run: `{}` was not called; the call would be made", call.name)
        }
        PolicyDecision::Ask(rule) => {
            let redacted = |reason: &Arc<str>| Arc::from(batch.engine.redactor.text(reason));
            plan.approval_rule = Some(Arc::clone(&rule.label));
            plan.approval_reason = rule.reason.as_ref().map(redacted);
            format!("dry run: `{}` was not called; the call would need approval", call.name)
        }
    };
    call.plan = Some(plan);
    Some(ToolOutput::text(format!("{text}. Go on as if it had succeeded, and do not repeat it.")))
}
