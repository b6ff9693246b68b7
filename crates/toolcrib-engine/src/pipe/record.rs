//! The call's first and last event, and its result.

use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Instant,
};

use serde_json::Value;
use toolcrib_core::{
    __internal::{millis, shortened},
    Arguments, ArtifactLog, EventKind, PolicyDefault, PolicyStage, RuleMatch, Tool, ToolResult,
    args_digest,
};

use super::{
    arguments::{self, InvalidArguments, ReadArguments},
    call::{Alike, Batch, Call},
    fence::FencedResult,
    indirect::RedirectedCall,
    intent, redact,
    sizes::Sizes,
};

/// In bytes. A longer name cannot be a tool's; it is shortened before any other stage sees it.
const LONGEST_NAME: usize = 1_024;

pub(super) async fn begin(batch: &Batch<'_>, directed: RedirectedCall) -> Call {
    let RedirectedCall { mut call, called, from_text } = directed;
    // A name that no tool has may be any text that the model has read.
    if call.name.len() > LONGEST_NAME {
        call.name = shortened(&call.name).into();
    }
    if batch.menu.get(&call.name).is_none()
        && let Cow::Owned(redacted) = batch.engine.redactor.text(&call.name)
    {
        call.name = redacted.into();
    }
    let converts = batch.engine.converts_text && !from_text;
    let read = read(batch, &call.name, call.arguments, converts).await;
    let mut converted = if from_text { vec!["".into()] } else { Vec::new() };
    let args = read.map(|read| {
        converted.extend(read.converted);
        read.value
    });
    let call = Call {
        args_digest: match &args {
            Ok(args) => args_digest(&call.name, args),
            Err(not_json) => args_digest(&call.name, &Value::from(not_json.text.as_str())),
        },
        id: call.id,
        name: call.name,
        called,
        args,
        began: Instant::now(),
        has_intent: AtomicBool::new(false),
        kept: batch.artifact_port().map(|_| ArtifactLog::default()),
        sizes: Sizes::of(batch),
        plan: None,
        rewritten: false,
        has_siblings: false,
        alike: Alike::default(),
        waited_us: AtomicU64::new(0),
    };
    let shown = match redact::is_large(&call.args) {
        true => Some(redact::arguments(batch, &call.args).await),
        false => None,
    };
    batch.events.emit(Some(batch.iteration), || EventKind::ToolStart {
        call_id: Arc::clone(&call.id),
        tool: Arc::clone(&call.name),
        origin: batch.menu.get(&call.name).map(|tool| Arc::clone(tool.shared_origin())),
        args: shown.unwrap_or_else(|| self::shown(batch, &call)),
        args_digest: call.args_digest,
        converted,
    });
    call
}

/// Parses arguments, long ones off the async workers.
pub(super) async fn read(
    batch: &Batch<'_>,
    name: &str,
    arguments: Arguments,
    converts: bool,
) -> Result<ReadArguments, InvalidArguments> {
    let Arguments::Text(text) = arguments else {
        return arguments::read(arguments, batch.menu.get(name), converts);
    };
    let (bytes, tool) = (text.len(), batch.menu.get(name).cloned());
    let work = move || arguments::read_text(&text, tool.as_ref(), converts);
    let read = batch.engine.validators.aside(batch.events.turn_id(), bytes, work).await;
    read.unwrap_or_else(|problem| Err(InvalidArguments { text: String::new(), problem }))
}

pub(super) async fn end(
    batch: &Batch<'_>,
    mut call: Call,
    tool: Option<&Tool>,
    fenced: FencedResult,
) -> ToolResult {
    let mut result = ToolResult::new(Arc::clone(&call.id), Arc::clone(&call.name));
    result.called.clone_from(&call.called);
    result.args = redact::arguments(batch, &call.args).await;
    result.args_digest = Some(call.args_digest);
    result.rewritten = call.rewritten;
    result.value = fenced.clean.value().into();
    result.text = fenced.text.into();
    result.lead = fenced.lead.map(Into::into);
    let cut = fenced.clean.0;
    result.blocks = cut.blocks.into();
    result.code = cut.code;
    result.plan = call.plan.take().map(Box::new);
    result.structured = cut.structured;
    result.meta = cut.meta;
    result.cost_usd = cut.cost_usd;
    result.untrusted = cut.fence.is_some();
    result.abandoned = cut.abandoned;
    result.cause = cut.cause.map(Into::into);
    if !cut.artifacts.is_empty() {
        result.artifacts = cut.artifacts.iter().map(|entry| Arc::clone(&entry.id)).collect();
    }
    result.produced_chars = cut.produced_chars;
    result.duration = call.began.elapsed().saturating_sub(call.waited());
    intent::after(batch, tool, &call, result.code, Some(&result)).await;
    let (produced_bytes, stages) = call.sizes.take();
    batch.call_counter.note(call.args_digest);
    batch.events.emit(Some(batch.iteration), || EventKind::ToolEnd {
        call_id: Arc::clone(&result.call_id),
        tool: Arc::clone(&result.name),
        ok: result.is_ok(),
        code: result.code,
        value: Arc::clone(&result.value),
        duration_ms: millis(result.duration),
        cost_usd: result.cost_usd,
        produced_bytes,
        stages,
        abandoned: result.abandoned,
        cause: result.cause.clone(),
    });
    result
}

/// Reports the rule that decided on a call, if there is a policy.
pub(super) fn checked(batch: &Batch<'_>, call: &Call, ruling: &RuleMatch<'_>, stage: PolicyStage) {
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

/// Reports that a rule or a middleware refused a call.
pub(super) fn denied(batch: &Batch<'_>, call: &Call, rule: Arc<str>, reason: Option<Arc<str>>) {
    let redacted = |reason: Arc<str>| Arc::from(batch.engine.redactor.text(&reason));
    batch.events.emit(Some(batch.iteration), || EventKind::PolicyDenied {
        tool: Arc::clone(&call.name),
        call_id: Arc::clone(&call.id),
        rule,
        reason: reason.map(redacted),
    });
}

/// The arguments, in the form to show.
pub(super) fn shown(batch: &Batch<'_>, call: &Call) -> Value {
    batch.engine.redactor.json(redact::passed(&call.args))
}
