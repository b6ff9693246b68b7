//! Replaces a call of `call_tool` by a call of its target, before any other stage. From here on it
//! is judged, approved, limited, redacted and reported as a call of the target.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_core::{Arguments, Effect, ToolCall};

use super::{call::Batch, record};
use crate::deferral::CALL_TOOL;

/// A call, and what it was before.
pub(super) struct RedirectedCall {
    pub(super) call: ToolCall,
    /// The name that the model called, if it is another.
    pub(super) called: Option<Arc<str>>,
    /// Whether its arguments were a text within those of `call_tool`: nothing in them is converted
    /// again.
    pub(super) from_text: bool,
}

/// A call without a valid target stays a call of `call_tool`, which the pipe refuses.
pub(super) async fn direct(batch: &Batch<'_>, call: ToolCall) -> RedirectedCall {
    if *call.name != *CALL_TOOL {
        return RedirectedCall { call, called: None, from_text: false };
    }
    match target(batch, &call).await {
        Some((name, arguments, from_text)) => {
            let ToolCall { id, name: called, .. } = call;
            let call = ToolCall { id, name, arguments };
            RedirectedCall { call, called: Some(called), from_text }
        }
        None => RedirectedCall { call, called: None, from_text: false },
    }
}

/// The arguments of `call_tool` for a call of its target.
pub(super) fn arguments(target: &str, args: &Value) -> Value {
    json!({ "tool": target, "arguments": args })
}

async fn target(batch: &Batch<'_>, call: &ToolCall) -> Option<(Arc<str>, Arguments, bool)> {
    let tool = batch.menu.get(CALL_TOOL).filter(|tool| tool.is_framework())?;
    let converts = batch.engine.converts_text;
    let read = record::read(batch, CALL_TOOL, call.arguments.clone(), converts).await.ok()?;
    // A rule for `call_tool` grants nothing, but one that restricts it applies to it.
    let visibility = &batch.engine.visibility;
    let ruling = visibility.judge_call(tool, batch.situation.facts(), &read.value);
    if ruling.effect() != Effect::Allow {
        return None;
    }
    let Value::Object(mut fields) = read.value else { return None };
    let Some(Value::String(name)) = fields.shift_remove("tool") else { return None };
    let arguments = match fields.shift_remove("arguments") {
        None => Map::new().into(),
        Some(object @ Value::Object(_)) => object,
        Some(_) => return None,
    };
    let from_text = !read.converted.is_empty();
    let is_target = fields.is_empty() && *name != *CALL_TOOL;
    is_target.then(|| (name.into(), Arguments::Json(arguments), from_text))
}
