//! From a declaration to a tool, as far as its kind does not matter.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolcrib_core::{Tool, ToolBuilder};

use crate::{Declaration, Source};

impl Declaration {
    /// Closes the schema: a model that invents an argument receives an error; the argument is not
    /// silently dropped.
    pub(crate) fn close_schema(&mut self) {
        if let Value::Object(schema) = &mut self.input_schema {
            schema.insert("additionalProperties".into(), json!(false));
        }
    }

    /// The tool, as far as its kind does not matter.
    pub(crate) fn into_builder(self) -> ToolBuilder {
        let mut builder = Tool::builder(self.name)
            .description(self.description)
            .input_schema(self.input_schema)
            .annotations(self.annotations)
            .artifact_policy(self.artifact_policy);
        if let Some(toolset) = self.toolset {
            builder = builder.toolset(toolset);
        }
        if let Some(chars) = self.max_result_chars {
            builder = builder.max_result_chars(chars);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout);
        }
        if self.always_include {
            builder = builder.always_include();
        }
        if let Some(deferred) = self.deferred {
            builder = builder.deferred(deferred);
        }
        if self.untrusted {
            builder = builder.untrusted();
        }
        if self.dry_run && self.annotations.read_only {
            builder = builder.dry_run();
        }
        if let Some(kind) = self.artifact_kind {
            builder = builder.artifact_kind(kind);
        }
        if let Some(origin) = self.origin {
            builder = builder.origin(origin);
        }
        builder
    }
}

/// A tool's parameters, which are the properties of its input schema, and which of them something
/// uses.
pub(crate) struct Parameters<'a> {
    declared: Vec<&'a str>,
    used: HashSet<usize>,
    /// Whether all that may use one could be read; else nothing can be called unused.
    all_read: bool,
    /// Whether `declared` is complete; else every name passes.
    is_schema_known: bool,
}

impl<'a> Parameters<'a> {
    pub(crate) fn of(schema: &'a Value, source: &Source) -> Self {
        let declared = properties(schema).map(|(name, _)| name).collect();
        let is_schema_known = !source.is_schema_unknown();
        let all_read = is_schema_known && !source.is_partial();
        Self { declared, used: HashSet::new(), all_read, is_schema_known }
    }

    /// Notes that a parameter is used, and says which one it is, from 0.
    ///
    /// # Errors
    /// The names that there are, if this is none of them.
    pub(crate) fn uses(&mut self, name: &str) -> Result<usize, Vec<String>> {
        let found = self.declared.iter().position(|&declared| declared == name);
        let Some(position) = found.or((!self.is_schema_known).then_some(0)) else {
            return Err(self.declared.iter().map(|&name| name.to_owned()).collect());
        };
        self.used.insert(position);
        Ok(position)
    }

    /// Notes that something cannot be read, and so not what it uses.
    pub(crate) fn not_all_read(&mut self) {
        self.all_read = false;
    }

    /// The declared names that something uses.
    #[cfg(feature = "http")]
    pub(crate) fn used(&self) -> Vec<String> {
        let all = self.declared.iter().enumerate();
        all.filter(|(position, _)| self.used.contains(position))
            .map(|(_, &name)| name.to_owned())
            .collect()
    }

    /// The declared names that nothing uses, as far as that is known.
    pub(crate) fn unused(&self) -> Vec<String> {
        if !self.all_read {
            return Vec::new();
        }
        let all = self.declared.iter().enumerate();
        all.filter(|(position, _)| !self.used.contains(position))
            .map(|(_, &name)| name.to_owned())
            .collect()
    }
}

/// The properties of an input schema, in its order.
pub(crate) fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
}

/// The next step for a name that is not a parameter.
pub(crate) fn declare_or_use(declared: &[String]) -> String {
    match declared {
        [] => "declare it".to_owned(),
        names => format!("declare it, or use one of `{}`", names.join("`, `")),
    }
}
