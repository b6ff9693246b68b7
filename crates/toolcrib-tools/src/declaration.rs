//! The part of a declared tool that is the same for all kinds.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};
use toolcrib_core::{Annotations, ArtifactPolicy};

use crate::Source;

/// The highest limit on characters of results in a project.
pub const MAX_RESULT_CHARS: usize = 10_000_000;

/// The declaration of a tool without its kind: the part that is the same for `sql`,
/// `command` and `http`.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// The name that the model calls.
    pub name: String,
    /// The text that the model reads to decide when to call it.
    pub description: String,
    /// The group that it belongs to.
    pub toolset: Option<Arc<str>>,
    /// Its declared effects.
    pub annotations: Annotations,
    /// JSON Schema of an object. It is closed: `additionalProperties` becomes `false`.
    pub input_schema: Value,
    /// Its own cap on a result's text, in characters.
    pub max_result_chars: Option<usize>,
    /// How long one call may take; the engine's default when absent.
    pub timeout: Option<Duration>,
    /// Whether it stays in the menu while a skill narrows it.
    pub always_include: bool,
    /// Whether it is deferred; the engine decides when absent.
    pub deferred: Option<bool>,
    /// Whether results are sanitized and fenced; `true` unless set, since others wrote their
    /// content.
    pub untrusted: bool,
    /// Whether a dry run makes its calls: see
    /// [`ToolBuilder::dry_run`](toolcrib_core::ToolBuilder::dry_run). Only for a read-only tool.
    pub dry_run: bool,
    /// When a result is kept as an artifact, by an engine that keeps any.
    pub artifact_policy: ArtifactPolicy,
    /// The kind of those artifacts, by name; what they look like when absent.
    pub artifact_kind: Option<Arc<str>>,
    /// Where it is declared, for messages, such as `toolcrib.toml:12`.
    pub origin: Option<Arc<str>>,
    /// The table that it was read from, for the places of errors; [`Source::default`] for code.
    pub source: Source,
}

impl Declaration {
    /// A tool without parameters; see the fields for the other defaults.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            toolset: None,
            annotations: Annotations::default(),
            input_schema: json!({ "type": "object" }),
            max_result_chars: None,
            timeout: None,
            always_include: false,
            deferred: None,
            untrusted: true,
            dry_run: false,
            artifact_policy: ArtifactPolicy::default(),
            artifact_kind: None,
            origin: None,
            source: Source::default(),
        }
    }

    /// The declaration of a toolset's tool, still to be completed: all as in `self`, with a label.
    pub(crate) fn in_toolset(&self, toolset: &str) -> Self {
        Self { toolset: self.toolset.clone().or_else(|| Some(toolset.into())), ..self.clone() }
    }

    /// The description of a toolset's tool: its effect, then the description of the toolset, if any.
    pub(crate) fn described(&self, does: &str) -> String {
        let about = &self.description;
        if about.is_empty() { does.to_owned() } else { format!("{does} {about}") }
    }
}

/// The name of a toolset's tool, after the prefix of the toolset, if it has one.
pub(crate) fn prefixed(prefix: Option<&str>, name: &str) -> String {
    prefix.map_or_else(|| name.to_owned(), |prefix| format!("{prefix}_{name}"))
}

/// The required parameters of a tool, and all of them.
pub(crate) type Parameters = (Vec<&'static str>, Vec<(&'static str, Value)>);

/// JSON Schema of an object with only these parameters.
pub(crate) fn closed((required, all): Parameters) -> Value {
    let all: Map<_, _> = all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({
        "type": "object",
        "required": required,
        "properties": all,
        "additionalProperties": false,
    })
}
