//! Schemas of arguments and of outputs: checked when a tool is first seen, compiled at its first call,
//! shared by content.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use toolcrib_core::{DEEPEST_JSON, Digest, Tool, nests_too_deep};

/// How many schemas are remembered. Beyond it all are forgotten and made again as needed: a
/// catalogue that keeps changing must not fill the memory.
const REMEMBERED: usize = 10_000;

/// What can keep a schema that is one from being compiled: a pattern that is not linear, a
/// reference that leads nowhere or outside.
const CAN_FAIL: [&str; 4] = ["$ref", "$dynamicRef", "pattern", "patternProperties"];

/// Schemas by the digest of their content, so that a catalogue listed anew costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    checked: Memory<Result<(), Arc<str>>>,
    compiled: Memory<Result<Arc<Validator>, Arc<str>>>,
}

impl Validators {
    /// Why a tool's schema cannot be enforced, if it cannot: such a tool must not be offered.
    ///
    /// Most schemas need not be compiled to know, which takes several times as long as to look at
    /// them and keeps some kilobytes for each.
    pub(crate) fn check(&self, tool: &Tool) -> Result<(), Arc<str>> {
        self.sound(tool.input_schema(), tool.schema_digest())?;
        let output = tool.output_schema().zip(tool.definition().output_digest());
        output.map_or(Ok(()), |(schema, digest)| {
            let sound = self.sound(schema, digest);
            sound.map_err(|problem| format!("its output schema: {problem}").into())
        })
    }

    fn sound(&self, schema: &Value, digest: Digest) -> Result<(), Arc<str>> {
        self.checked.remember(digest, || match can_fail(schema) {
            true => self.compiled(schema, digest).map(drop),
            false => is_a_schema(schema),
        })
    }

    /// What holds arguments against a tool's schema.
    pub(crate) fn of(&self, tool: &Tool) -> Result<Arc<Validator>, Arc<str>> {
        self.compiled(tool.input_schema(), tool.schema_digest())
    }

    /// What holds a tool's structured results against its output schema, where it declares one.
    pub(crate) fn of_output(&self, tool: &Tool) -> Option<Result<Arc<Validator>, Arc<str>>> {
        let (schema, digest) = tool.output_schema().zip(tool.definition().output_digest())?;
        Some(self.compiled(schema, digest))
    }

    fn compiled(&self, schema: &Value, digest: Digest) -> Result<Arc<Validator>, Arc<str>> {
        self.compiled.remember(digest, || compiled(schema).map(Arc::new))
    }
}

/// Whether an engine can enforce a schema of arguments; a tool with one that it cannot is withheld.
/// Of its dialect, the schema says itself; draft 2020-12 where it does not.
///
/// # Errors
/// What is wrong with it, and where, without any value of it.
pub fn check_schema(schema: &Value) -> Result<(), Arc<str>> {
    if nests_too_deep(schema) {
        return Err(format!("it nests deeper than {DEEPEST_JSON} levels").into());
    }
    if can_fail(schema) {
        return compiled(schema).map(drop);
    }
    is_a_schema(schema)
}

fn is_a_schema(schema: &Value) -> Result<(), Arc<str>> {
    jsonschema::meta::validate(schema).map_err(|error| problem(&error))
}

pub(crate) fn compiled(schema: &Value) -> Result<Validator, Arc<str>> {
    jsonschema::options()
        // A schema may come from a server: what it refers to is not fetched for it.
        .offline()
        // Linear time: patterns may come from a server, what they match from a model.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| problem(&error))
}

/// Values by the digest of what they were made of.
#[derive(Debug)]
struct Memory<T>(RwLock<HashMap<Digest, T>>);

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Clone> Memory<T> {
    fn remember(&self, digest: Digest, make: impl FnOnce() -> T) -> T {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        known.unwrap_or_else(|| {
            // Not under the lock: two who make it at the same time make the same.
            let made = make();
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(digest, made.clone());
            made
        })
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
