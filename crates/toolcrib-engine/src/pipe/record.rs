//! The call's first and last event, and its result.

use std::{borrow::Cow, sync::Arc, time::Instant};

use serde_json::Value;
use toolcrib_core::{
    EventKind, KeptEntries, PolicyDefault, PolicyStage, Ruling, ToolCall, ToolResult, args_digest,
    millis,
};

use super::{
    Batch, Call,
    arguments::{self, NotJson},
    fence::Fenced,
};

pub(super) fn begin(batch: &Batch<'_>, mut call: ToolCall) -> Call {
    // A name that is none of a tool's may be anything that a model has read.
    if batch.menu.get(&call.name).is_none()
        && let Cow::Owned(redacted) = batch.engine.redactor.text(&call.name)
    {
        call.name = redacted.into();
    }
    let args = arguments::read(call.arguments, batch.menu.get(&call.name));
    let call = Call {
        args_digest: match &args {
            Ok(args) => args_digest(&call.name, args),
            Err(not_json) => args_digest(&call.name, &Value::from(not_json.text.as_str())),
        },
        id: call.id,
        name: call.name,
        args,
        began: Instant::now(),
        kept: batch.engine.spooler.as_ref().map(|_| KeptEntries::default()),
    };
    batch.events.emit(Some(batch.iteration), || EventKind::ToolStart {
        call_id: Arc::clone(&call.id),
        tool: Arc::clone(&call.name),
        origin: batch.menu.get(&call.name).map(|tool| Arc::clone(tool.shared_origin())),
        args: shown(batch, &call),
        args_digest: call.args_digest,
    });
    call
}

pub(super) fn end(batch: &Batch<'_>, call: Call, fenced: Fenced) -> ToolResult {
    let mut result = ToolResult::new(Arc::clone(&call.id), Arc::clone(&call.name));
    result.args = batch.engine.redactor.json(passed(call.args));
    result.value = fenced.clean.value().into();
    result.text = fenced.text.into();
    let cut = fenced.clean.0;
    result.blocks = cut.blocks.into();
    result.code = cut.code;
    result.structured = cut.structured;
    result.cost_usd = cut.cost_usd;
    result.untrusted = cut.fence.is_some();
    result.abandoned = cut.abandoned;
    result.cause = cut.cause.map(Into::into);
    if !cut.artifacts.is_empty() {
        result.artifacts = cut.artifacts.iter().map(|entry| Arc::clone(&entry.id)).collect();
    }
    result.produced_chars = cut.produced_chars;
    result.duration = call.began.elapsed();
    batch.made.note(call.args_digest);
    batch.events.emit(Some(batch.iteration), || EventKind::ToolEnd {
        call_id: Arc::clone(&result.call_id),
        tool: Arc::clone(&result.name),
        ok: result.is_ok(),
        code: result.code,
        value: Arc::clone(&result.value),
        duration_ms: millis(result.duration),
        cost_usd: result.cost_usd,
        abandoned: result.abandoned,
        cause: result.cause.clone(),
    });
    result
}

/// Says which rule decided on a call, where there is a policy at all.
pub(super) fn checked(batch: &Batch<'_>, call: &Call, ruling: &Ruling<'_>, stage: PolicyStage) {
    let policy = &batch.engine.visibility.policy;
    if policy.rules.is_empty() && policy.default == PolicyDefault::Allow {
        return;
    }
    batch.events.emit(Some(batch.iteration), || EventKind::PolicyChecked {
        tool: Arc::clone(&call.name),
        call_id: Arc::clone(&call.id),
        rule: ruling.label(),
        effect: ruling.effect(),
        stage,
    });
}

/// Says that a rule or a middleware refused a call.
pub(super) fn denied(batch: &Batch<'_>, call: &Call, rule: Arc<str>, reason: Option<Arc<str>>) {
    let redacted = |reason: Arc<str>| Arc::from(batch.engine.redactor.text(&reason));
    batch.events.emit(Some(batch.iteration), || EventKind::PolicyDenied {
        tool: Arc::clone(&call.name),
        call_id: Arc::clone(&call.id),
        rule,
        reason: reason.map(redacted),
    });
}

/// What is passed, as it may be shown.
pub(super) fn shown(batch: &Batch<'_>, call: &Call) -> Value {
    batch.engine.redactor.json(passed(call.args.clone()))
}

/// What is passed: as data, or as the text that it was.
fn passed(args: Result<Value, NotJson>) -> Value {
    args.unwrap_or_else(|not_json| Value::String(not_json.text))
}
