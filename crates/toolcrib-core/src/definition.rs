//! What is declared of a tool.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    availability::Availability,
    capabilities::Capabilities,
    depth::{DEEPEST_JSON, nests_too_deep},
    digest::{Digest, canonical_schema},
    name::{InvalidToolName, ToolName},
};

/// The origin of a tool that says nothing of it.
pub(crate) const UNDECLARED_ORIGIN: &str = "code";

/// The origin of a plugin's tool that declares none.
pub(crate) fn origin_of_plugin(plugin: &str) -> String {
    format!("plugin `{plugin}`")
}

/// What a tool says of its effects. Declared by the author; a remote server's word counts only
/// where the server is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy or overwrite something.
    pub destructive: bool,
    /// Doing it twice is the same as doing it once.
    pub idempotent: bool,
}

/// What happens in [`compose`](crate::Menu) and in a merge when a tool comes in under a name that
/// is taken. Only the tool that comes in, the second in the order of sources, is asked; what the
/// first declares counts for nothing. `register` never asks either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnCollision {
    /// An error that names both origins.
    #[default]
    Fail,
    /// The tool that was there stays.
    Keep,
    /// The incoming tool takes the place of the one that was there.
    Replace,
}

/// How long a tool stays in a [`ToolRegistry`](crate::ToolRegistry) that a turn works on. A tool
/// without one stays as long as its source.
///
/// It counts in registries only: a provider is asked anew in each iteration and decides itself how
/// long it lists a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lifetime {
    /// For the iteration that first offers it. One that is withheld, or whose iteration could not
    /// begin, still waits for that. A tool whose place it took with
    /// [`overwrite`](crate::ToolRegistry::overwrite) does not come back when it goes.
    Iteration,
    /// For the turn in whose registry it is; a baseline gives each turn its own.
    Turn,
    /// For the conversation: the turn in whose registry it is hands it on to the next one of the same
    /// tenant, principal and conversation on the same engine. It goes when a turn takes it out of its
    /// registry, or when the conversation ends, which one without a name does with its turn. A turn
    /// that was nacked hands on nothing that it changed. Engines that differ in their plugins share the
    /// conversations; a tool of a plugin is in the turns of those that have it.
    Session,
}

/// When a tool's result is kept as an artifact, by an engine that keeps any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Spooling {
    /// When it is cut, so that what is missing can be read.
    #[default]
    WhenCut,
    /// Always: a model reads a handle in place of the text.
    Always,
    /// Never: what is cut is lost. What looks at artifacts is so.
    Never,
}

/// Everything declared of a tool: what the model reads (name, description, schema) and what the
/// engine acts on. Immutable once built; made with [`Tool::builder`](crate::Tool::builder).
#[derive(Clone)]
pub struct ToolDefinition {
    pub(crate) name: ToolName,
    pub(crate) description: Arc<str>,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<(Value, Digest)>,
    pub(crate) title: Option<Arc<str>>,
    pub(crate) toolset: Option<Arc<str>>,
    pub(crate) annotations: Annotations,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
    pub(crate) untrusted: bool,
    pub(crate) always_include: bool,
    pub(crate) on_collision: OnCollision,
    pub(crate) ephemeral: Option<Lifetime>,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) origin: Arc<str>,
    pub(crate) mcp_server: Option<Arc<str>>,
    pub(crate) open_world: bool,
    pub(crate) plugin: Option<Arc<str>>,
    pub(crate) sequential: bool,
    pub(crate) availability: Option<Availability>,
    pub(crate) spooling: Spooling,
    pub(crate) artifact_kind: Option<Arc<str>>,
    pub(crate) framework: bool,
    pub(crate) meta: Map<String, Value>,
    digest: Digest,
    schema_digest: Digest,
    rendering: Arc<str>,
}

impl ToolDefinition {
    pub(crate) fn new(
        name: &str,
        description: &str,
        input_schema: &Value,
    ) -> Result<Self, InvalidTool> {
        let name = ToolName::new(name)?;
        let description = description.trim();
        if description.is_empty() {
            return Err(InvalidTool::NoDescription { name });
        }
        if nests_too_deep(input_schema) {
            return Err(InvalidTool::SchemaTooDeep { name, schema: "input" });
        }
        let takes_an_object = match input_schema.get("type") {
            None => input_schema.is_object(),
            Some(kind) => kind == "object",
        };
        if !takes_an_object {
            return Err(InvalidTool::NotAnObjectSchema { name });
        }
        let mut input_schema = canonical_schema(input_schema);
        if let Value::Object(map) = &mut input_schema {
            // Model APIs ask for it, and it says nothing new.
            map.entry("type").or_insert_with(|| "object".into());
        }
        let shown = json!({
            "name": name, "description": description, "input_schema": input_schema,
        })
        .to_string();
        Ok(Self {
            digest: Digest::of(&shown),
            schema_digest: Digest::of(input_schema.to_string()),
            rendering: shown.into(),
            name,
            description: description.into(),
            input_schema,
            output_schema: None,
            title: None,
            toolset: None,
            annotations: Annotations::default(),
            timeout: None,
            max_result_chars: None,
            untrusted: false,
            always_include: false,
            on_collision: OnCollision::default(),
            ephemeral: None,
            capabilities: Arc::default(),
            origin: UNDECLARED_ORIGIN.into(),
            mcp_server: None,
            open_world: false,
            plugin: None,
            sequential: false,
            availability: None,
            spooling: Spooling::default(),
            artifact_kind: None,
            framework: false,
            meta: Map::new(),
        })
    }

    /// The same definition, of which the model reads something else.
    pub(crate) fn shown_as(
        &self,
        name: &str,
        description: &str,
        input_schema: &Value,
    ) -> Result<Self, InvalidTool> {
        let shown = Self::new(name, description, input_schema)?;
        Ok(Self {
            name: shown.name,
            description: shown.description,
            input_schema: shown.input_schema,
            digest: shown.digest,
            schema_digest: shown.schema_digest,
            rendering: shown.rendering,
            ..self.clone()
        })
    }

    /// Takes a schema of results, in canonical form; what the model reads stays the same.
    pub(crate) fn set_output_schema(&mut self, schema: &Value) -> Result<(), InvalidTool> {
        let name = || self.name.clone();
        if nests_too_deep(schema) {
            return Err(InvalidTool::SchemaTooDeep { name: name(), schema: "output" });
        }
        if !(schema.is_object() || schema.is_boolean()) {
            return Err(InvalidTool::OutputSchemaNotASchema { name: name() });
        }
        let schema = canonical_schema(schema);
        let digest = Digest::of(schema.to_string());
        self.output_schema = Some((schema, digest));
        Ok(())
    }

    /// The name that the model calls.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// What the model reads to decide when to call the tool.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON Schema of the arguments, in canonical form; always of an object.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// JSON Schema of the structured results, in canonical form, where the tool declares one. It is
    /// no part of what the model reads. The engine checks each result against it: a result without
    /// structured data, or with data that does not fit, fails the call. Clients of a gateway are sent
    /// structured results of such tools alone.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_ref().map(|(schema, _)| schema)
    }

    /// The digest of the output schema, where the tool declares one. For engines, which remember by
    /// it how a schema is compiled.
    pub fn output_digest(&self) -> Option<Digest> {
        self.output_schema.as_ref().map(|(_, digest)| *digest)
    }

    /// What people are shown in place of the name, where the tool declares it. No part of what the
    /// model reads.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The group that the tool belongs to, such as `billing` or `file`.
    pub fn toolset(&self) -> Option<&str> {
        self.toolset.as_deref()
    }

    /// What the tool says of its effects.
    pub fn annotations(&self) -> Annotations {
        self.annotations
    }

    /// How long one call may take; the engine's default when absent.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The tool's own cap on a result's text, in characters, at least
    /// [`MIN_RESULT_CHARS`](crate::ToolBuilder::MIN_RESULT_CHARS). It is never lifted, however much
    /// of the batch's budget is left.
    pub fn max_result_chars(&self) -> Option<usize> {
        self.max_result_chars
    }

    /// When a result is kept as an artifact.
    pub fn spooling(&self) -> Spooling {
        self.spooling
    }

    /// The kind of artifact that results are, where the tool names one; else it is told by the
    /// content.
    pub fn artifact_kind(&self) -> Option<&Arc<str>> {
        self.artifact_kind.as_ref()
    }

    /// Whether results carry content that somebody else may have written. Such results, errors
    /// included, are sanitised and fenced before a model sees them.
    pub fn untrusted(&self) -> bool {
        self.untrusted
    }

    /// Whether the tool stays in the menu while a skill narrows it. Policy still decides.
    pub fn always_include(&self) -> bool {
        self.always_include
    }

    /// What happens when the tool comes in under a name that an earlier source offers.
    pub fn on_collision(&self) -> OnCollision {
        self.on_collision
    }

    /// How long the tool stays in a turn's registry, if it goes by itself.
    pub fn ephemeral(&self) -> Option<Lifetime> {
        self.ephemeral
    }

    /// What was noted of the tool for code that meets it. The model does not read it.
    pub fn meta(&self) -> &Map<String, Value> {
        &self.meta
    }

    /// What the tool needs of the world.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether a call runs alone: what came before it in the batch has ended, and what comes after
    /// has not begun.
    pub fn sequential(&self) -> bool {
        self.sequential
    }

    /// Whether the tool has a [check](crate::ToolBuilder::available_if) of whether it is available.
    pub fn has_availability_check(&self) -> bool {
        self.availability.is_some()
    }

    /// Asks whether the tool is available now; one that has no check always is.
    ///
    /// # Errors
    /// Why it is not, for the operator. A check that panics counts as one that says so.
    pub fn check_available(&self) -> Result<(), Arc<str>> {
        self.availability.as_ref().map_or(Ok(()), Availability::check)
    }

    /// The MCP server whose tool it is, by the name that it has here. A personality admits such tools
    /// by their server, and not by their toolset.
    pub fn mcp_server(&self) -> Option<&str> {
        self.mcp_server.as_deref()
    }

    /// Whether a call passes its arguments on to others: to a host, a program or a server. Tools of MCP
    /// servers and those that declare network or programs among their
    /// [capabilities](Self::capabilities) always do. Arguments with a known secret that the tool does
    /// not declare are denied to it.
    pub fn open_world(&self) -> bool {
        self.open_world || self.mcp_server.is_some() || self.capabilities.need_scoper()
    }

    /// Why the tool claims to be of an MCP server that it is not of, by its name, toolset or origin. Engines
    /// do not offer such a tool: rules name servers and their tools so.
    pub fn false_origin(&self) -> Option<String> {
        const PREFIX: &str = "mcp__";
        const ORIGIN: &str = "mcp:";
        let begins = |text: &str, start: &str| {
            text.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
        };
        let is_of = |server: &str| {
            let tool = self.name.strip_prefix(PREFIX).and_then(|name| name.strip_prefix(server));
            tool.is_some_and(|tool| tool.starts_with("__"))
        };
        let claim = match self.mcp_server() {
            _ if begins(&self.name, PREFIX) && !self.mcp_server().is_some_and(is_of) => {
                format!("its name begins with `{}`", self.name.get(..PREFIX.len())?)
            }
            None if self.toolset() == Some("mcp") => "its toolset is `mcp`".to_owned(),
            None if begins(&self.origin, ORIGIN) => format!("its origin is `{}`", self.origin),
            _ => return None,
        };
        Some(match self.mcp_server() {
            Some(server) => format!("{claim}, and it is of MCP server `{server}`; rename it"),
            None => format!("{claim}, and it is of no MCP server; rename that"),
        })
    }

    /// The plugin that brought the tool.
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// Where the tool was declared, for messages and rules: `toolcrib.toml:12`, `mcp:github`, `code`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Where the tool comes from, in words for people: its [origin](Self::origin), and the plugin that
    /// brought it where the origin does not say so.
    pub fn comes_from(&self) -> Cow<'_, str> {
        match &self.plugin {
            Some(plugin) if *self.origin != *origin_of_plugin(plugin) => {
                Cow::Owned(format!("{} ({})", self.origin, origin_of_plugin(plugin)))
            }
            _ => Cow::Borrowed(&self.origin),
        }
    }

    /// The [origin](Self::origin), shared.
    pub fn shared_origin(&self) -> &Arc<str> {
        &self.origin
    }

    /// Whether Toolcrib itself made the tool (`read_skill`). Only policy rules that name it
    /// literally judge it, never a pattern and never the default.
    pub fn is_framework(&self) -> bool {
        self.framework
    }

    /// Digest of what the model reads of this tool.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Digest of the canonical input schema.
    pub fn schema_digest(&self) -> Digest {
        self.schema_digest
    }

    /// The vendor-neutral JSON of what the model reads: `{name, description, input_schema}`.
    pub fn rendering(&self) -> &str {
        &self.rendering
    }
}

impl fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDefinition")
            .field("name", &self.name)
            .field("toolset", &self.toolset)
            .field("annotations", &self.annotations)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// A tool that cannot be made as declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTool {
    /// No model API takes its name.
    #[error(transparent)]
    Name(#[from] InvalidToolName),
    /// A model cannot choose a tool of which it is told nothing.
    #[error("tool `{name}` has no description; say when to use it")]
    NoDescription {
        /// The tool.
        name: ToolName,
    },
    /// Model APIs take only objects as arguments.
    #[error("the input schema of tool `{name}` must be of `type: \"object\"`")]
    NotAnObjectSchema {
        /// The tool.
        name: ToolName,
    },
    /// What says that a result was cut would not fit, so the cap would be none.
    #[error(
        "tool `{name}` caps its results at {chars} characters; `max_result_chars` is {} or more, \
         so that the words that say what is missing fit",
        crate::tool::ToolBuilder::MIN_RESULT_CHARS
    )]
    ResultCapTooSmall {
        /// The tool.
        name: ToolName,
        /// The cap that it declares.
        chars: usize,
    },
    /// One of both was not meant.
    #[error(
        "tool `{name}` names the kind of artifact that its results are, and never keeps one; leave \
         out `artifact_kind`, or `Spooling::Never`"
    )]
    KindOfNothing {
        /// The tool.
        name: ToolName,
    },
    /// Walking it could exhaust the stack.
    #[error(
        "the {schema} schema of tool `{name}` nests deeper than {DEEPEST_JSON} levels; \
         give its parts names in `$defs` and refer to them"
    )]
    SchemaTooDeep {
        /// The tool.
        name: ToolName,
        /// Which schema: `input` or `output`.
        schema: &'static str,
    },
    /// It says nothing about any value.
    #[error(
        "the output schema of tool `{name}` is no JSON Schema; pass an object, or leave it out"
    )]
    OutputSchemaNotASchema {
        /// The tool.
        name: ToolName,
    },
}
