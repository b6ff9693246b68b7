//! Compiled argument schemas, shared by content.

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

/// A compiled schema, or why it is none.
type Compiled = Result<Arc<Validator>, Arc<str>>;

/// Schemas by the digest of their content, so that a catalogue listed anew costs nothing.
#[derive(Debug, Default)]
pub(crate) struct Validators(RwLock<HashMap<Digest, Compiled>>);

impl Validators {
    /// What holds arguments against a tool's schema; an error says why the schema cannot be
    /// enforced. Compiled when the tool is first seen and not at its first call: a tool that could
    /// never be called must not be offered.
    pub(crate) fn of(&self, tool: &Tool) -> Compiled {
        let digest = tool.schema_digest();
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&digest) {
            return known.clone();
        }
        drop(known);
        let compiled = compile(tool.input_schema());
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(digest, compiled.clone());
        compiled
    }
}

fn compile(schema: &Value) -> Compiled {
    jsonschema::options()
        // A schema may come from a server: what it refers to is not fetched for it.
        .offline()
        // Linear time: patterns may come from a server, what they match from a model.
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .map(Arc::new)
        .map_err(|error| {
            let path = error.instance_path().to_string();
            let problem = error.masked();
            match path.as_str() {
                "" => problem.to_string().into(),
                path => format!("at `{path}`: {problem}").into(),
            }
        })
}
