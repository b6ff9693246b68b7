//! Describes data that does not match its schema, in words that name fields and never values.

use jsonschema::{
    ValidationError, Validator,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value;

use super::accepts::JsonType;
use crate::text::shortened::{beginning, shortened};

/// Maximum number of listed problems, and of names in one of them; further ones are counted.
const MOST_PROBLEMS: usize = 10;

/// Maximum length of a problem, in characters: it quotes the schema and names of the value.
const LONGEST_PROBLEM: usize = 1_000;

/// The problems of a value; empty for a valid one. A part of it is called `part`.
pub(super) fn problems(validator: &Validator, value: &Value, part: &str) -> Vec<String> {
    let mut problems = Problems { value, part, listed: Vec::new(), further: 0 };
    for error in validator.iter_errors(value) {
        problems.add(&error);
    }
    let Problems { mut listed, further, .. } = problems;
    if further > 0 {
        listed.push(format!("and {further} more"));
    }
    listed
}

struct Problems<'v> {
    value: &'v Value,
    part: &'v str,
    listed: Vec<String>,
    further: usize,
}

impl Problems<'_> {
    fn add(&mut self, error: &ValidationError<'_>) {
        match alternatives(error) {
            Some(alternatives) => self.add_nearest(error, alternatives),
            None => self.list(|problems| problems.describe(error)),
        }
    }

    fn list(&mut self, describe: impl FnOnce(&Self) -> String) {
        match self.listed.len() < MOST_PROBLEMS {
            true => self.listed.push(beginning(&describe(self), LONGEST_PROBLEM)),
            false => self.further += 1,
        }
    }

    /// Adds the problems of the alternative that the value resembles most. If the value, or the field that
    /// tells alternatives apart, is wrong for all of them, adds what each expects there instead.
    fn add_nearest(
        &mut self,
        error: &ValidationError<'_>,
        alternatives: &[Vec<ValidationError<'static>>],
    ) {
        let whole = error.instance_path().as_str();
        let nearest = alternatives.iter().min_by_key(|errors| distance(errors, whole));
        let Some(nearest) = nearest.filter(|errors| !errors.is_empty()) else {
            return self.list(|problems| problems.describe(error));
        };
        let Some(decisive) = nearest.iter().find(|error| rules_out(error, whole)) else {
            return nearest.iter().for_each(|error| self.add(error));
        };
        let place = decisive.instance_path().as_str();
        let mut all: Vec<String> = Vec::new();
        for expected in alternatives.iter().flatten().filter_map(|error| expected(error, place)) {
            match all.len() {
                _ if all.contains(&expected) => {}
                ..MOST_PROBLEMS => all.push(expected),
                MOST_PROBLEMS => all.push("others".to_owned()),
                _ => break,
            }
        }
        self.list(|_| {
            let received = JsonType::of(decisive.instance());
            let received = match decisive.kind() {
                ValidationErrorKind::Constant { expected_value }
                    if JsonType::of(expected_value) == received =>
                {
                    "another value"
                }
                _ => received.with_article(),
            };
            format!("{}expected {}, received {received}", prefix(place), all.join(" or "))
        });
    }

    /// Describes one problem: the field and the expectation.
    fn describe(&self, error: &ValidationError<'_>) -> String {
        let Self { value, part, .. } = self;
        let pointer = error.instance_path().as_str();
        let field = field(pointer);
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
                let parent = value.pointer(pointer).and_then(Value::as_object);
                let name =
                    parent.into_iter().flatten().find(|(_, one)| std::ptr::eq(*one, instance));
                let named = name.map_or_else(|| format!("`{field}`"), |(name, _)| inside(name));
                format!("{named}: there is no such {part}")
            }
            ValidationErrorKind::Type { kind } => {
                let received = JsonType::of(error.instance()).with_article();
                format!("{}expected {}, received {received}", prefix(pointer), types(kind))
            }
            ValidationErrorKind::OneOfMultipleValid { context } => {
                let fit = context.iter().filter(|errors| errors.is_empty()).count();
                format!(
                    "{}it fits {fit} alternatives at once, and exactly one is permitted; add or remove \
                     fields of one of them",
                    prefix(pointer)
                )
            }
            ValidationErrorKind::BacktrackLimitExceeded { .. }
            | ValidationErrorKind::RegexEngineFailure { .. } => too_many_steps(pointer),
            _ if field.is_empty() => error.masked_with("all of it").to_string(),
            _ => format!("`{field}`: {}", error.masked_with("the value")),
        }
    }
}

/// The problem of a text, or of the name of a field, that takes too many steps to compare with its pattern.
pub(super) fn too_long_for_pattern(value: &Value, text: &str) -> String {
    let pointer = pointer_to(value, text).unwrap_or_default();
    beginning(&too_many_steps(&pointer), LONGEST_PROBLEM)
}

fn too_many_steps(pointer: &str) -> String {
    format!(
        "{}comparing it with its pattern takes too many steps; pass a shorter text",
        prefix(pointer)
    )
}

/// The path of this very text in a value; for the name of a field, that of its object.
fn pointer_to(value: &Value, text: &str) -> Option<String> {
    let below = |name: &str, member| Some(format!("/{name}{}", pointer_to(member, text)?));
    match value {
        Value::String(one) => std::ptr::eq(one.as_str(), text).then(String::new),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| below(&at.to_string(), item))
        }
        Value::Object(map) if map.keys().any(|name| std::ptr::eq(name.as_str(), text)) => {
            Some(String::new())
        }
        Value::Object(map) => map.iter().find_map(|(name, member)| below(name, member)),
        _ => None,
    }
}

/// The path of a field, as a reader of code would write it.
fn field(pointer: &str) -> String {
    pointer.trim_start_matches('/').replace('/', ".")
}

fn prefix(pointer: &str) -> String {
    match field(pointer).as_str() {
        "" => "all of it: ".to_owned(),
        field => format!("`{field}`: "),
    }
}

/// The problems of each alternative, if none of them fits.
fn alternatives<'e>(error: &'e ValidationError<'_>) -> Option<&'e [Vec<ValidationError<'static>>]> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            Some(context)
        }
        _ => None,
    }
}

/// The depth of a problem below the value that has alternatives, whose path is `whole`.
fn depth(error: &ValidationError<'_>, whole: &str) -> usize {
    let inside = error.instance_path().as_str().get(whole.len()..).unwrap_or_default();
    inside.matches('/').count()
}

/// Whether a problem shows that an alternative is not meant: the value is of another kind, or its field that
/// tells alternatives apart has another constant.
fn rules_out(error: &ValidationError<'_>, whole: &str) -> bool {
    match error.kind() {
        ValidationErrorKind::Type { .. } | ValidationErrorKind::Enum { .. } => {
            depth(error, whole) == 0
        }
        ValidationErrorKind::Constant { .. } => depth(error, whole) <= 1,
        _ => depth(error, whole) == 0 && expected(error, whole).is_some(),
    }
}

/// How far a value is from an alternative, by the problems of the alternative.
fn distance(errors: &[ValidationError<'_>], whole: &str) -> u64 {
    let of = |error: &ValidationError<'_>| match (error.kind(), depth(error, whole)) {
        (ValidationErrorKind::Type { .. }, 0) => 10_000,
        (ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. }, 0) => 5_000,
        (ValidationErrorKind::Constant { .. }, 1) => 1_000,
        (ValidationErrorKind::Required { .. }, 0) | (ValidationErrorKind::FalseSchema, 1) => 100,
        (ValidationErrorKind::AdditionalProperties { unexpected }, 0) => {
            100 * unexpected.len() as u64
        }
        (ValidationErrorKind::Enum { .. }, 1) => 50,
        _ => {
            let nested = alternatives(error).into_iter().flatten();
            nested.map(|errors| distance(errors, whole)).min().unwrap_or(10)
        }
    };
    errors.iter().map(of).fold(0, u64::saturating_add)
}

/// The expectation of an alternative at a place where the value is of the wrong kind for it.
fn expected(error: &ValidationError<'_>, place: &str) -> Option<String> {
    if error.instance_path().as_str() != place {
        return None;
    }
    match error.kind() {
        ValidationErrorKind::Type { kind } => Some(types(kind)),
        ValidationErrorKind::Constant { expected_value } => Some(expected_value.to_string()),
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().into_iter().flatten();
            let options: Vec<_> = options.take(MOST_PROBLEMS).map(Value::to_string).collect();
            Some(options.join(" or "))
        }
        _ => {
            let nested = alternatives(error)?.iter().flatten();
            let nested: Vec<_> = nested.filter_map(|error| expected(error, place)).collect();
            (!nested.is_empty()).then(|| nested.join(" or "))
        }
    }
}

/// Types in a sentence: `an integer or null`.
fn types(kind: &TypeKind) -> String {
    let names: Vec<_> = match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect(),
    };
    let named = |name: &String| match name.as_str() {
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    let mut all: Vec<_> = names.iter().filter(|name| *name != "null").map(named).collect();
    if all.len() < names.len() {
        all.push("null".to_owned());
    }
    all.join(" or ")
}
