//! The arguments of a model's calls in its conversation: as the model wrote them if they were JSON, and as
//! the tool receives them if they had to be mended or converted.

use std::mem;

use serde_json::Value;
use toolcrib_core::{Arguments, Menu, ToolCall};

use super::{
    arguments::{self, ReadArguments},
    convert,
};
use crate::deferral::CALL_TOOL;

/// Reads a call's arguments, and returns those for the conversation. The call keeps what it was read
/// as; one that was mended or converted keeps what the model wrote, so that the pipe reports this.
pub(crate) fn read_call(menu: &Menu, call: &mut ToolCall, converts: bool) -> Arguments {
    let tool = menu.get(&call.name);
    let read = match &call.arguments {
        Arguments::Text(text) => arguments::read_text(text, tool, converts),
        // Most data has nothing to convert: it is not copied to find out.
        Arguments::Json(value) if !converts || !has_json_text(value) => {
            return call.arguments.clone();
        }
        Arguments::Json(value) => arguments::read(Arguments::Json(value.clone()), tool, converts),
    };
    // The pipe refuses it.
    let Ok(mut read) = read else { return call.arguments.clone() };
    convert_target(menu, &call.name, &mut read, converts);
    if !read.is_mended && read.converted.is_empty() {
        return match &call.arguments {
            Arguments::Text(_) => mem::replace(&mut call.arguments, Arguments::Json(read.value)),
            Arguments::Json(value) => Arguments::Json(value.clone()),
        };
    }
    // Texts within a text are not converted, so the pipe refuses the call. If the conversation showed
    // them as plain values, a run that resumes before the call would convert them.
    match read.converted.is_empty() || !is_converted_again(menu, &call.name, &read.value) {
        true => Arguments::Json(read.value),
        false => call.arguments.clone(),
    }
}

/// Converts the arguments of a target within those of `call_tool`.
fn convert_target(menu: &Menu, name: &str, read: &mut ReadArguments, converts: bool) {
    if !converts || *name != *CALL_TOOL || !read.converted.is_empty() {
        return;
    }
    let target = read.value.get("tool").and_then(Value::as_str);
    if let Some(target) = target.and_then(|target| menu.get(target))
        && let Some(arguments) = read.value.get_mut("arguments")
        && has_json_text(arguments)
    {
        read.converted = convert::convert(arguments, target.input_schema());
    }
}

fn is_converted_again(menu: &Menu, name: &str, value: &Value) -> bool {
    let again = arguments::read(Arguments::Json(value.clone()), menu.get(name), true);
    again.is_ok_and(|mut again| {
        convert_target(menu, name, &mut again, true);
        !again.converted.is_empty()
    })
}

/// Whether a text in data may be converted. Stops at data that nests too deep, which is refused.
fn has_json_text(value: &Value) -> bool {
    let mut ahead = vec![value];
    while let Some(value) = ahead.pop() {
        match value {
            Value::String(text) if convert::may_be_json(text) => return true,
            Value::Array(items) => ahead.extend(items),
            Value::Object(map) => ahead.extend(map.values()),
            _ => {}
        }
    }
    false
}
