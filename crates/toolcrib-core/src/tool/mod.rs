//! A tool: a definition and a body, immutable and shared.

pub(crate) mod agent_task;
pub(crate) mod attachment;
pub(crate) mod availability;
mod builder;
pub(crate) mod call_preview;
pub(crate) mod capabilities;
pub(crate) mod clarification;
pub(crate) mod client_port;
pub(crate) mod context;
pub(crate) mod definition;
pub(crate) mod extract;
pub(crate) mod file_reads;
mod function;
pub(crate) mod glob;
pub(crate) mod kv;
pub(crate) mod missing_reason;
pub(crate) mod network_rules;
pub(crate) mod output;
pub(crate) mod pending_call;
pub(crate) mod result;
pub(crate) mod text_origin;

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Weak},
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Map, Value};

pub use self::{
    agent_task::{AgentTask, Delegate, DelegateHandle},
    attachment::{Attachment, AttachmentError, Attachments},
    availability::IntoAvailability,
    builder::ToolBuilder,
    call_preview::CallPreview,
    capabilities::{Capabilities, CapabilityGranter},
    clarification::{Clarification, ClarificationOutcome, Clarifier, call_clarifier},
    client_port::{ClientAbilities, ClientHandle, ClientPort, ClientRefusal},
    context::{
        Audience, Progress, ProgressCount, ProgressSink, RunningWork, ToolContext, ToolContextParts,
    },
    definition::{
        Annotations, ArtifactPolicy, InvalidToolError, Lifetime, OnCollision, ToolDefinition,
    },
    extract::{Args, Json, State},
    file_reads::{FileRead, FileReads},
    glob::Glob,
    kv::Kv,
    missing_reason::MissingReason,
    network_rules::NetworkRules,
    output::{ErrorCode, IntoToolOutput, ToolError, ToolOutput, err, ok},
    result::{CallPlan, ToolResult},
    text_origin::TextOrigin,
};
use self::{
    availability::Availability,
    definition::{UNDECLARED_ORIGIN, origin_of_plugin},
    function::Handler,
};
pub use crate::{
    json::digest::{Digest, DigestHasher, InvalidDigestError, args_digest},
    kv::{KvError, KvScope},
    messages::{Arguments, BlockFields, ContentBlock, ImageInfo, InvalidImageError, ToolCall},
    names::{InvalidToolNameError, MAX_TOOL_NAME, MemoryScope, ToolName, TurnInfo},
};
use crate::{names::name::SkillId, secrets::secret::Redact};

/// The body of a tool.
///
/// The engine spawns the future, so that a deadline, a panic or CPU-bound work cannot affect the
/// run, unless it [runs inline](Self::runs_inline). A deadline cannot stop code that never awaits:
/// put such code into [`ToolBuilder::blocking`], and watch [`ToolContext::cancellation`].
pub trait ToolBody: Send + Sync + 'static {
    /// Runs one call. The arguments are validated against the tool's schema.
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Whether it only waits, as for a server's response, and neither blocks nor computes for long.
    /// An engine then runs it on the task of its call instead of a separate one, which is cheaper;
    /// panics and deadlines are handled all the same. In a batch of several calls, all of them begin
    /// before it does. Neighbor: [`ToolBuilder::inline`] declares it for a tool. Default: false.
    fn runs_inline(&self) -> bool {
        false
    }
}

/// A tool with its definition and its body. Cloning shares it; two clones are [the
/// same](Tool::same) tool.
#[derive(Clone)]
pub struct Tool(Arc<Inner>);

struct Inner {
    definition: ToolDefinition,
    body: Arc<dyn ToolBody>,
    /// The last redaction, with the version of the secrets.
    redaction: Mutex<Option<(u64, Redaction)>>,
}

/// A tool without known secrets.
#[derive(Clone)]
pub(crate) enum Redaction {
    /// It contains none.
    Clean,
    /// Its texts contained some.
    Redacted(Tool),
    /// A part that calls depend on contains one: a tool to name instead, and the reason.
    Withheld(Tool, Arc<str>),
}

impl Tool {
    /// Starts a builder of a tool.
    ///
    /// ```
    /// use toolcrib_core::{Tool, ToolContext};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Args { city: String }
    ///
    /// let weather = Tool::builder("weather")
    ///     .description("The weather in a city, now.")
    ///     .input_schema(serde_json::json!({
    ///         "type": "object",
    ///         "properties": { "city": { "type": "string" } },
    ///         "required": ["city"],
    ///         "additionalProperties": false,
    ///     }))
    ///     .read_only()
    ///     .handler(|args: Args, _cx: ToolContext| async move { format!("{}: sunny", args.city) })?;
    /// assert_eq!(weather.name(), "weather");
    /// # Ok::<(), toolcrib_core::InvalidToolError>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name)
    }

    /// Makes a tool of its declaration. An invalid declaration gives a tool that is never
    /// available: a menu withholds it with the error as the reason, and [`IntoTool`] returns the
    /// error. For `#[tool]`.
    #[doc(hidden)]
    pub fn declared(made: Result<Self, InvalidToolError>) -> Self {
        made.unwrap_or_else(|error| {
            let reason: Arc<str> = error.to_string().into();
            let mut definition = ToolDefinition::invalid(error);
            let shared = Arc::clone(&reason);
            let never = move || Err::<(), _>(Arc::clone(&shared));
            definition.settings.availability = Some(Availability::new(never));
            let body = Handler::new(move |_: Value, _| {
                std::future::ready(Err::<ToolOutput, _>(
                    ToolError::new(ErrorCode::NotAvailable, "the tool cannot be used")
                        .caused_by(&*reason),
                ))
            });
            Self::of(definition, Arc::new(body))
        })
    }

    fn of(definition: ToolDefinition, body: Arc<dyn ToolBody>) -> Self {
        Self(Arc::new(Inner { definition, body, redaction: Mutex::default() }))
    }

    /// Its [redaction](Self::redaction), searched once for each version of the known secrets.
    pub(crate) fn redacted_at(&self, redact: &dyn Redact, version: u64) -> Redaction {
        let known = self.0.redaction.lock().clone();
        if let Some((_, redaction)) = known.filter(|(at, _)| *at == version) {
            return redaction;
        }
        let redaction = self.redaction(redact, None);
        let replaced = self.0.redaction.lock().replace((version, redaction.clone()));
        // Outside the lock: tools may do anything when they are dropped.
        drop(replaced);
        redaction
    }

    /// The definition that models and providers see.
    pub fn definition(&self) -> &ToolDefinition {
        &self.0.definition
    }

    /// Whether both are the same instance, not merely equal.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether both call the same body: one is the other with changed texts or settings.
    #[doc(hidden)]
    pub fn same_body(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0.body, &other.0.body)
    }

    /// Identifies the tool for as long as it or its [`WeakTool`] exists.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// A weak reference to the tool.
    pub(crate) fn known(&self) -> WeakTool {
        WeakTool(Arc::downgrade(&self.0))
    }

    /// The same tool, registered by a plugin. A declared origin stays, so that rules on origins
    /// apply to it; an undeclared one becomes the plugin. For engines.
    #[must_use]
    pub fn with_plugin(&self, plugin: &Arc<str>) -> Self {
        let mut definition = self.0.definition.clone();
        definition.plugin = Some(Arc::clone(plugin));
        if *definition.origin == *UNDECLARED_ORIGIN {
            definition.origin = origin_of_plugin(plugin).into();
        }
        Self::of(definition, Arc::clone(&self.0.body))
    }

    /// The same tool as one that belongs to a skill.
    pub(crate) fn of_skill(&self, skill: &SkillId) -> Self {
        let mut definition = self.0.definition.clone();
        definition.settings.skill = Some(skill.clone());
        Self::of(definition, Arc::clone(&self.0.body))
    }

    /// The same tool with an additional availability check; see [`ToolBuilder::available_if`].
    #[must_use]
    pub fn available_if<A: IntoAvailability>(
        &self,
        check: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        let mut definition = self.0.definition.clone();
        let check = Availability::new(check);
        definition.settings.availability =
            Some(with_check(definition.settings.availability.take(), check));
        Self::of(definition, Arc::clone(&self.0.body))
    }

    /// The same tool, which is never available: the fixed text for a client, and the reason for the
    /// operator. For a tool whose definition is refused and that no provider lists.
    #[must_use]
    pub fn refused(&self, of: MissingReason, reason: Arc<str>) -> Self {
        let never = self.available_if(move || Err::<(), _>(Arc::clone(&reason)));
        let mut definition = never.0.definition.clone();
        definition.settings.refused = Some(of);
        Self::of(definition, Arc::clone(&self.0.body))
    }

    /// The same tool with other texts for the model.
    pub(crate) fn shown_as(
        &self,
        name: &str,
        description: &str,
        input_schema: &Value,
    ) -> Result<Self, InvalidToolError> {
        let definition = self.0.definition.shown_as(name, description, input_schema)?;
        Ok(Self::of(definition, Arc::clone(&self.0.body)))
    }

    /// The same tool with other texts.
    pub(crate) fn described_as(
        &self,
        description: &str,
        input_schema: &Value,
        output_schema: Option<&Value>,
        title: Option<&str>,
    ) -> Result<Self, InvalidToolError> {
        let mut definition = self.0.definition.shown_as(self.name(), description, input_schema)?;
        if let Some(schema) = output_schema {
            definition.set_output_schema(schema)?;
        }
        definition.settings.title = title.filter(|title| !title.trim().is_empty()).map(Arc::from);
        Ok(Self::of(definition, Arc::clone(&self.0.body)))
    }

    /// The same tool with this metadata.
    pub(crate) fn with_meta(&self, meta: Map<String, Value>) -> Self {
        let mut definition = self.0.definition.clone();
        definition.settings.meta = meta;
        Self::of(definition, Arc::clone(&self.0.body))
    }

    /// The same tool with nothing to show but its name, description and input schema.
    pub(crate) fn without_more_texts(&self) -> Self {
        let mut definition = self.0.definition.clone();
        definition.settings.title = None;
        definition.settings.meta = Map::new();
        definition.output_schema = None;
        Self::of(definition, Arc::clone(&self.0.body))
    }

    /// Calls the body directly, without validation, policy or deadline. For engines and tests.
    pub fn call(
        &self,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Arc::clone(&self.0.body).call(args, cx)
    }

    /// Whether its body runs inline, by its [declaration](ToolBuilder::inline) or
    /// [by itself](ToolBody::runs_inline).
    pub fn runs_inline(&self) -> bool {
        self.settings.inline || self.0.body.runs_inline()
    }
}

/// Combines a check with the existing ones.
fn with_check(before: Option<Availability>, check: Availability) -> Availability {
    match before {
        Some(before) => check.after(before),
        None => check,
    }
}

/// A weak reference to a tool. While it exists, no other tool has the same address.
pub(crate) struct WeakTool(Weak<Inner>);

impl WeakTool {
    /// Whether the tool still exists.
    pub(crate) fn is_held(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// A tool, or the `Result` of a [`ToolBuilder`]: builders that take it need no `?`, and return the
/// error from `build`.
#[diagnostic::on_unimplemented(
    message = "this is not a tool",
    label = "not a `Tool`, and not a `Result` of one",
    note = "call the function that `#[tool]` generated: `find_order_tool()` for \
            `find_order`",
    note = "or pass a `Tool` made with `Tool::builder`"
)]
pub trait IntoTool {
    /// The tool.
    ///
    /// # Errors
    /// The reason why the tool could not be made.
    fn into_tool(self) -> Result<Tool, InvalidToolError>;
}

impl IntoTool for Tool {
    fn into_tool(self) -> Result<Tool, InvalidToolError> {
        match &self.invalid {
            Some(error) => Err(InvalidToolError::clone(error)),
            None => Ok(self),
        }
    }
}

impl IntoTool for Result<Tool, InvalidToolError> {
    fn into_tool(self) -> Self {
        self
    }
}

impl Deref for Tool {
    type Target = ToolDefinition;

    #[inline]
    fn deref(&self) -> &ToolDefinition {
        &self.0.definition
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.definition, f)
    }
}
