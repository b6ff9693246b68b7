//! Errors in a declaration, field by field.

use std::{error::Error, fmt};

use serde_json::Value;
use toolcrib_config::{Spot, pointer_step};
use toolcrib_core::{InvalidToolError, Tool};

use crate::{
    Declaration, Source,
    making::Parameters,
    template::{Template, TemplateError},
};

/// One error in a declared tool or hub.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct FieldError {
    /// The field as a JSON pointer into the TOML table, such as `/args/0`. Empty for the definition
    /// as a whole.
    pub field: String,
    /// The byte in the field's text, from 0, where known.
    pub offset: Option<usize>,
    /// The place in the file. `None` for a declaration that is made in code, and for a field that
    /// the file does not contain.
    pub at: Option<Spot>,
    /// The error, and the next step.
    pub message: String,
    /// More on what to write instead.
    pub help: Option<String>,
}

/// All errors in one declared tool or hub. Empty only where the reader of its table recorded them
/// all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolErrors {
    /// The name, as declared.
    pub tool: String,
    /// The errors.
    pub errors: Vec<FieldError>,
}

impl fmt::Display for ToolErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool `{}`", self.tool.escape_debug())?;
        for (position, error) in self.errors.iter().enumerate() {
            write!(f, "{} {error}", if position == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl Error for ToolErrors {}

/// A field, as errors name it.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    pointer: String,
    /// Precedes the message; empty where the message names the field.
    label: String,
    /// Whether the label is left out where the error has a place in a file.
    is_clear_in_file: bool,
    is_key: bool,
}

impl Field {
    pub(crate) fn new(label: impl Into<String>, pointer: impl Into<String>) -> Self {
        let (label, pointer) = (label.into(), pointer.into());
        Self { pointer, label, is_clear_in_file: false, is_key: false }
    }

    /// A value in a table whose keys are the author's.
    pub(crate) fn entry(label: impl Into<String>, key: &str, name: &str) -> Self {
        Self::new(label, format!("/{key}/{}", pointer_step(name)))
    }

    /// The key itself.
    pub(crate) fn key(&self) -> Self {
        Self { is_key: true, ..self.clone() }
    }

    #[cfg(feature = "hub")]
    pub(crate) fn unlabeled(&self) -> Self {
        Self { label: String::new(), ..self.clone() }
    }

    pub(crate) fn pointer(self) -> String {
        self.pointer
    }

    /// Whether it is in the table under a key.
    #[cfg(feature = "http")]
    pub(crate) fn is_in(&self, key: &str) -> bool {
        self.pointer.split('/').nth(1) == Some(key)
    }

    pub(crate) fn clear_in_file(self) -> Self {
        Self { is_clear_in_file: true, ..self }
    }
}

/// The errors that are found while a declaration is checked.
pub(crate) struct Findings<'a> {
    pub(crate) source: &'a Source,
    pub(crate) parameters: Parameters<'a>,
    errors: Vec<FieldError>,
    /// Whether an unreadable part was skipped.
    is_incomplete: bool,
}

/// The errors, and whether more were recorded before.
pub(crate) struct ErrorList {
    pub(crate) errors: Vec<FieldError>,
    is_incomplete: bool,
}

impl<'a> Findings<'a> {
    pub(crate) fn of(declaration: &'a Declaration) -> Self {
        let Declaration { source, input_schema, .. } = declaration;
        Self::new(source, input_schema)
    }

    pub(crate) fn new(source: &'a Source, schema: &'a Value) -> Self {
        let parameters = Parameters::of(schema, source);
        Self { source, parameters, errors: Vec::new(), is_incomplete: false }
    }

    pub(crate) fn wrong(
        &mut self,
        field: &Field,
        offset: Option<usize>,
        message: impl fmt::Display,
    ) {
        self.wrong_with(field, offset, message, None);
    }

    pub(crate) fn wrong_with(
        &mut self,
        field: &Field,
        offset: Option<usize>,
        message: impl fmt::Display,
        help: Option<String>,
    ) {
        let Field { pointer, label, is_clear_in_file, is_key } = field;
        let is_clear = label.is_empty() || (*is_clear_in_file && self.source.places().is_some());
        let message = if is_clear { message.to_string() } else { format!("{label}: {message}") };
        let at = match offset {
            Some(offset) => self.source.character(pointer, offset),
            None if *is_key => self.source.key(pointer).cloned(),
            None => self.source.value(pointer).cloned(),
        };
        self.errors.push(FieldError { field: pointer.clone(), offset, at, message, help });
    }

    /// Whether a text that must not be empty is an unreadable one of a file, which is recorded.
    pub(crate) fn is_unreadable(&mut self, text: &str) -> bool {
        let is_unreadable = text.is_empty() && self.source.places().is_some();
        self.is_incomplete |= is_unreadable;
        is_unreadable
    }

    /// The template, unless it has an error.
    pub(crate) fn template(
        &mut self,
        field: &Field,
        template: Result<Template, TemplateError>,
    ) -> Option<Template> {
        let error = match template {
            Ok(template) => return Some(template),
            Err(error) => error,
        };
        self.parameters.not_all_read();
        self.wrong(field, Some(error.offset()), error);
        None
    }

    /// Reports each parameter that has no use.
    pub(crate) fn report_unused(&mut self, message: fn(&str) -> String) {
        self.report_unused_as(|name| format!("the parameter `{name}`"), message);
    }

    pub(crate) fn report_unused_as(
        &mut self,
        label: fn(&str) -> String,
        message: fn(&str) -> String,
    ) {
        for parameter in self.parameters.unused() {
            let mut field = Field::entry(label(&parameter), "params", &parameter);
            if self.source.value("/schema_file").is_some() {
                field.pointer = "/schema_file".to_owned();
            }
            self.wrong(&field, None, message(&parameter));
        }
    }

    pub(crate) fn finish(self) -> ErrorList {
        ErrorList { errors: self.errors, is_incomplete: self.is_incomplete }
    }
}

impl ErrorList {
    fn is_sound(&self) -> bool {
        self.errors.is_empty() && !self.is_incomplete
    }

    /// The given value, if no error was found.
    #[cfg(feature = "command")]
    pub(crate) fn or_made<T>(self, name: String, made: T) -> Result<T, ToolErrors> {
        match self.is_sound() {
            true => Ok(made),
            false => Err(ToolErrors { tool: name, errors: self.errors }),
        }
    }

    /// The tool, if no error was found. An error of its definition comes first.
    pub(crate) fn or_tool(
        mut self,
        name: String,
        made: Result<Tool, InvalidToolError>,
    ) -> Result<Tool, ToolErrors> {
        match made {
            Ok(tool) if self.is_sound() => return Ok(tool),
            Ok(_) => {}
            Err(error) => {
                let (field, message) = (String::new(), error.to_string());
                let error = FieldError { field, offset: None, at: None, message, help: None };
                self.errors.insert(0, error);
            }
        }
        Err(ToolErrors { tool: name, errors: self.errors })
    }
}
