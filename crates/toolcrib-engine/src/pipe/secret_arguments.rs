//! Keeps known secrets out of arguments that leave this machine.

use toolcrib_core::{ErrorCode, Tool};

use super::{Batch, Call, Failure, record, validate};

/// The name of this refusal in events, where a rule's label is otherwise.
const RULE: &str = "secret_arguments";

/// Refuses a call of an open-world tool whose arguments contain a known secret of 8 characters or more
/// that the tool does not declare.
pub(super) fn refuse(batch: &Batch<'_>, tool: &Tool, call: &Call) -> Result<(), Failure> {
    let redactor = &batch.engine.redactor;
    if !tool.open_world() || redactor.knows_nothing() {
        return Ok(());
    }
    let declared = &tool.capabilities().secrets;
    let held = redactor.names_in(validate::as_json(tool, call)?);
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
