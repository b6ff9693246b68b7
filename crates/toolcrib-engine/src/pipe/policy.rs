//! The rule list, applied again at the call: before validation for rules that need no arguments,
//! and as a whole after it.

use std::sync::{Arc, LazyLock};

use toolcrib_core::{Effect, ErrorCode, PolicyStage, Rule, RuleMatch, Tool};

use super::{
    call::{Batch, Call, Failure},
    indirect, record, validate,
};
use crate::policy::halt::HaltedByRule;

/// The whole list's decision on an offered call.
pub(super) enum PolicyDecision<'a> {
    /// It may continue.
    Allow,
    /// It needs approval; with the rule that requires it.
    Ask(&'a Rule),
}

/// The rule for tools that [ask while the conversation is tainted](Tool::asks_when_tainted).
static ASK_WHEN_TAINTED: LazyLock<Rule> = LazyLock::new(|| {
    Rule::ask("taint").reason(
        "the conversation has read untrusted content, and others read what this call writes",
    )
});

/// Decides without arguments: a call that is denied here, or halted at, is never validated, and so
/// reveals nothing about the tool's schema.
pub(super) fn by_name(batch: &Batch<'_>, tool: &Tool, call: &Call) -> Result<(), Failure> {
    let ruling = batch.engine.visibility.judge(tool, batch.situation.facts());
    let is_decided = ruling.rule().is_none_or(|rule| !rule.reads_arguments());
    match ruling.effect() {
        Effect::Halt if is_decided => Err(refused(batch, call, &ruling, PolicyStage::Name)),
        // Approval is requested later, for calls that could be made.
        Effect::Allow | Effect::Ask | Effect::Halt => Ok(()),
        // Denials apply now, and so does an effect that this stage does not know.
        _ => Err(refused(batch, call, &ruling, PolicyStage::Name)),
    }
}

pub(super) fn by_arguments<'a>(
    batch: &Batch<'a>,
    tool: &Tool,
    call: &Call,
) -> Result<PolicyDecision<'a>, Failure> {
    let args = validate::as_json(tool, call)?;
    let visibility = &batch.engine.visibility;
    if let (Some(called), true) = (&call.called, call.rewritten)
        && let Some(dispatcher) = batch.menu.get(called)
    {
        // Its rules have judged what the model wrote.
        let args = indirect::arguments(&call.name, args);
        let ruling = visibility.judge_call(dispatcher, batch.situation.facts(), &args);
        if ruling.effect() != Effect::Allow {
            return Err(refused(batch, call, &ruling, PolicyStage::Arguments));
        }
    }
    let ruling = visibility.judge_call(tool, batch.situation.facts(), args);
    match (ruling.effect(), ruling.rule()) {
        (Effect::Allow, _) if batch.situation.tainted && tool.asks_when_tainted() => {
            let asks = RuleMatch::Rule(&ASK_WHEN_TAINTED);
            record::checked(batch, call, &asks, PolicyStage::Arguments);
            Ok(PolicyDecision::Ask(&ASK_WHEN_TAINTED))
        }
        (Effect::Allow, _) => {
            record::checked(batch, call, &ruling, PolicyStage::Arguments);
            Ok(PolicyDecision::Allow)
        }
        (Effect::Ask, Some(rule)) => {
            record::checked(batch, call, &ruling, PolicyStage::Arguments);
            Ok(PolicyDecision::Ask(rule))
        }
        // An effect that this stage does not know denies.
        _ => Err(refused(batch, call, &ruling, PolicyStage::Arguments)),
    }
}

/// Reports a rule's refusal to the listeners and to the model, and ends the run if the rule says
/// so. The rule's reason is for the operator; the model reads the rule's message for it, otherwise
/// only that the call is refused.
fn refused(batch: &Batch<'_>, call: &Call, ruling: &RuleMatch<'_>, stage: PolicyStage) -> Failure {
    record::checked(batch, call, ruling, stage);
    let (rule, reason) = (ruling.label(), ruling.reason());
    let cause = match &reason {
        Some(reason) => format!("{rule}: {reason}"),
        None => rule.to_string(),
    };
    record::denied(batch, call, Arc::clone(&rule), reason.clone());
    if ruling.effect() == Effect::Halt {
        let redacted = |reason: Arc<str>| Arc::from(batch.engine.redactor.text(&reason));
        batch.halting.halt(HaltedByRule {
            rule,
            tool: Arc::clone(&call.name),
            call_id: Arc::clone(&call.id),
            reason: reason.map(redacted),
        });
    }
    let told = ruling.rule().and_then(|rule| rule.model_message.as_deref());
    let message = match told {
        Some(told) => told.to_owned(),
        None => format!("calling `{}` is not permitted here; do not try it again", call.name),
    };
    Failure::refused(ErrorCode::Denied, message).caused_by(cause)
}
