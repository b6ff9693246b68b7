//! Compiled argument schemas, made lazily and shared by content.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use toolcrib_core::{Digest, Tool};

/// How many schemas are remembered. Beyond it all are forgotten and made again as needed: a
/// catalogue that keeps changing must not fill the memory.
const REMEMBERED: usize = 10_000;

/// How deep a schema may nest. Deeper ones could exhaust the stack of whoever walks them.
const DEEPEST: usize = 128;

/// Schemas by the digest of their content, so that a catalogue listed anew costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    /// Whether a schema is one, and what is wrong if not.
    checked: RwLock<HashMap<Digest, Result<(), Arc<str>>>>,
    compiled: RwLock<HashMap<Digest, Arc<Validator>>>,
}

impl Validators {
    /// Whether a tool's schema can be enforced: it is a JSON Schema, it refers to nothing outside
    /// itself, and it is not nested without measure.
    pub(crate) fn check(&self, tool: &Tool) -> Result<(), Arc<str>> {
        remember(&self.checked, tool.schema_digest(), || {
            sound(tool.input_schema())
        })
    }

    /// The validator of a tool's arguments, compiled at its first call.
    pub(crate) fn of(&self, tool: &Tool) -> Result<Arc<Validator>, Arc<str>> {
        let known = self
            .compiled
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&tool.schema_digest())
            .cloned();
        if let Some(validator) = known {
            return Ok(validator);
        }
        let validator = compile(tool.input_schema()).map(Arc::new)?;
        Ok(remember(&self.compiled, tool.schema_digest(), || validator))
    }
}

fn remember<T: Clone>(
    map: &RwLock<HashMap<Digest, T>>,
    key: Digest,
    make: impl FnOnce() -> T,
) -> T {
    if let Some(known) = map.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return known.clone();
    }
    let made = make();
    let mut map = map.write().unwrap_or_else(PoisonError::into_inner);
    if map.len() >= REMEMBERED {
        map.clear();
    }
    map.insert(key, made.clone());
    made
}

fn sound(schema: &Value) -> Result<(), Arc<str>> {
    if !shallow(schema, DEEPEST) {
        return Err(format!("it nests deeper than {DEEPEST} levels").into());
    }
    if let Some(outside) = outside_reference(schema) {
        return Err(format!("`$ref` to {outside:?} leaves the schema; nothing is fetched").into());
    }
    jsonschema::meta::validate(schema).map_err(|error| {
        Arc::from(format!(
            "at `{}`: {}",
            error.instance_path(),
            error.masked()
        ))
    })
}

fn compile(schema: &Value) -> Result<Validator, Arc<str>> {
    jsonschema::options()
        // Linear time: patterns may come from a server, what they match from a model.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map_err(|error| error.masked().to_string().into())
}

fn shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(items) => items.iter().all(|item| shallow(item, below)),
        Value::Object(map) => map.values().all(|item| shallow(item, below)),
        _ => true,
    }
}

fn outside_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => map.iter().find_map(|(key, value)| match value.as_str() {
            Some(target) if key == "$ref" || key == "$dynamicRef" => {
                (!target.starts_with('#')).then_some(target)
            }
            _ => outside_reference(value),
        }),
        Value::Array(items) => items.iter().find_map(outside_reference),
        _ => None,
    }
}
