//! The declaration of a tool.

use std::{borrow::Cow, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{
    availability::Availability, call_preview::CallPreview, capabilities::Capabilities,
    context::ToolContext, missing_reason::MissingReason, text_origin::TextOrigin,
};
use crate::{
    json::{
        depth::{DEEPEST_JSON, nests_too_deep},
        digest::{Digest, canonical_schema},
    },
    names::{
        mcp_names::{is_mcp_name, is_mcp_origin, is_mcp_toolset},
        name::{InvalidToolNameError, SkillId, ToolName},
    },
};

/// The origin of a tool that declares none.
pub(crate) const UNDECLARED_ORIGIN: &str = "code";

/// The origin of a plugin's tool that declares none.
pub(crate) fn origin_of_plugin(plugin: &str) -> String {
    format!("plugin `{plugin}`")
}

/// A tool's hints about its effects. Declared by the author; those of a remote server count only if
/// the server is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy or overwrite something.
    pub destructive: bool,
    /// Repeating a call has the same effect as making it once.
    pub idempotent: bool,
}

/// The behavior in [`compose`](crate::Menu) and in a merge when a tool's name is already taken.
/// Only the incoming tool's setting applies, the second in the order of sources; the existing
/// tool's is ignored. `register` uses neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnCollision {
    /// An error that names both origins.
    #[default]
    Fail,
    /// The existing tool stays.
    Keep,
    /// The incoming tool replaces the existing one.
    Replace,
}

/// The lifetime of a tool in a turn's [`ToolRegistry`](crate::ToolRegistry). A tool without one
/// stays as long as its source.
///
/// Applies to registries only: a provider is queried in each iteration and decides how long it
/// lists a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Lifetime {
    /// For the first iteration that offers it. A tool that is withheld, or whose iteration could
    /// not begin, is kept until then. A tool that it replaced with
    /// [`overwrite`](crate::ToolRegistry::overwrite) does not return when it is removed.
    Iteration,
    /// For the turn that owns the registry; a baseline gives each turn its own copy.
    Turn,
    /// For the conversation: a turn passes it on to the next one of the same tenant, principal and
    /// conversation on the same engine. It ends when a turn removes it from its registry, or when
    /// the conversation ends; a conversation without a name ends with its turn. A nacked turn
    /// passes on none of its changes. Engines with different plugins share conversations; a
    /// plugin's tool appears in the turns of engines that have the plugin.
    Session,
}

/// The key of the resource that a call changes.
#[derive(Clone)]
pub(crate) struct ResourceKey(pub(crate) Arc<KeyOfArguments>);

type KeyOfArguments = dyn Fn(&Value) -> Option<String> + Send + Sync;

crate::internal::debug_fields!(ResourceKey);

/// Shows what a call would change.
#[derive(Clone)]
pub(crate) struct Previewer(pub(crate) Arc<PreviewOfCall>);

type PreviewOfCall =
    dyn Fn(Value, ToolContext) -> BoxFuture<'static, Option<CallPreview>> + Send + Sync;

crate::internal::debug_fields!(Previewer);

/// The digest of the program that a tool runs.
#[derive(Clone)]
pub(crate) struct ProgramDigest(pub(crate) Arc<dyn Fn() -> Digest + Send + Sync>);

crate::internal::debug_fields!(ProgramDigest);

/// When a tool's result is stored as an artifact, by an engine with an artifact port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ArtifactPolicy {
    /// If the result is truncated, so that the missing part can be read.
    #[default]
    WhenCut,
    /// Always: a model reads a handle instead of the text.
    Always,
    /// Never: truncated text is lost. Used by the tools that read artifacts.
    Never,
}

/// The engine's settings of a tool, as its builder collects them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToolSettings {
    pub(crate) title: Option<Arc<str>>,
    pub(crate) toolset: Option<Arc<str>>,
    pub(crate) annotations: Annotations,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result_chars: Option<usize>,
    pub(crate) untrusted: bool,
    pub(crate) text_origin: TextOrigin,
    pub(crate) asks_when_tainted: bool,
    pub(crate) reads_taint: bool,
    pub(crate) dry_run: bool,
    pub(crate) always_include: bool,
    pub(crate) deferred: Option<bool>,
    pub(crate) on_collision: OnCollision,
    pub(crate) ephemeral: Option<Lifetime>,
    pub(crate) own_handles: bool,
    pub(crate) mcp_server: Option<Arc<str>>,
    pub(crate) open_world: bool,
    pub(crate) sequential: bool,
    pub(crate) inline: bool,
    pub(crate) resource: Option<ResourceKey>,
    pub(crate) preview: Option<Previewer>,
    pub(crate) program: Option<ProgramDigest>,
    pub(crate) availability: Option<Availability>,
    pub(crate) refused: Option<MissingReason>,
    pub(crate) artifact_policy: ArtifactPolicy,
    pub(crate) artifact_kind: Option<Arc<str>>,
    pub(crate) framework: bool,
    pub(crate) foreign_definition: bool,
    pub(crate) skill: Option<SkillId>,
    pub(crate) meta: Map<String, Value>,
}

/// The complete declaration of a tool: the parts for the model (name, description, schema) and the
/// engine's settings. Immutable; made with [`Tool::builder`](crate::Tool::builder).
#[derive(Clone)]
pub struct ToolDefinition {
    pub(crate) name: ToolName,
    pub(crate) description: Arc<str>,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<(Value, Digest)>,
    pub(crate) settings: ToolSettings,
    pub(crate) capabilities: Arc<Capabilities>,
    pub(crate) origin: Arc<str>,
    pub(crate) plugin: Option<Arc<str>>,
    /// Why no tool can be made as declared.
    pub(crate) invalid: Option<Arc<InvalidToolError>>,
    digest: Digest,
    schema_digest: Digest,
    rendering: Arc<str>,
}

impl ToolDefinition {
    pub(crate) fn new(
        name: &str,
        description: &str,
        input_schema: &Value,
    ) -> Result<Self, InvalidToolError> {
        let name = ToolName::new(name)?;
        let description = description.trim();
        if description.is_empty() {
            return Err(InvalidToolError::NoDescription { name });
        }
        if nests_too_deep(input_schema) {
            return Err(InvalidToolError::SchemaTooDeep { name, schema: "input" });
        }
        let takes_an_object = match input_schema.get("type") {
            None => input_schema.is_object(),
            Some(kind) => kind == "object",
        };
        if !takes_an_object {
            return Err(InvalidToolError::NotAnObjectSchema { name });
        }
        Ok(Self::of(name, description, input_schema))
    }

    /// The definition of a declaration of which no tool can be made.
    pub(crate) fn invalid(error: InvalidToolError) -> Self {
        let name = match &error {
            InvalidToolError::Name(_) => ToolName::placeholder(),
            InvalidToolError::NoDescription { name }
            | InvalidToolError::NotAnObjectSchema { name }
            | InvalidToolError::ResultCapTooSmall { name, .. }
            | InvalidToolError::KindOfNothing { name }
            | InvalidToolError::SchemaTooDeep { name, .. }
            | InvalidToolError::OutputSchemaNotASchema { name } => name.clone(),
        };
        Self { invalid: Some(Arc::new(error)), ..Self::of(name, "Not available.", &json!({})) }
    }

    fn of(name: ToolName, description: &str, input_schema: &Value) -> Self {
        let mut input_schema = canonical_schema(input_schema);
        if let Value::Object(map) = &mut input_schema {
            // Required by model APIs; implied otherwise.
            map.entry("type").or_insert_with(|| "object".into());
        }
        let shown = json!({
            "name": name, "description": description, "input_schema": input_schema,
        })
        .to_string();
        Self {
            digest: Digest::of(&shown),
            schema_digest: Digest::of(input_schema.to_string()),
            rendering: shown.into(),
            name,
            description: description.into(),
            input_schema,
            output_schema: None,
            settings: ToolSettings::default(),
            capabilities: Arc::default(),
            origin: UNDECLARED_ORIGIN.into(),
            plugin: None,
            invalid: None,
        }
    }

    /// The same definition with other texts for the model.
    pub(crate) fn shown_as(
        &self,
        name: &str,
        description: &str,
        input_schema: &Value,
    ) -> Result<Self, InvalidToolError> {
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

    /// Sets the output schema, in canonical form; the model's texts stay the same.
    pub(crate) fn set_output_schema(&mut self, schema: &Value) -> Result<(), InvalidToolError> {
        let name = || self.name.clone();
        if nests_too_deep(schema) {
            return Err(InvalidToolError::SchemaTooDeep { name: name(), schema: "output" });
        }
        if !(schema.is_object() || schema.is_boolean()) {
            return Err(InvalidToolError::OutputSchemaNotASchema { name: name() });
        }
        let schema = canonical_schema(schema);
        let digest = Digest::of(schema.to_string());
        self.output_schema = Some((schema, digest));
        Ok(())
    }

    /// The name, as called by the model.
    pub fn name(&self) -> &ToolName {
        &self.name
    }

    /// The description by which the model decides when to call the tool.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON Schema of the arguments, in canonical form; always of an object.
    pub fn input_schema(&self) -> &Value {
        &self.input_schema
    }

    /// JSON Schema of structured results, in canonical form, if declared. Models do not see it. The
    /// engine validates each result: missing or invalid structured data fails the call. Clients of
    /// a gateway receive structured results of such tools only.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output_schema.as_ref().map(|(schema, _)| schema)
    }

    /// The digest of the output schema, if declared. Engines use it to cache compiled schemas.
    pub fn output_digest(&self) -> Option<Digest> {
        self.output_schema.as_ref().map(|(_, digest)| *digest)
    }

    /// The display name for people, if declared. Models do not see it.
    pub fn title(&self) -> Option<&str> {
        self.settings.title.as_deref()
    }

    /// The group that the tool belongs to, such as `billing` or `file`.
    pub fn toolset(&self) -> Option<&str> {
        self.settings.toolset.as_deref()
    }

    /// Hints about the tool's effects.
    pub fn annotations(&self) -> Annotations {
        self.settings.annotations
    }

    /// The timeout of one call; the engine's default if absent.
    pub fn timeout(&self) -> Option<Duration> {
        self.settings.timeout
    }

    /// The tool's cap on a result's text, in characters, at least
    /// [`MIN_RESULT_CHARS`](crate::ToolBuilder::MIN_RESULT_CHARS). It is never raised, even if the
    /// batch's budget is not used up.
    pub fn max_result_chars(&self) -> Option<usize> {
        self.settings.max_result_chars
    }

    /// When a result is stored as an artifact.
    pub fn artifact_policy(&self) -> ArtifactPolicy {
        self.settings.artifact_policy
    }

    /// The kind of its artifacts, if declared; otherwise detected from the content.
    pub fn artifact_kind(&self) -> Option<&Arc<str>> {
        self.settings.artifact_kind.as_ref()
    }

    /// Whether results may contain content of an untrusted author. Such results, including errors,
    /// are sanitized and fenced for the model.
    pub fn untrusted(&self) -> bool {
        self.settings.untrusted
    }

    /// Where the text of results is from, which decides what in it is replaced if it is untrusted.
    pub fn text_origin(&self) -> TextOrigin {
        self.settings.text_origin
    }

    /// Whether the tool stays in the menu while a skill narrows it. The policy still applies.
    pub fn always_include(&self) -> bool {
        self.settings.always_include
    }

    /// The skill that it belongs to, as a tool of [`skill_scoped_tools`](crate::skill_scoped_tools): other
    /// active skills do not hide it while this one is active.
    pub fn skill(&self) -> Option<&SkillId> {
        self.settings.skill.as_ref()
    }

    /// Whether the tool is deferred: callable, and absent from the definitions that a model reads
    /// until it finds the tool with `search_tools`. `None` leaves it to the engine.
    pub fn deferred(&self) -> Option<bool> {
        self.settings.deferred
    }

    /// The behavior if an earlier source offers the same name.
    pub fn on_collision(&self) -> OnCollision {
        self.settings.on_collision
    }

    /// The tool's lifetime in a turn's registry, if limited.
    pub fn ephemeral(&self) -> Option<Lifetime> {
        self.settings.ephemeral
    }

    /// Whether each call is approved while the conversation has read content of unknown authors.
    pub fn asks_when_tainted(&self) -> bool {
        self.settings.asks_when_tainted
    }

    /// Whether the body asks if the conversation has read content of unknown authors; see
    /// [`ToolBuilder::reads_taint`](crate::ToolBuilder::reads_taint).
    pub fn reads_taint(&self) -> bool {
        self.settings.reads_taint
    }

    /// Whether the body of a call runs in a dry run; see
    /// [`ToolBuilder::dry_run`](crate::ToolBuilder::dry_run).
    pub fn runs_in_dry_run(&self) -> bool {
        self.settings.dry_run || self.settings.framework
    }

    /// The digest of the definition and of the program that the tool runs now, if it
    /// [runs one](crate::ToolBuilder::program): what an approval is about. Reads the program.
    pub fn approved_digest(&self) -> Digest {
        match &self.settings.program {
            None => self.digest(),
            Some(program) => Digest::of_all([self.digest(), program.0()].iter()),
        }
    }

    /// Metadata for code such as gates and middleware. Models do not see it.
    pub fn meta(&self) -> &Map<String, Value> {
        &self.settings.meta
    }

    /// The capabilities that the tool needs.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether a call needs handles of a [`CapabilityGranter`](crate::CapabilityGranter). False for
    /// a tool whose body [has its handles already](crate::ToolBuilder::own_handles).
    pub fn requires_granter(&self) -> bool {
        !self.settings.own_handles && self.capabilities.requires_granter()
    }

    /// Whether the body was made with the handles of its [capabilities](Self::capabilities).
    pub fn has_own_handles(&self) -> bool {
        self.settings.own_handles
    }

    /// The key of the resource that a call with these arguments changes, if it is known; see
    /// [`ToolBuilder::resource`](crate::ToolBuilder::resource).
    pub fn resource(&self, args: &Value) -> Option<String> {
        self.settings.resource.as_ref().and_then(|key| (key.0)(args))
    }

    /// The change that a call would make; `None` if the tool does not show it. See
    /// [`ToolBuilder::preview`](crate::ToolBuilder::preview).
    pub fn preview(
        &self,
        args: Value,
        cx: ToolContext,
    ) -> Option<BoxFuture<'static, Option<CallPreview>>> {
        self.settings.preview.as_ref().map(|preview| (preview.0)(args, cx))
    }

    /// Whether a call runs alone: earlier calls of the batch have ended, and later ones have not
    /// begun.
    pub fn sequential(&self) -> bool {
        self.settings.sequential
    }

    /// Why it is [never available](crate::Tool::refused), for a client.
    pub fn refusal(&self) -> Option<MissingReason> {
        self.settings.refused
    }

    /// Whether the tool has an [availability check](crate::ToolBuilder::available_if).
    pub fn has_availability_check(&self) -> bool {
        self.settings.availability.is_some()
    }

    /// Runs the availability check; a tool without one is always available.
    ///
    /// # Errors
    /// The reason, for the operator, why the tool is unavailable. A check that panics counts as
    /// failed.
    pub fn check_available(&self) -> Result<(), Arc<str>> {
        self.settings.availability.as_ref().map_or(Ok(()), Availability::check)
    }

    /// The local name of the MCP server that the tool belongs to. A personality admits such tools
    /// by server, not by toolset.
    pub fn mcp_server(&self) -> Option<&str> {
        self.settings.mcp_server.as_deref()
    }

    /// Whether a call passes its arguments on to a host, a program or a server. True for tools of
    /// MCP servers and for those that declare network or programs among their
    /// [capabilities](Self::capabilities). Calls whose arguments contain a known secret that the
    /// tool does not declare are denied.
    pub fn open_world(&self) -> bool {
        self.settings.open_world
            || self.settings.mcp_server.is_some()
            || self.capabilities.reach_others()
    }

    /// The reason, if the tool's name, toolset or origin wrongly claims that it belongs to an MCP
    /// server. Engines do not offer such a tool, because rules identify servers and their tools by
    /// these.
    pub fn false_origin(&self) -> Option<String> {
        const PREFIX: &str = "mcp__";
        let is_of = |server: &str| {
            let tool = self.name.strip_prefix(PREFIX).and_then(|name| name.strip_prefix(server));
            tool.is_some_and(|tool| tool.starts_with("__"))
        };
        let claim = match self.mcp_server() {
            _ if is_mcp_name(&self.name) && !self.mcp_server().is_some_and(is_of) => {
                format!("its name begins with `{}`", self.name.get(..PREFIX.len())?)
            }
            None if self.toolset().is_some_and(is_mcp_toolset) => {
                format!("its toolset is `{}`", self.toolset()?)
            }
            None if is_mcp_origin(&self.origin) => format!("its origin is `{}`", self.origin),
            _ => return None,
        };
        Some(match self.mcp_server() {
            Some(server) => format!("{claim}, but it belongs to MCP server `{server}`; rename it"),
            None => format!("{claim}, but it belongs to no MCP server; change that"),
        })
    }

    /// The plugin that registered the tool.
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// The place of declaration, for messages and rules: `toolcrib.toml:12`, `mcp:github`, `code`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The origin for display: the [origin](Self::origin), and the plugin that registered the tool
    /// if the origin does not name it.
    pub fn origin_label(&self) -> Cow<'_, str> {
        match &self.plugin {
            Some(plugin) if *self.origin != *origin_of_plugin(plugin) => {
                Cow::Owned(format!("{} ({})", self.origin, origin_of_plugin(plugin)))
            }
            _ => Cow::Borrowed(&self.origin),
        }
    }

    /// The [origin](Self::origin) as a shared text.
    pub fn shared_origin(&self) -> &Arc<str> {
        &self.origin
    }

    /// Whether the tool is one of Toolcrib's own (`read_skill`). Only policy rules that name it
    /// literally apply to it; patterns and the default do not.
    pub fn is_framework(&self) -> bool {
        self.settings.framework
    }

    /// Whether a third party worded the definition: an MCP server, a hub or an API's document. The
    /// project cannot improve such texts.
    pub fn is_foreign_definition(&self) -> bool {
        self.settings.foreign_definition
    }

    /// The digest of the model's texts of this tool.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The digest of the canonical input schema.
    pub fn schema_digest(&self) -> Digest {
        self.schema_digest
    }

    /// The vendor-neutral JSON for the model: `{name, description, input_schema}`.
    pub fn rendering(&self) -> &str {
        &self.rendering
    }
}

crate::internal::debug_fields!(
    ToolDefinition,
    definition,
    name = definition.name,
    toolset = definition.settings.toolset,
    annotations = definition.settings.annotations,
    origin = definition.origin,
    ..
);

/// An invalid declaration of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToolError {
    /// An invalid name.
    #[error(transparent)]
    Name(#[from] InvalidToolNameError),
    /// A model cannot choose a tool without a description.
    #[error("tool `{name}` has no description; say when to use it")]
    NoDescription {
        /// The tool.
        name: ToolName,
    },
    /// Model APIs accept only objects as arguments.
    #[error("the input schema of tool `{name}` must be of `type: \"object\"`")]
    NotAnObjectSchema {
        /// The tool.
        name: ToolName,
    },
    /// The truncation marker would not fit, so the cap would have no effect.
    #[error(
        "tool `{name}` caps its results at {chars} characters; `max_result_chars` is {} or more, \
         so that the truncation marker fits",
        crate::tool::ToolBuilder::MIN_RESULT_CHARS
    )]
    ResultCapTooSmall {
        /// The tool.
        name: ToolName,
        /// The declared cap.
        chars: usize,
    },
    /// The two settings contradict each other.
    #[error(
        "tool `{name}` declares an artifact kind, but the artifact policy `Never`; leave \
         out `artifact_kind`, or `ArtifactPolicy::Never`"
    )]
    KindOfNothing {
        /// The tool.
        name: ToolName,
    },
    /// Recursion over it could exhaust the stack.
    #[error(
        "the {schema} schema of tool `{name}` nests deeper than {DEEPEST_JSON} levels; \
         give its parts names in `$defs` and refer to them"
    )]
    SchemaTooDeep {
        /// The tool.
        name: ToolName,
        /// The schema: `input` or `output`.
        schema: &'static str,
    },
    /// Not a schema for any value.
    #[error(
        "the output schema of tool `{name}` is not a JSON Schema; pass an object, or leave it out"
    )]
    OutputSchemaNotASchema {
        /// The tool.
        name: ToolName,
    },
}
