//! A tool: a definition and a body, immutable and shared.

mod builder;
mod function;

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Weak},
};

use futures_util::future::BoxFuture;
use serde_json::Value;

pub use self::builder::ToolBuilder;
use crate::{
    availability::{Availability, IntoAvailability},
    context::ToolContext,
    definition::{InvalidTool, ToolDefinition, UNDECLARED_ORIGIN, origin_of_plugin},
    output::{ToolError, ToolOutput},
};

/// What runs when a tool is called.
///
/// The engine spawns the future, so that a deadline, a panic or CPU-bound work cannot hurt the
/// run, unless it [only waits](Self::only_waits). A deadline cannot stop code that never awaits: put
/// such code into [`ToolBuilder::blocking`], and watch [`ToolContext::cancellation`].
pub trait ToolBody: Send + Sync + 'static {
    /// Runs one call. The arguments have passed the tool's schema.
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;

    /// Whether it only ever waits, as for a server's answer, and neither blocks nor computes for long.
    /// An engine then runs it on the task of its call, which costs less than one of its own; panics and
    /// deadlines are dealt with all the same. Default: no.
    fn only_waits(&self) -> bool {
        false
    }
}

/// A tool. Cloning shares it; two clones are [the same](Tool::same) tool.
#[derive(Clone)]
pub struct Tool(Arc<Inner>);

struct Inner {
    definition: ToolDefinition,
    body: Arc<dyn ToolBody>,
}

impl Tool {
    /// Starts a tool by hand.
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
    /// # Ok::<(), toolcrib_core::InvalidTool>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::new(name)
    }

    /// What is declared of the tool.
    pub fn definition(&self) -> &ToolDefinition {
        &self.0.definition
    }

    /// Whether both are one tool, not merely alike.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// What tells the tool from all others for as long as somebody holds it or its [`Known`].
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Remembers the tool without keeping it.
    pub(crate) fn known(&self) -> Known {
        Known(Arc::downgrade(&self.0))
    }

    /// The same tool, brought by a plugin. Its origin stays as it was declared, so that rules on
    /// origins hold for it; one that was not declared is the plugin. For engines.
    #[must_use]
    pub fn with_plugin(&self, plugin: &Arc<str>) -> Self {
        let mut definition = self.0.definition.clone();
        definition.plugin = Some(Arc::clone(plugin));
        if *definition.origin == *UNDECLARED_ORIGIN {
            definition.origin = origin_of_plugin(plugin).into();
        }
        Self(Arc::new(Inner { definition, body: Arc::clone(&self.0.body) }))
    }

    /// The same tool, offered only while a check says that it is available, beside the checks that
    /// it has; see [`ToolBuilder::available_if`].
    #[must_use]
    pub fn available_if<A: IntoAvailability>(
        &self,
        check: impl Fn() -> A + Send + Sync + 'static,
    ) -> Self {
        let mut definition = self.0.definition.clone();
        let check = Availability::new(check);
        definition.availability = Some(with_check(definition.availability.take(), check));
        Self(Arc::new(Inner { definition, body: Arc::clone(&self.0.body) }))
    }

    /// The same tool, of which the model reads something else.
    pub(crate) fn shown_as(
        &self,
        name: &str,
        description: &str,
        input_schema: &Value,
    ) -> Result<Self, InvalidTool> {
        let definition = self.0.definition.shown_as(name, description, input_schema)?;
        Ok(Self(Arc::new(Inner { definition, body: Arc::clone(&self.0.body) })))
    }

    /// The same tool with other texts.
    pub(crate) fn described_as(
        &self,
        description: &str,
        input_schema: &Value,
        output_schema: Option<&Value>,
        title: Option<&str>,
    ) -> Result<Self, InvalidTool> {
        let mut definition = self.0.definition.shown_as(self.name(), description, input_schema)?;
        if let Some(schema) = output_schema {
            definition.set_output_schema(schema)?;
        }
        definition.title = title.filter(|title| !title.trim().is_empty()).map(Arc::from);
        Ok(Self(Arc::new(Inner { definition, body: Arc::clone(&self.0.body) })))
    }

    /// Calls the body directly: no validation, no policy, no deadline. For engines and tests.
    pub fn call(
        &self,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Arc::clone(&self.0.body).call(args, cx)
    }

    /// Whether its body [only ever waits](ToolBody::only_waits).
    pub fn only_waits(&self) -> bool {
        self.0.body.only_waits()
    }
}

/// A check beside those that are there.
fn with_check(before: Option<Availability>, check: Availability) -> Availability {
    match before {
        Some(before) => check.after(before),
        None => check,
    }
}

/// A tool that is remembered and not kept. While it is, no other tool has its address.
pub(crate) struct Known(Weak<Inner>);

impl Known {
    /// Whether somebody still holds the tool.
    pub(crate) fn is_held(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// A tool, or what should have become one: `.tool(find_order_tool())` needs no `?`, the error comes
/// out where the whole is built.
#[diagnostic::on_unimplemented(
    message = "this is not a tool",
    label = "not a `Tool`, and not a `Result` of one",
    note = "pass what `#[tool]` made beside the function, and call it: `find_order_tool()` for \
            `find_order`",
    note = "or a `Tool` that `Tool::builder` made"
)]
pub trait IntoTool {
    /// The tool.
    ///
    /// # Errors
    /// Why there is none.
    fn into_tool(self) -> Result<Tool, InvalidTool>;
}

impl IntoTool for Tool {
    fn into_tool(self) -> Result<Tool, InvalidTool> {
        Ok(self)
    }
}

impl IntoTool for Result<Tool, InvalidTool> {
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
