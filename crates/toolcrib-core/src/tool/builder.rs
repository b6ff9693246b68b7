//! The builder of tools.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Tool, ToolBody,
    availability::{Availability, IntoAvailability},
    call_preview::CallPreview,
    capabilities::Capabilities,
    context::ToolContext,
    definition::{
        Annotations, ArtifactPolicy, InvalidToolError, Lifetime, OnCollision, Previewer,
        ProgramDigest, ResourceKey, ToolDefinition, ToolSettings,
    },
    function::{BlockingHandler, Handler},
    output::IntoToolOutput,
    text_origin::TextOrigin,
    with_check,
};
use crate::json::{depth::dismantle, digest::Digest};

/// Builder of a [`Tool`], from its name to its body. Ends with [`handler`](Self::handler),
/// [`blocking`](Self::blocking) or [`body`](Self::body).
#[must_use = "a builder makes nothing until a body ends it"]
#[derive(Debug)]
pub struct ToolBuilder {
    name: String,
    description: String,
    input_schema: Value,
    output_schema: Option<Value>,
    capabilities: Capabilities,
    origin: Option<Arc<str>>,
    settings: ToolSettings,
}

impl ToolBuilder {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            input_schema: json!({ "type": "object", "additionalProperties": false }),
            output_schema: None,
            capabilities: Capabilities::default(),
            origin: None,
            settings: ToolSettings::default(),
        }
    }

    /// The description by which the model decides when to call the tool. Required.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// JSON Schema of the arguments. Default: an object without properties.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = schema;
        self
    }

    /// JSON Schema of structured results. Models do not see it; see
    /// [`ToolDefinition::output_schema`]. Default: none.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// The display name for people. Models do not see it. Default: none; a blank text counts as
    /// none.
    pub fn title(mut self, title: impl AsRef<str>) -> Self {
        self.settings.title =
            Some(title.as_ref().trim()).filter(|title| !title.is_empty()).map(Arc::from);
        self
    }

    /// The group that the tool belongs to.
    pub fn toolset(mut self, toolset: impl Into<Arc<str>>) -> Self {
        self.settings.toolset = Some(toolset.into());
        self
    }

    /// Sets all annotations at once.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.settings.annotations = annotations;
        self
    }

    /// Declares that the tool changes nothing.
    pub fn read_only(mut self) -> Self {
        self.settings.annotations.read_only = true;
        self
    }

    /// Declares that the tool may destroy or overwrite something.
    pub fn destructive(mut self) -> Self {
        self.settings.annotations.destructive = true;
        self
    }

    /// Declares that repeating a call has the same effect as making it once.
    pub fn idempotent(mut self) -> Self {
        self.settings.annotations.idempotent = true;
        self
    }

    /// The timeout of one call. Default: the engine's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// The minimum of [`max_result_chars`](Self::max_result_chars): the truncation marker must fit.
    pub const MIN_RESULT_CHARS: usize = 100;

    /// The tool's cap on a result's text, in characters, at least
    /// [`MIN_RESULT_CHARS`](Self::MIN_RESULT_CHARS). Default: only the batch's budget applies.
    pub fn max_result_chars(mut self, chars: usize) -> Self {
        self.settings.max_result_chars = Some(chars);
        self
    }

    /// Marks results as content of an untrusted author.
    pub fn untrusted(mut self) -> Self {
        self.settings.untrusted = true;
        self
    }

    /// Declares that results are text of files and programs of a project: if they are untrusted, only
    /// exact tokens of chat templates are replaced in them ([`TextOrigin::Project`]), since anything
    /// else is code that a model must read as it is. Default: text of other parties.
    pub fn project_text(mut self) -> Self {
        self.settings.text_origin = TextOrigin::Project;
        self
    }

    /// Has each call approved, as a rule with the effect `ask` does, while the conversation has read
    /// content of unknown authors. For tools that change what other conversations read. Default: only
    /// the policy decides.
    pub fn asks_when_tainted(mut self) -> Self {
        self.settings.asks_when_tainted = true;
        self
    }

    /// Declares that the body asks [`ToolContext::is_tainted`], so that a gateway with replicas reads what
    /// the others have noted before each call. Unlike with [`asks_when_tainted`](Self::asks_when_tainted),
    /// calls need no approval. Default: it may not know what another replica noted in the last second.
    pub fn reads_taint(mut self) -> Self {
        self.settings.reads_taint = true;
        self
    }

    /// Declares that the body has no effect if [`ToolContext::dry_run`] is true: it then returns what it
    /// would do, or what it reads. Default: a dry run does not run the body, and the result is a
    /// [plan](crate::CallPlan).
    pub fn dry_run(mut self) -> Self {
        self.settings.dry_run = true;
        self
    }

    /// Keeps the tool in the menu while a skill narrows it.
    pub fn always_include(mut self) -> Self {
        self.settings.always_include = true;
        self
    }

    /// The behavior if an earlier source offers the same name. Does not apply to tools that come
    /// later; they use their own setting. Default: an error.
    pub fn on_collision(mut self, on_collision: OnCollision) -> Self {
        self.settings.on_collision = on_collision;
        self
    }

    /// Limits the tool's lifetime in a registry: to the first iteration that offers it, the turn,
    /// or the conversation. A provider decides itself how long it lists a tool.
    pub fn ephemeral(mut self, lifetime: Lifetime) -> Self {
        self.settings.ephemeral = Some(lifetime);
        self
    }

    /// Declares the capabilities that the tool needs. Default: none.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Declares that the body was made with the handles of its capabilities, as those of declared
    /// tools are. The capabilities then only say what the tool reaches, for personalities; no
    /// [`CapabilityGranter`](crate::CapabilityGranter) is asked. Default: the granter adds handles to
    /// each call.
    pub fn own_handles(mut self) -> Self {
        self.settings.own_handles = true;
        self
    }

    /// Runs each call alone within its batch. Default: calls of a batch run concurrently.
    pub fn sequential(mut self) -> Self {
        self.settings.sequential = true;
        self
    }

    /// Declares that the body neither blocks nor computes for long before it waits or ends. An engine
    /// then runs it on the task of its call instead of a separate one, which is cheaper. Panics,
    /// deadlines and cancellation are handled all the same, but a body that does block exceeds its
    /// deadline and delays the other calls of its batch. Default: a separate task, except for
    /// [`blocking`](Self::blocking) and a [body that runs inline](ToolBody::runs_inline).
    pub fn inline(mut self) -> Self {
        self.settings.inline = true;
        self
    }

    /// Sets the resource that a call changes, by a key of its validated arguments, such as
    /// `file:notes/a.md`. Calls with the same key, also of other tools and turns of the engine, run one
    /// after the other. The wait does not count for the timeout of the call. `None` excludes no call. Default:
    /// none.
    ///
    /// Neighbor: [`sequential`](Self::sequential) keeps a call apart from all others of its batch.
    pub fn resource(
        mut self,
        key: impl Fn(&Value) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.settings.resource = Some(ResourceKey(Arc::new(key)));
        self
    }

    /// Shows a person who approves a call what it would change, by a function of its validated
    /// arguments that changes nothing. The context has no handles but those that the tool was made
    /// with. `None`, a failure, or no result within two seconds shows the arguments only. Default: none.
    pub fn preview<F, Fut>(mut self, preview: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<CallPreview>> + Send + 'static,
    {
        let preview = move |args, cx| -> BoxFuture<'static, Option<CallPreview>> {
            Box::pin(preview(args, cx))
        };
        self.settings.preview = Some(Previewer(Arc::new(preview)));
        self
    }

    /// Declares that calls run a program, by a function that returns the digest of the program as it is
    /// now: an approval of a call is void once it has changed. Default: none.
    pub fn program(mut self, digest: impl Fn() -> Digest + Send + Sync + 'static) -> Self {
        self.settings.program = Some(ProgramDigest(Arc::new(digest)));
        self
    }

    /// Adds metadata for code such as gates and middleware. Neither models nor the engine use it.
    /// The last value of a key counts.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.settings.meta.insert(key.into(), value.into());
        self
    }

    /// The place of declaration, for messages. Default: `code`.
    pub fn origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Offers the tool only while a check succeeds, such as that a required program or key exists.
    /// If called again, all checks must succeed. Default: always available.
    ///
    /// The check runs each time a menu is composed, where a failure hides the tool, and again at
    /// each call, which then fails with `not_available`. It returns `bool` or `Result<(), reason>`;
    /// the reason is for the operator, and a panic counts as a failure. It runs on the run's time,
    /// so it must not wait for anything.
    ///
    /// ```
    /// # use toolcrib_core::{Tool, ToolContext};
    /// # fn has_printer() -> bool { true }
    /// let print = Tool::builder("print")
    ///     .description("Prints a text.")
    ///     .available_if(|| if has_printer() { Ok(()) } else { Err("no printer is connected") })
    ///     .handler(|_: serde_json::Value, _: ToolContext| async { "printed" })?;
    /// assert_eq!(print.check_available(), Ok(()));
    /// # Ok::<(), toolcrib_core::InvalidToolError>(())
    /// ```
    pub fn available_if<A: IntoAvailability>(
        mut self,
        check: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        self.settings.availability =
            Some(with_check(self.settings.availability.take(), Availability::new(check)));
        self
    }

    /// Sets when a result is stored as an artifact, if the engine has an artifact port. Default:
    /// when it is truncated.
    pub fn artifact_policy(mut self, artifact_policy: ArtifactPolicy) -> Self {
        self.settings.artifact_policy = artifact_policy;
        self
    }

    /// Sets the kind of artifact, such as `json`. Default: detected from the content.
    pub fn artifact_kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.settings.artifact_kind = Some(kind.into());
        self
    }

    /// Sets the MCP server that the tool belongs to; see [`ToolDefinition::mcp_server`]. For MCP
    /// clients.
    pub fn mcp_server(mut self, server: impl Into<Arc<str>>) -> Self {
        self.settings.mcp_server = Some(server.into());
        self
    }

    /// Sets whether the tool is deferred; see [`ToolDefinition::deferred`]. Default: the engine
    /// decides.
    pub fn deferred(mut self, deferred: bool) -> Self {
        self.settings.deferred = Some(deferred);
        self
    }

    /// Declares that calls pass their arguments on to others; see [`ToolDefinition::open_world`].
    pub fn open_world(mut self) -> Self {
        self.settings.open_world = true;
        self
    }

    /// Marks a definition as worded by a third party; see
    /// [`ToolDefinition::is_foreign_definition`].
    #[doc(hidden)]
    pub fn foreign_definition(mut self) -> Self {
        self.settings.foreign_definition = true;
        self
    }

    /// Marks a tool as Toolcrib's own; see [`ToolDefinition::is_framework`].
    #[doc(hidden)]
    pub fn framework(mut self) -> Self {
        self.settings.framework = true;
        self.settings.always_include = true;
        self
    }

    /// Finishes with an async function of typed arguments.
    ///
    /// # Errors
    /// [`InvalidToolError`] if name, description or schema is invalid.
    pub fn handler<A, F, Fut>(self, function: F) -> Result<Tool, InvalidToolError>
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoToolOutput,
    {
        self.body(Handler::new(function))
    }

    /// Finishes with a function that blocks or computes; it runs on the blocking pool. A deadline
    /// cannot stop it: let it check [`ToolContext::cancellation`] regularly.
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn blocking<A, F, T>(self, function: F) -> Result<Tool, InvalidToolError>
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, ToolContext) -> T + Send + Sync + 'static,
        T: IntoToolOutput + 'static,
    {
        self.body(BlockingHandler::new(function))
    }

    /// Finishes with a custom body.
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn body(self, body: impl ToolBody) -> Result<Tool, InvalidToolError> {
        let output_schema = self.output_schema;
        let definition = ToolDefinition::new(&self.name, &self.description, &self.input_schema)
            .and_then(|mut definition| {
                output_schema.iter().try_for_each(|schema| definition.set_output_schema(schema))?;
                Ok(definition)
            });
        dismantle(self.input_schema);
        output_schema.into_iter().for_each(dismantle);
        let mut definition = definition?;
        let settings = self.settings;
        let too_small = |chars: &usize| *chars < Self::MIN_RESULT_CHARS;
        if let Some(chars) = settings.max_result_chars.filter(too_small) {
            return Err(InvalidToolError::ResultCapTooSmall { name: definition.name, chars });
        }
        if settings.artifact_policy == ArtifactPolicy::Never && settings.artifact_kind.is_some() {
            return Err(InvalidToolError::KindOfNothing { name: definition.name });
        }
        definition.settings = settings;
        definition.capabilities = Arc::new(self.capabilities);
        if let Some(origin) = self.origin {
            definition.origin = origin;
        }
        Ok(Tool::of(definition, Arc::new(body)))
    }
}
