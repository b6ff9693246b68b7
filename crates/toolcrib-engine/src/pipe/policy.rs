//! The rule list, read again at the call: before validation for rules that need no arguments, and
//! after it as a whole.

use std::sync::Arc;

use toolcrib_core::{Effect, ErrorCode, PolicyStage, Rule, Ruling, Tool};

use super::{Batch, Call, Failure, record, validate};
use crate::halt::Halt;

/// What the whole list says of an offered call.
pub(super) enum Ruled<'a> {
    /// It may go on.
    Allow,
    /// Somebody must approve it; the rule that wants so.
    Ask(&'a Rule),
}

/// What needs no arguments to be decided: a call that is denied here, or halted at, is never
/// validated, and learns nothing about what is behind the gate.
pub(super) fn by_name(batch: &Batch<'_>, tool: &Tool, call: &Call) -> Result<(), Failure> {
    let ruling = batch.engine.visibility.judge(tool, batch.situation.facts());
    let is_decided = ruling.rule().is_none_or(|rule| !rule.reads_arguments());
    match ruling.effect() {
        Effect::Halt if is_decided => Err(refused(batch, call, &ruling, PolicyStage::Name)),
        // An approver is asked about calls that could be made: later.
        Effect::Allow | Effect::Ask | Effect::Halt => Ok(()),
        // What denies does so now, and so does an effect that this stage does not know.
        _ => Err(refused(batch, call, &ruling, PolicyStage::Name)),
    }
}

pub(super) fn by_arguments<'a>(
    batch: &Batch<'a>,
    tool: &Tool,
    call: &Call,
) -> Result<Ruled<'a>, Failure> {
    let args = validate::as_json(tool, call)?;
    let visibility = &batch.engine.visibility;
    let ruling = visibility.judge_call(tool, batch.situation.facts(), args);
    match (ruling.effect(), ruling.rule()) {
        (Effect::Allow, _) => {
            record::checked(batch, call, &ruling, PolicyStage::Arguments);
            Ok(Ruled::Allow)
        }
        (Effect::Ask, Some(rule)) => {
            record::checked(batch, call, &ruling, PolicyStage::Arguments);
            Ok(Ruled::Ask(rule))
        }
        // An effect that this stage does not know denies.
        _ => Err(refused(batch, call, &ruling, PolicyStage::Arguments)),
    }
}

/// Says that a rule refused, to the listeners and to the model, and ends the run if the rule says so.
/// The rule's reason is the operator's; the model reads what the rule has for it, else only that it is
/// so.
fn refused(batch: &Batch<'_>, call: &Call, ruling: &Ruling<'_>, stage: PolicyStage) -> Failure {
    record::checked(batch, call, ruling, stage);
    let (rule, reason) = (ruling.label(), ruling.reason());
    let cause = match &reason {
        Some(reason) => format!("{rule}: {reason}"),
        None => rule.to_string(),
    };
    record::denied(batch, call, Arc::clone(&rule), reason.clone());
    if ruling.effect() == Effect::Halt {
        let redacted = |reason: Arc<str>| Arc::from(batch.engine.redactor.text(&reason));
        batch.halting.halt(Halt {
            rule,
            tool: Arc::clone(&call.name),
            call_id: Arc::clone(&call.id),
            reason: reason.map(redacted),
        });
    }
    let told = ruling.rule().and_then(|rule| rule.tell_model.as_deref());
    let message = match told {
        Some(told) => told.to_owned(),
        None => format!("calling `{}` is not permitted here; do not try it again", call.name),
    };
    Failure::refused(ErrorCode::Denied, message).caused_by(cause)
}
