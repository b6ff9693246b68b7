//! JSON Schemas: checked, compiled, and applied to values, each with limited work.
//!
//! Schemas and values are untrusted, and both decide how much work validation is. So a schema is
//! refused by its [`Plan`] before it is compiled, and a value by its count of steps before it is
//! validated.

mod accepts;
mod foreign;
mod keywords;
mod patterns;
mod plan;
mod problems;
mod references;
mod steps;

use std::sync::Arc;

use jsonschema::{Validator, error::ValidationErrorKind};
use serde_json::Value;

use self::plan::Plan;
pub use self::{
    accepts::{AcceptedTypes, JsonType, ValueStep},
    foreign::leave_foreign_patterns,
};
use crate::json::depth::{DEEPEST_JSON, nests_too_deep};

/// Keywords that can keep a valid schema from being compiled: with a pattern that no engine reads, or
/// a reference without a target or to the outside.
const CAN_FAIL: [&str; 4] = ["$ref", "$dynamicRef", "pattern", "patternProperties"];

/// The maximum number of steps for a value: about 100 ms. A page of 100 nested blocks, of 60 kinds,
/// takes a third of it.
const MOST_STEPS: u64 = 4_000_000;

/// The maximum number of steps for a value if the caller does not wait for another thread: about 10
/// ms.
const MOST_AT_ONCE: u64 = 400_000;

/// The maximum number of steps with which each problem is listed. The validator creates all
/// problems at once, up to one per step.
const MOST_EXPLAINED: u64 = 20_000;

/// The problem of a value that takes more steps, not only for its patterns.
const TOO_MUCH: &str =
    "it has too many values, or nests too deep, to be validated against the schema; pass less";

/// Checks whether an engine can enforce a schema of arguments; a tool with another schema is
/// withheld. The schema declares its dialect; default: draft 2020-12.
///
/// # Errors
/// The problem and its position, without values of the schema. That includes a schema that would
/// take too much work, such as nested alternatives that multiply through `$ref`.
pub fn check_schema(schema: &Value) -> Result<(), Arc<str>> {
    if nests_too_deep(schema) {
        return Err(format!("it nests deeper than {DEEPEST_JSON} levels").into());
    }
    match must_be_compiled(schema) {
        true => CompiledSchema::new(schema).map(drop),
        false => check_uncompiled(schema),
    }
}

/// Whether only compiling a schema shows that it can be enforced. Compiling takes several times as
/// long as [`check_uncompiled`].
pub fn must_be_compiled(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| CAN_FAIL.contains(&key.as_str()) || must_be_compiled(value)),
        Value::Array(items) => items.iter().any(must_be_compiled),
        _ => false,
    }
}

/// The [check](check_schema) of a schema that nests no deeper than the limit, and
/// [need not be compiled](must_be_compiled).
///
/// # Errors
/// The problem, as of [`check_schema`].
pub fn check_uncompiled(schema: &Value) -> Result<(), Arc<str>> {
    Plan::of(schema)?;
    jsonschema::meta::validate(schema).map_err(|error| problem(&error))
}

/// Checks whether an engine would compile a schema at all: only the work that it causes, and
/// whether its references can be resolved. [`check_schema`] checks the rest too. For code that
/// compiles the schema itself.
///
/// # Errors
/// Why it would not.
pub fn check_schema_work(schema: &Value) -> Result<(), Arc<str>> {
    Plan::of(schema).map(drop)
}

/// A compiled schema that validates values, each with limited work.
#[derive(Debug)]
pub struct CompiledSchema {
    validator: Validator,
    plan: Plan,
}

impl CompiledSchema {
    /// Compiles a schema for many checks.
    ///
    /// # Errors
    /// Why it cannot be enforced, without values of the schema.
    pub fn new(schema: &Value) -> Result<Self, Arc<str>> {
        let plan = Plan::of(schema)?;
        // Linear time, if possible: patterns may come from a server, the matched texts from a model.
        let validator = match foreign::linear().build(schema) {
            Err(_) if plan.backtracks => {
                let schema = foreign::with_ascii_classes(schema);
                foreign::bounded().build(&schema).map_err(|error| problem(&error))
            }
            other => other.map_err(|error| problem(&error)),
        };
        Ok(Self { validator: validator?, plan })
    }

    /// The memory that it takes, in units of a subschema.
    pub fn weight(&self) -> usize {
        self.plan.weight()
    }

    /// The problems of a value, in words that name fields and never values; empty for a valid one.
    /// A part of it is called `part`. A value that would take too much work is not valid.
    pub fn problems(&self, value: &Value, part: &str) -> Vec<String> {
        if let Some(problems) = self.problems_within(MOST_EXPLAINED, value, part) {
            return problems;
        }
        let explains = || self.plan.steps_of_problems(value, MOST_EXPLAINED).is_some();
        match self.plan.steps_to_decide(value, MOST_STEPS) {
            None => vec![self.too_much(value, MOST_STEPS)],
            Some(_) if explains() => problems::problems(&self.validator, value, part),
            Some(_) if self.validator.is_valid(value) => Vec::new(),
            Some(_) => vec![
                "a part of it does not match, and it has too many values, or the schema too many \
                 alternatives, to say where; pass less, or part by part"
                    .to_owned(),
            ],
        }
    }

    /// The [problems](Self::problems) of a value that takes at most this number of steps, about 25
    /// ns each; `None` for another.
    pub fn problems_within(&self, steps: u64, value: &Value, part: &str) -> Option<Vec<String>> {
        self.plan.steps_to_explain(value, steps)?;
        Some(problems::problems(&self.validator, value, part))
    }

    /// The [problems](Self::problems), for a caller that does not wait: the limit for values is
    /// lower.
    pub fn problems_at_once(&self, value: &Value, part: &str) -> Vec<String> {
        let decides = self.plan.steps_to_decide(value, MOST_AT_ONCE);
        match decides.and_then(|_| self.plan.steps_of_problems(value, MOST_EXPLAINED)) {
            Some(_) => problems::problems(&self.validator, value, part),
            None => vec![self.too_much(value, MOST_AT_ONCE)],
        }
    }

    /// The problem of a value that takes more steps than the limit.
    fn too_much(&self, value: &Value, limit: u64) -> String {
        match self.plan.text_beyond(value, limit) {
            Some(text) => problems::too_long_for_pattern(value, text),
            None => TOO_MUCH.to_owned(),
        }
    }

    /// Whether a value is valid, for a caller that does not wait. A value that would take more than
    /// about 10 ms is not.
    pub fn fits_at_once(&self, value: &Value) -> bool {
        self.plan.steps_to_decide(value, MOST_AT_ONCE).is_some() && self.validator.is_valid(value)
    }
}

fn problem(error: &jsonschema::ValidationError<'_>) -> Arc<str> {
    if matches!(error.kind(), ValidationErrorKind::Referencing(_)) {
        return "a `$ref` refers to another document, and Toolcrib fetches none; put what it refers to \
                into the schema itself"
            .into();
    }
    let path = error.instance_path().to_string();
    if let ValidationErrorKind::Format { format } = error.kind()
        && *format == "regex"
    {
        let at = if path.is_empty() { error.schema_path().to_string() } else { path };
        return format!(
            "the pattern at `{at}` cannot be read: it is not one of ECMA-262, or it is too large"
        )
        .into();
    }
    let problem = error.masked();
    match path.as_str() {
        "" => problem.to_string().into(),
        path => format!("at `{path}`: {problem}").into(),
    }
}
