//! Replaces a call of `call_tool` by a call of its target, before any other stage. From here on it
//! is judged, approved, limited, redacted and reported as a call of the target.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolcrib_core::{Arguments, Effect, ToolCall};

use super::{call::Batch, record};
use crate::deferral::CALL_TOOL;

/// A call, and the name that the model called if it is another.
pub(super) struct RedirectedCall {
    pub(super) call: ToolCall,
    pub(super) called: Option<Arc<str>>,
}

/// A call without a valid target stays a call of `call_tool`, which the pipe refuses.
pub(super) async fn direct(batch: &Batch<'_>, call: ToolCall) -> RedirectedCall {
    if *call.name != *CALL_TOOL {
        return RedirectedCall { call, called: None };
    }
    match target(batch, &call).await {
        Some((name, arguments)) => {
            let ToolCall { id, name: called, .. } = call;
            let call = ToolCall { id, name, arguments };
            RedirectedCall { call, called: Some(called) }
        }
        None => RedirectedCall { call, called: None },
    }
}

async fn target(batch: &Batch<'_>, call: &ToolCall) -> Option<(Arc<str>, Arguments)> {
    let tool = batch.menu.get(CALL_TOOL).filter(|tool| tool.is_framework())?;
    let read = record::read(batch, CALL_TOOL, call.arguments.clone()).await.ok()?;
    // A rule for `call_tool` grants nothing, but one that restricts it applies to it.
    let visibility = &batch.engine.visibility;
    let ruling = visibility.judge_call(tool, batch.situation.facts(), &read);
    if ruling.effect() != Effect::Allow {
        return None;
    }
    let Value::Object(mut fields) = read else { return None };
    let Some(Value::String(name)) = fields.shift_remove("tool") else { return None };
    let arguments = match fields.shift_remove("arguments") {
        None => Arguments::Json(Map::new().into()),
        Some(object @ Value::Object(_)) => Arguments::Json(object),
        // Models often write the object as text.
        Some(Value::String(text)) => Arguments::Text(text),
        Some(_) => return None,
    };
    (fields.is_empty() && *name != *CALL_TOOL).then(|| (name.into(), arguments))
}
