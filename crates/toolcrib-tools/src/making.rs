//! From a declaration to a tool, as far as its kind does not matter.

use std::{collections::HashSet, error::Error, fmt};

use serde_json::{Value, json};
use toolcrib_core::{InvalidTool, Tool, ToolBuilder};

use crate::Declaration;

/// All that is wrong with one declared tool; never empty.
#[derive(Debug)]
pub struct ToolErrors<E> {
    /// The tool's name, as declared.
    pub tool: String,
    /// What is wrong with it.
    pub errors: Vec<E>,
}

impl<E: fmt::Display> fmt::Display for ToolErrors<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool `{}`", self.tool.escape_debug())?;
        for (position, error) in self.errors.iter().enumerate() {
            write!(f, "{} {error}", if position == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl<E: fmt::Debug + fmt::Display> Error for ToolErrors<E> {}

impl<E: From<InvalidTool>> ToolErrors<E> {
    /// The tool that was made, unless something was found to be wrong with it. What its definition
    /// is refused for stands first.
    pub(crate) fn or_tool(
        name: String,
        mut errors: Vec<E>,
        made: Result<Tool, InvalidTool>,
    ) -> Result<Tool, Self> {
        match made {
            Ok(tool) if errors.is_empty() => return Ok(tool),
            Ok(_) => {}
            Err(error) => errors.insert(0, error.into()),
        }
        Err(Self { tool: name, errors })
    }
}

impl Declaration {
    /// Closes the schema: a model that invents an argument is told so, instead of having it
    /// dropped.
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
            .spooling(self.spooling);
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
        if self.untrusted {
            builder = builder.untrusted();
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
}

impl<'a> Parameters<'a> {
    pub(crate) fn of(schema: &'a Value) -> Self {
        let declared = properties(schema).map(|(name, _)| name).collect();
        Self { declared, used: HashSet::new(), all_read: true }
    }

    /// Notes that a parameter is used, and says which one it is, from 0.
    ///
    /// # Errors
    /// The names that there are, if this is none of them.
    pub(crate) fn uses(&mut self, name: &str) -> Result<usize, Vec<String>> {
        let found = self.declared.iter().position(|&declared| declared == name);
        let Some(position) = found else {
            return Err(self.declared.iter().map(|&name| name.to_owned()).collect());
        };
        self.used.insert(position);
        Ok(position)
    }

    /// Notes that something cannot be read, and so not what it uses.
    pub(crate) fn not_all_read(&mut self) {
        self.all_read = false;
    }

    /// Those that something uses.
    #[cfg(feature = "http")]
    pub(crate) fn used(&self) -> Vec<String> {
        let all = self.declared.iter().enumerate();
        all.filter(|(position, _)| self.used.contains(position))
            .map(|(_, &name)| name.to_owned())
            .collect()
    }

    /// Those that nothing uses, as far as that is known.
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

/// What to do about a name that is no parameter.
pub(crate) fn declare_or_use(declared: &[String]) -> String {
    match declared {
        [] => "declare it".to_owned(),
        names => format!("declare it, or use one of `{}`", names.join("`, `")),
    }
}
