//! From what is said of a tool, one thing after the other, to the tool.

use std::{future::Future, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    Inner, Tool, ToolBody,
    function::{Blocking, Handler},
    with_check,
};
use crate::{
    availability::{Availability, IntoAvailability},
    capabilities::Capabilities,
    context::ToolContext,
    definition::{Annotations, InvalidTool, Lifetime, OnCollision, Spooling, ToolDefinition},
    depth::dismantle,
    output::IntoToolOutput,
};

/// Builds a [`Tool`]. Ends with [`handler`](Self::handler), [`blocking`](Self::blocking) or
/// [`body`](Self::body).
#[must_use = "a builder makes nothing until a body ends it"]
#[derive(Debug)]
pub struct ToolBuilder {
    name: String,
    description: String,
    input_schema: Value,
    output_schema: Option<Value>,
    title: Option<Arc<str>>,
    toolset: Option<Arc<str>>,
    annotations: Annotations,
    timeout: Option<Duration>,
    max_result_chars: Option<usize>,
    untrusted: bool,
    always_include: bool,
    on_collision: OnCollision,
    ephemeral: Option<Lifetime>,
    capabilities: Capabilities,
    sequential: bool,
    origin: Option<Arc<str>>,
    mcp_server: Option<Arc<str>>,
    open_world: bool,
    availability: Option<Availability>,
    spooling: Spooling,
    artifact_kind: Option<Arc<str>>,
    framework: bool,
    meta: Map<String, Value>,
}

impl ToolBuilder {
    pub(super) fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            input_schema: json!({ "type": "object", "additionalProperties": false }),
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
            capabilities: Capabilities::default(),
            sequential: false,
            origin: None,
            mcp_server: None,
            open_world: false,
            availability: None,
            spooling: Spooling::default(),
            artifact_kind: None,
            framework: false,
            meta: Map::new(),
        }
    }

    /// What the model reads to decide when to call the tool. Required.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// JSON Schema of the arguments. Default: an object without properties.
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = schema;
        self
    }

    /// JSON Schema of the structured results. The model does not read it; see
    /// [`ToolDefinition::output_schema`]. Default: none.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.output_schema = Some(schema);
        self
    }

    /// What people are shown in place of the name. The model does not read it. Default: none, and
    /// blank is none.
    pub fn title(mut self, title: impl AsRef<str>) -> Self {
        self.title = Some(title.as_ref().trim()).filter(|title| !title.is_empty()).map(Arc::from);
        self
    }

    /// The group that the tool belongs to.
    pub fn toolset(mut self, toolset: impl Into<Arc<str>>) -> Self {
        self.toolset = Some(toolset.into());
        self
    }

    /// Sets all annotations at once.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Declares that the tool changes nothing.
    pub fn read_only(mut self) -> Self {
        self.annotations.read_only = true;
        self
    }

    /// Declares that the tool may destroy or overwrite something.
    pub fn destructive(mut self) -> Self {
        self.annotations.destructive = true;
        self
    }

    /// Declares that doing it twice is the same as doing it once.
    pub fn idempotent(mut self) -> Self {
        self.annotations.idempotent = true;
        self
    }

    /// How long one call may take. Default: the engine's.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The least that [`max_result_chars`](Self::max_result_chars) may be: what says that something
    /// is missing must fit.
    pub const MIN_RESULT_CHARS: usize = 100;

    /// The tool's own cap on a result's text, in characters: no less than
    /// [`MIN_RESULT_CHARS`](Self::MIN_RESULT_CHARS). Default: none but the batch's budget.
    pub fn max_result_chars(mut self, chars: usize) -> Self {
        self.max_result_chars = Some(chars);
        self
    }

    /// Marks results as content that somebody else may have written.
    pub fn untrusted(mut self) -> Self {
        self.untrusted = true;
        self
    }

    /// Keeps the tool in the menu while a skill narrows it.
    pub fn always_include(mut self) -> Self {
        self.always_include = true;
        self
    }

    /// What happens when this tool comes in under a name that an earlier source offers. A tool that
    /// comes in later under this one's name is asked itself. Default: an error.
    pub fn on_collision(mut self, on_collision: OnCollision) -> Self {
        self.on_collision = on_collision;
        self
    }

    /// Lets the tool go by itself: with the iteration that first offers it, or with the turn. It
    /// counts for a tool in a registry; a provider decides itself how long it lists one.
    pub fn ephemeral(mut self, lifetime: Lifetime) -> Self {
        self.ephemeral = Some(lifetime);
        self
    }

    /// Declares what the tool needs of the world. Default: nothing.
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Makes each call run alone within its batch. Default: calls of a batch run at the same time.
    pub fn sequential(mut self) -> Self {
        self.sequential = true;
        self
    }

    /// Notes something of the tool for code that meets it: a gate, a middleware. The model does not read
    /// it, and the engine does not act on it. Given again under one key, the last counts.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Where the tool was declared, for messages. Default: `code`.
    pub fn origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Offers the tool only while a check says that it is available, such as that a program or a key
    /// that it needs is there. Given again, all checks must hold. Default: it always is.
    ///
    /// The check is asked each time a menu is composed, where it hides the tool, and again at each
    /// call, which is then `not_available`. It answers `bool` or `Result<(), reason>`; the reason is
    /// for the operator, and one that panics says no. It runs on the run's own time, so it looks at
    /// something that is at hand and does not wait for anything.
    ///
    /// ```
    /// # use toolcrib_core::{Tool, ToolContext};
    /// # fn has_printer() -> bool { true }
    /// let print = Tool::builder("print")
    ///     .description("Prints a text.")
    ///     .available_if(|| if has_printer() { Ok(()) } else { Err("no printer is connected") })
    ///     .handler(|_: serde_json::Value, _: ToolContext| async { "printed" })?;
    /// assert_eq!(print.check_available(), Ok(()));
    /// # Ok::<(), toolcrib_core::InvalidTool>(())
    /// ```
    pub fn available_if<A: IntoAvailability>(
        mut self,
        check: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        self.availability = Some(with_check(self.availability.take(), Availability::new(check)));
        self
    }

    /// Says when a result is kept as an artifact, where the engine keeps any. Default: when it is cut.
    pub fn spooling(mut self, spooling: Spooling) -> Self {
        self.spooling = spooling;
        self
    }

    /// Names the kind of artifact that results are, such as `json`. Default: it is told by the content.
    pub fn artifact_kind(mut self, kind: impl Into<Arc<str>>) -> Self {
        self.artifact_kind = Some(kind.into());
        self
    }

    /// Which MCP server's tool it is; see [`ToolDefinition::mcp_server`]. For MCP clients.
    pub fn mcp_server(mut self, server: impl Into<Arc<str>>) -> Self {
        self.mcp_server = Some(server.into());
        self
    }

    /// Declares that a call passes its arguments on to others; see [`ToolDefinition::open_world`].
    pub fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }

    /// Marks a tool that Toolcrib itself offers; see [`ToolDefinition::is_framework`].
    #[doc(hidden)]
    pub fn framework(mut self) -> Self {
        self.framework = true;
        self.always_include = true;
        self
    }

    /// Ends with an async function of typed arguments.
    ///
    /// # Errors
    /// [`InvalidTool`] when name, description or schema cannot be offered to a model.
    pub fn handler<A, F, Fut>(self, function: F) -> Result<Tool, InvalidTool>
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoToolOutput,
    {
        self.body(Handler::new(function))
    }

    /// Ends with a function that blocks or computes; it runs on the blocking pool. A deadline
    /// cannot stop it: let it look at [`ToolContext::cancellation`] from time to time.
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn blocking<A, F, T>(self, function: F) -> Result<Tool, InvalidTool>
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, ToolContext) -> T + Send + Sync + 'static,
        T: IntoToolOutput + 'static,
    {
        self.body(Blocking::new(function))
    }

    /// Ends with a body of one's own.
    ///
    /// # Errors
    /// As [`handler`](Self::handler).
    pub fn body(self, body: impl ToolBody) -> Result<Tool, InvalidTool> {
        let output_schema = self.output_schema;
        let definition = ToolDefinition::new(&self.name, &self.description, &self.input_schema)
            .and_then(|mut definition| {
                output_schema.iter().try_for_each(|schema| definition.set_output_schema(schema))?;
                Ok(definition)
            });
        dismantle(self.input_schema);
        output_schema.into_iter().for_each(dismantle);
        let mut definition = definition?;
        definition.title = self.title;
        if let Some(chars) = self.max_result_chars.filter(|chars| *chars < Self::MIN_RESULT_CHARS) {
            return Err(InvalidTool::ResultCapTooSmall { name: definition.name, chars });
        }
        if self.spooling == Spooling::Never && self.artifact_kind.is_some() {
            return Err(InvalidTool::KindOfNothing { name: definition.name });
        }
        definition.toolset = self.toolset;
        definition.annotations = self.annotations;
        definition.timeout = self.timeout;
        definition.max_result_chars = self.max_result_chars;
        definition.untrusted = self.untrusted;
        definition.always_include = self.always_include;
        definition.on_collision = self.on_collision;
        definition.ephemeral = self.ephemeral;
        definition.capabilities = Arc::new(self.capabilities);
        definition.sequential = self.sequential;
        definition.availability = self.availability;
        definition.spooling = self.spooling;
        definition.artifact_kind = self.artifact_kind;
        definition.framework = self.framework;
        definition.meta = self.meta;
        if let Some(origin) = self.origin {
            definition.origin = origin;
        }
        definition.mcp_server = self.mcp_server;
        definition.open_world = self.open_world;
        Ok(Tool(Arc::new(Inner { definition, body: Arc::new(body) })))
    }
}
