//! The tool block, in the vendor's schema dialect.
//!
//! | refused | sent instead |
//! |---|---|
//! | `oneOf`, `anyOf`, `allOf` at the root | the properties and required names common to the alternatives, and the rest in words after the description |
//! | `$ref` at the root, which is accepted, but shows the model no properties | the same |
//! | names of arguments other than 1 to 64 of `a-z A-Z 0-9 _ . -` | the argument in words after the description |
//! | keywords of drafts before 2020-12 | the [same](modern()) in 2020-12 |

use serde::Serialize;
use serde_json::{Map, Value};
use toolcrib_core::ToolDefinition;

use super::{Breakpoint, end_cached};
use crate::adapters::{
    protocol::Offer,
    schema::{Keywords, flatten, in_words, modern},
    sent_parts::SentForm,
};

/// The longest name of an argument.
const MAX_ARGUMENT_NAME: usize = 64;

#[derive(Serialize)]
struct ToolDeclaration<'a> {
    name: &'a str,
    description: String,
    input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Breakpoint>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    defer_loading: bool,
}

/// The tool block as JSON. The last tool that no search changes ends with a cache breakpoint. The
/// tools after it are found ones: listed ones end with the breakpoint of the system text, and
/// loadable ones are not part of the cached prefix. The vendor refuses a breakpoint on these.
pub(super) fn tools(offer: Offer<'_>, first: &SentForm) -> String {
    let declared = offer.declared();
    let mut declared: Vec<_> =
        declared.filter_map(|tool| first.of_tool(tool.digest(), &[], || declare(tool))).collect();
    if let Some(last) = offer.stable().checked_sub(1).and_then(|last| declared.get_mut(last)) {
        end_cached(last, |last| last.cache_control = Some(Breakpoint::Ephemeral));
    }
    declared.extend(offer.loadable().iter().filter_map(|tool| {
        let deferred = || ToolDeclaration { defer_loading: true, ..declare(tool) };
        first.of_tool(tool.digest(), &["deferred"], deferred)
    }));
    // Strings and JSON can always be serialized; an empty text would be noticed.
    serde_json::to_string(&declared).unwrap_or_default()
}

fn declare(tool: &ToolDefinition) -> ToolDeclaration<'_> {
    let mut input_schema = modern(tool.input_schema());
    let mut taken = flatten(&mut input_schema, &[]);
    if let Value::Object(root) = &mut input_schema {
        take_badly_named(root, &mut taken);
    }
    let description = in_words(tool.description(), taken);
    ToolDeclaration {
        name: tool.name(),
        description,
        input_schema,
        cache_control: None,
        defer_loading: false,
    }
}

/// Removes the arguments whose names the vendor refuses.
fn take_badly_named(root: &mut Keywords, taken: &mut Keywords) {
    let Some(Value::Object(properties)) = root.get_mut("properties") else { return };
    let (kept, refused): (Map<_, _>, Map<_, _>) =
        std::mem::take(properties).into_iter().partition(|(name, _)| is_taken_name(name));
    *properties = kept;
    if refused.is_empty() {
        return;
    }
    // A closed object would exclude these arguments.
    if root.get("additionalProperties") == Some(&Value::Bool(false)) {
        root.shift_remove("additionalProperties");
    }
    if let Some(Value::Array(required)) = root.get_mut("required") {
        let is_refused =
            |name: &mut Value| name.as_str().is_some_and(|name| refused.contains_key(name));
        let moved: Vec<Value> = required.extract_if(.., is_refused).collect();
        if !moved.is_empty() {
            taken.insert("required".to_owned(), moved.into());
        }
    }
    taken.insert("properties".to_owned(), refused.into());
}

fn is_taken_name(name: &str) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (1..=MAX_ARGUMENT_NAME).contains(&name.len()) && name.bytes().all(is_taken)
}
