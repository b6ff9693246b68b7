//! Keeps known secrets out of arguments that leave this machine.

use std::mem;

use serde_json::Value;
use toolcrib_core::{ErrorCode, Tool};

use super::{
    call::{Batch, Call, Failure},
    record, validate,
};
use crate::json::text_bytes;

/// The name of this refusal in events, instead of a rule's label.
const RULE: &str = "secret_arguments";

/// Refuses a call of an open-world tool whose arguments contain a known secret of 8 characters or
/// more that the tool does not declare.
pub(super) async fn refuse(batch: &Batch<'_>, tool: &Tool, call: &mut Call) -> Result<(), Failure> {
    let redactor = &batch.engine.redactor;
    if !tool.open_world() || redactor.knows_nothing() {
        return Ok(());
    }
    let declared = &tool.capabilities().secrets;
    validate::as_json(tool, call)?;
    let Ok(args) = &mut call.args else { return Ok(()) };
    let (redactor, passed) = (redactor.clone(), mem::take(args));
    // A server receives the client's metadata with the call.
    let client = batch.client.filter(|_| tool.mcp_server().is_some());
    let meta = client.and_then(|client| client.meta()).filter(|meta| !meta.is_empty());
    let meta = meta.map(|meta| Value::Object(meta.clone()));
    let bytes = text_bytes(&passed) + meta.as_ref().map_or(0, text_bytes);
    let work = move || {
        let mut held = redactor.names_in(&passed);
        held.extend(meta.iter().flat_map(|meta| redactor.names_in(meta)));
        (held, passed)
    };
    let aside = batch.engine.validators.aside(tool.shared_origin(), bytes, work).await;
    let held;
    (held, *args) = aside.map_err(|broken| {
        let message = format!("the arguments of `{}` could not be searched", tool.name());
        Failure::refused(ErrorCode::Denied, message).caused_by(broken)
    })?;
    let Some(names) = held.iter().find(|names| !names.iter().any(|name| declared.contains(name)))
    else {
        return Ok(());
    };
    let cause = match names.first() {
        Some(name) => format!(
            "the arguments contain the secret `{name}`, which the tool does not declare in `secrets`"
        ),
        None => "the arguments contain a secret that the tool does not declare".to_owned(),
    };
    record::denied(batch, call, RULE.into(), Some(cause.as_str().into()));
    Err(Failure::refused(
        ErrorCode::Denied,
        format!(
            "the arguments of `{}` contain a secret, which may not be passed to it; call it without",
            tool.name()
        ),
    )
    .caused_by(cause))
}
