//! Arguments of a call as text.

use std::borrow::Cow;

use serde_json::Value;
use toolcrib_core::ToolError;

/// An argument, unless it is absent or `null`.
pub(crate) fn present<'a>(args: &'a Value, name: &str) -> Option<&'a Value> {
    args.get(name).filter(|argument| !argument.is_null())
}

/// An argument as text; none where it is absent or `null`.
pub(crate) fn text<'a>(args: &'a Value, name: &str) -> Option<Cow<'a, str>> {
    present(args, name).map(argument_text)
}

/// An argument as text: a string as it is, all else as compact JSON.
pub(crate) fn argument_text(argument: &Value) -> Cow<'_, str> {
    match argument {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Names the argument and never its value.
pub(crate) fn refused(name: &str, problem: &str) -> ToolError {
    ToolError::input_invalid(format!("`{name}` {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stand_as_people_write_them() {
        let text = |value: Value| argument_text(&value).into_owned();
        assert_eq!(text("a \"b\"".into()), "a \"b\"");
        assert_eq!(text(true.into()), "true");
        assert_eq!(text(1.5.into()), "1.5");
        assert_eq!(text(serde_json::json!({ "a": [1, null] })), r#"{"a":[1,null]}"#);
    }
}
