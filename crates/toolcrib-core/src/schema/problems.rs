//! Describes data that does not match its schema, in words that name fields and never values.

use jsonschema::{ValidationError, Validator, error::ValidationErrorKind};
use serde_json::Value;

use crate::shortened::{beginning, shortened};

/// Maximum number of listed problems, and of names in one of them; further ones are counted.
const MOST_PROBLEMS: usize = 10;

/// Maximum length of a problem, in characters: it quotes the schema and names of the value.
const LONGEST_PROBLEM: usize = 1_000;

/// The problems of a value; empty for a valid one. A part of it is called `part`.
pub(super) fn problems(validator: &Validator, value: &Value, part: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut further = 0_usize;
    for error in validator.iter_errors(value) {
        if problems.len() < MOST_PROBLEMS {
            problems.push(beginning(&describe(&error, value, part), LONGEST_PROBLEM));
        } else {
            further += 1;
        }
    }
    if further > 0 {
        problems.push(format!("and {further} more"));
    }
    problems
}

/// Describes one problem: the field and the expectation.
fn describe(error: &ValidationError<'_>, value: &Value, part: &str) -> String {
    let pointer = error.instance_path().to_string();
    let field = pointer.trim_start_matches('/').replace('/', ".");
    let inside = |name: &str| match field.as_str() {
        "" => format!("`{}`", shortened(name)),
        field => format!("`{field}.{}`", shortened(name)),
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<_> =
                unexpected.iter().take(MOST_PROBLEMS).map(|name| inside(name)).collect();
            let more = unexpected.len() - names.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}: there is no such {part}", names.join(", "))
        }
        ValidationErrorKind::Required { property } => {
            format!("{}: it is required", inside(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::FalseSchema => {
            // In a closed object without properties the path ends before the name.
            let instance: &Value = error.instance();
            let parent = value.pointer(&pointer).and_then(Value::as_object);
            let name = parent.into_iter().flatten().find(|(_, one)| std::ptr::eq(*one, instance));
            let named = name.map_or_else(|| format!("`{field}`"), |(name, _)| inside(name));
            format!("{named}: there is no such {part}")
        }
        _ if field.is_empty() => error.masked_with("all of it").to_string(),
        _ => format!("`{field}`: {}", error.masked_with("the value")),
    }
}
