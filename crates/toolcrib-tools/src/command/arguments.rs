//! From a call's arguments to those of a program.

use std::{borrow::Cow, ffi::OsString};

use serde_json::Value;
use toolcrib_core::ToolError;

use crate::{
    arguments::{argument_text, present, refused, text},
    template::{Part, Template},
};

/// The end of the options of most programs.
const END_OF_OPTIONS: &str = "--";

/// An item of the argument vector, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArgTemplate {
    pub(super) template: Template,
    pub(super) when: Option<String>,
    pub(super) allow_leading_dash: bool,
}

/// The argument vector of a call.
pub(super) fn fill(items: &[ArgTemplate], args: &Value) -> Result<Vec<OsString>, ToolError> {
    let mut filled = Vec::with_capacity(items.len());
    let mut options_ended = false;
    // Whether the last item is an option whose value may be what comes next, `--` included: what
    // stood there in the declaration is left out.
    let mut option_waits = false;
    for item in items {
        let before = filled.len();
        if !item.is_wanted(args) {
            option_waits |= ends_with_option(&filled);
            continue;
        }
        let may_begin_with_dash = item.allow_leading_dash || options_ended;
        match item.template.parts() {
            [Part::Literal(literal)] => {
                options_ended |= literal == END_OF_OPTIONS && !option_waits;
                filled.push(literal.into());
            }
            [Part::Param { name, .. }] => {
                let values = match present(args, name) {
                    None => &[],
                    Some(Value::Array(values)) => values.as_slice(),
                    Some(value) => std::slice::from_ref(value),
                };
                for value in values {
                    let text = passable(argument_text(value), name)?;
                    refuse_dash(&text, name, may_begin_with_dash)?;
                    filled.push(text.into_owned().into());
                }
            }
            parts => filled.extend(joined(parts, args, may_begin_with_dash)?),
        }
        option_waits = filled.len() == before && (option_waits || ends_with_option(&filled));
    }
    Ok(filled)
}

fn ends_with_option(filled: &[OsString]) -> bool {
    filled.last().is_some_and(|last| {
        last.as_encoded_bytes().starts_with(b"-") && last.as_encoded_bytes() != b"--"
    })
}

impl ArgTemplate {
    fn is_wanted(&self, args: &Value) -> bool {
        let Some(parameter) = &self.when else { return true };
        present(args, parameter).is_some_and(|value| *value != Value::Bool(false))
    }
}

/// An item of several parts, or of none; nothing where an argument of it is absent.
fn joined(
    parts: &[Part],
    args: &Value,
    may_begin_with_dash: bool,
) -> Result<Option<OsString>, ToolError> {
    let mut item = String::new();
    for part in parts {
        match part {
            Part::Literal(literal) => item.push_str(literal),
            // No item was read with one.
            Part::Secret { .. } => {}
            Part::Param { name, .. } => match text(args, name) {
                None => return Ok(None),
                Some(argument) => item.push_str(&passable(argument, name)?),
            },
        }
    }
    if let Some(Part::Param { name, .. }) = parts.first() {
        refuse_dash(&item, name, may_begin_with_dash)?;
    }
    Ok(Some(item.into()))
}

/// An argument, unless it cannot be passed.
fn passable<'a>(text: Cow<'a, str>, parameter: &str) -> Result<Cow<'a, str>, ToolError> {
    if text.contains('\0') {
        return Err(refused(parameter, "contains a NUL character, which no program can be passed"));
    }
    Ok(text)
}

fn refuse_dash(text: &str, parameter: &str, allowed: bool) -> Result<(), ToolError> {
    if text.starts_with('-') && !allowed {
        return Err(refused(
            parameter,
            "may not begin with `-` here: the program would take it for an option",
        ));
    }
    Ok(())
}
