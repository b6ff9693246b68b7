//! What a call passes, as it stands in texts.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_core::ToolError;

use crate::template::argument_text;

/// An argument as text; none where it is absent or `null`.
pub(super) fn text<'a>(args: &'a Value, name: &str) -> Option<Cow<'a, str>> {
    present(args, name).map(argument_text)
}

/// An argument, unless it is absent or `null`.
pub(super) fn present<'a>(args: &'a Value, name: &str) -> Option<&'a Value> {
    args.get(name).filter(|argument| !argument.is_null())
}

/// Names the argument and never its value.
pub(super) fn refused(name: &str, problem: &str) -> ToolError {
    ToolError::input_invalid(format!("`{name}` {problem}"))
}
