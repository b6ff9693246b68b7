//! Schemas of arguments and of outputs: checked when a tool is first seen, compiled at its first call,
//! shared by content.
//!
//! Schemas and values come from outside, and both decide how much work validation is. So a schema is
//! refused by its [`Plan`] before it is compiled, a value by its count of steps before it is validated,
//! and what is not trivially cheap runs [`off`] the async workers.

mod keywords;
mod memory;
pub(crate) mod off;
mod patterns;
mod plan;
mod problems;
mod references;
mod steps;

use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use toolcrib_core::{DEEPEST_JSON, Digest, Tool, nests_too_deep};

use self::{memory::Memory, off::Lanes, plan::Plan};

/// What can keep a schema that is one from being compiled: a pattern that is not linear, a
/// reference that leads nowhere or outside.
const CAN_FAIL: [&str; 4] = ["$ref", "$dynamicRef", "pattern", "patternProperties"];

/// The largest compiled pattern, and the most that one keeps while it matches, in bytes.
const LARGEST_PATTERN: usize = 2 * 1024 * 1024;
const LARGEST_PATTERN_CACHE: usize = 256 * 1024;

/// The most steps that a value may take: about 100 ms. A page of 100 blocks that nest, of 60 kinds, takes
/// a third of it.
const MOST_STEPS: u64 = 4_000_000;

/// The most steps that a value may take where nothing waits for another thread: about 10 ms.
const MOST_AT_ONCE: u64 = 400_000;

/// The most steps after which each problem is listed. The validator makes all of them at once, up to
/// one per step.
const MOST_EXPLAINED: u64 = 20_000;

/// Said of a value that takes more steps.
const TOO_MUCH: &str =
    "it has too many values, or nests too deep, to be held against the schema; pass less";

/// Schemas by the digest of their content, so that a catalogue listed anew costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    checked: Memory<Result<(), Arc<str>>>,
    compiled: Memory<Result<Arc<Enforced>, Arc<str>>>,
    lanes: Lanes,
}

/// A schema of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Side {
    Arguments,
    Output,
}

impl Side {
    const BOTH: [Self; 2] = [Self::Arguments, Self::Output];

    fn schema(self, tool: &Tool) -> Option<(&Value, Digest)> {
        match self {
            Self::Arguments => Some((tool.input_schema(), tool.schema_digest())),
            Self::Output => tool.output_schema().zip(tool.definition().output_digest()),
        }
    }

    /// What the parts of a value are called.
    const fn part(self) -> &'static str {
        match self {
            Self::Arguments => "argument",
            Self::Output => "field",
        }
    }
}

impl Validators {
    /// Why a tool's schemas cannot be enforced, if they cannot: such a tool must not be offered.
    ///
    /// Most schemas need not be compiled to know, which takes several times as long as to look at
    /// them and keeps some kilobytes for each.
    pub(crate) fn check(&self, tool: &Tool) -> Result<(), Arc<str>> {
        self.sound(tool, Side::Arguments)?;
        self.sound(tool, Side::Output)
            .map_err(|problem| format!("its output schema: {problem}").into())
    }

    fn sound(&self, tool: &Tool, side: Side) -> Result<(), Arc<str>> {
        let Some((schema, digest)) = side.schema(tool) else { return Ok(()) };
        let check = || {
            if can_fail(schema) {
                return self.compiled(schema, digest).map(drop);
            }
            Plan::of(schema)?;
            is_a_schema(schema)
        };
        self.checked.remember(digest, check, |_| 1)
    }

    /// What values are held against; `None` where the tool declares no such schema.
    pub(crate) fn of(&self, tool: &Tool, side: Side) -> Option<Result<Arc<Enforced>, Arc<str>>> {
        side.schema(tool).map(|(schema, digest)| self.compiled(schema, digest))
    }

    fn compiled(&self, schema: &Value, digest: Digest) -> Result<Arc<Enforced>, Arc<str>> {
        let compile = || Enforced::new(schema).map(Arc::new);
        let weight = |made: &Result<Arc<Enforced>, _>| made.as_ref().map_or(1, |one| one.weight());
        self.compiled.remember(digest, compile, weight)
    }
}

/// Whether an engine can enforce a schema of arguments; a tool with one that it cannot is withheld.
/// Of its dialect, the schema says itself; draft 2020-12 where it does not.
///
/// # Errors
/// What is wrong with it, and where, without any value of it. That includes a schema that would take
/// too much work, such as nested alternatives that multiply through `$ref`.
pub fn check_schema(schema: &Value) -> Result<(), Arc<str>> {
    if nests_too_deep(schema) {
        return Err(format!("it nests deeper than {DEEPEST_JSON} levels").into());
    }
    if can_fail(schema) {
        return Enforced::new(schema).map(drop);
    }
    Plan::of(schema)?;
    is_a_schema(schema)
}

/// Whether an engine would compile a schema at all: only how much work it causes, and whether its
/// references can be followed. [`check_schema`] says the rest, too. For those who compile it themselves.
///
/// # Errors
/// Why it would not.
pub fn check_schema_work(schema: &Value) -> Result<(), Arc<str>> {
    Plan::of(schema).map(drop)
}

fn is_a_schema(schema: &Value) -> Result<(), Arc<str>> {
    jsonschema::meta::validate(schema).map_err(|error| problem(&error))
}

/// A schema that values are held against, each within a bounded amount of work.
#[derive(Debug)]
pub(crate) struct Enforced {
    validator: Validator,
    plan: Plan,
}

impl Enforced {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it cannot be enforced, without any value of it.
    pub(crate) fn new(schema: &Value) -> Result<Self, Arc<str>> {
        let plan = Plan::of(schema)?;
        let validator = jsonschema::options()
            // A schema may come from a server: what it refers to is not fetched for it.
            .offline()
            // Linear time: patterns may come from a server, what they match from a model.
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(LARGEST_PATTERN)
                    .dfa_size_limit(LARGEST_PATTERN_CACHE),
            )
            .build(schema)
            .map_err(|error| problem(&error))?;
        Ok(Self { validator, plan })
    }

    fn weight(&self) -> usize {
        self.plan.weight()
    }

    /// What is wrong with a value, in words that name fields and never values; nothing where it fits.
    /// A part of it is called `part`. A value that would take too much work does not fit.
    fn problems(&self, value: &Value, part: &str) -> Vec<String> {
        if self.plan.steps_to_explain(value, MOST_EXPLAINED).is_some() {
            return problems::problems(&self.validator, value, part);
        }
        match self.plan.steps_to_decide(value, MOST_STEPS) {
            None => vec![TOO_MUCH.to_owned()],
            Some(_) if self.validator.is_valid(value) => Vec::new(),
            Some(_) => vec![
                "something in it does not fit, and it has too many values, or the schema too many \
                 alternatives, to say where; pass less, or part by part"
                    .to_owned(),
            ],
        }
    }

    /// Whether a value fits, for a caller that does not wait. One that would take more than about 10 ms
    /// does not.
    pub(crate) fn fits_at_once(&self, value: &Value) -> bool {
        self.plan.steps_to_decide(value, MOST_AT_ONCE).is_some() && self.validator.is_valid(value)
    }

    /// The [problems](Self::problems) for a caller that does not wait: the value may be smaller.
    pub(crate) fn problems_at_once(&self, value: &Value, part: &str) -> Vec<String> {
        match self.plan.steps_to_explain(value, MOST_EXPLAINED) {
            None => vec![TOO_MUCH.to_owned()],
            Some(_) => problems::problems(&self.validator, value, part),
        }
    }
}

fn can_fail(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.iter().any(|(key, value)| CAN_FAIL.contains(&key.as_str()) || can_fail(value))
        }
        Value::Array(items) => items.iter().any(can_fail),
        _ => false,
    }
}

fn problem(error: &jsonschema::ValidationError<'_>) -> Arc<str> {
    let path = error.instance_path().to_string();
    let problem = error.masked();
    match path.as_str() {
        "" => problem.to_string().into(),
        path => format!("at `{path}`: {problem}").into(),
    }
}
