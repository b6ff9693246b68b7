//! The rule list, read again at the call: before validation for rules that need no arguments, and
//! after it as a whole.

use std::sync::Arc;

use toolcrib_core::{Effect, ErrorCode, Tool};

use super::{Batch, Call, Failure, record};
use crate::policy::{Ruling, judge};

/// What the whole list says of an offered call.
pub(super) enum Ruled {
    /// It may go on.
    Allow,
    /// Somebody must approve it; the rule that wants so.
    Ask(Arc<str>),
}

/// A call denied here is never validated: it learns nothing about what is behind the gate.
pub(super) fn by_name(batch: &Batch<'_>, tool: &Tool, call: &Call) -> Result<(), Failure> {
    let ruling = ruling(batch, tool);
    if ruling.offers() { Ok(()) } else { Err(denied(batch, call, ruling)) }
}

pub(super) fn by_arguments(batch: &Batch<'_>, tool: &Tool, call: &Call) -> Result<Ruled, Failure> {
    let ruling = ruling(batch, tool);
    match ruling.effect() {
        Effect::Allow => Ok(Ruled::Allow),
        Effect::Ask => Ok(Ruled::Ask(ruling.label())),
        // An effect that this stage does not know denies.
        _ => Err(denied(batch, call, ruling)),
    }
}

fn ruling<'a>(batch: &Batch<'a>, tool: &Tool) -> Ruling<'a> {
    let visibility = &batch.engine.visibility;
    judge(&visibility.policy, &visibility.skills, tool, batch.situation.facts())
}

/// Says that a rule refused, to the listeners and to the model. The rule's reason is the
/// operator's; the model reads only that it is so.
fn denied(batch: &Batch<'_>, call: &Call, ruling: Ruling<'_>) -> Failure {
    let (rule, reason) = (ruling.label(), ruling.reason());
    let cause = match &reason {
        Some(reason) => format!("{rule}: {reason}"),
        None => rule.to_string(),
    };
    record::denied(batch, call, rule, reason);
    Failure::refused(
        ErrorCode::Denied,
        format!("calling `{}` is not permitted here; do not try it again", call.name),
    )
    .caused_by(cause)
}
