use std::{
    collections::HashSet,
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;

use super::{
    DiscoveryError, DiscoveryErrorClass, Listing, ToolProvider,
    catalog::{Catalog, LastCatalog, Reason},
    context_list::ListContext,
    listing_info::ListingInfo,
    rewritten::RewriteCache,
};
use crate::{
    internal::panic_text::panic_text,
    names::name::ToolName,
    tool::{Tool, definition::InvalidToolError},
};

/// The decision of [`prepared`] on one tool.
#[derive(Debug, Clone, PartialEq)]
pub enum Preparation {
    /// The tool is offered unchanged.
    Keep,
    /// The tool is offered with other texts; its body, limits and origin stay.
    Rewrite(ToolRewrite),
    /// The tool is withheld, with a reason.
    Drop(Reason),
}

/// Replacements for parts of a tool's definition. Unset parts stay.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolRewrite {
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
}

impl ToolRewrite {
    /// Creates a rewrite without changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the name of the tool. A name that another tool of the same provider has fails the
    /// listing.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Replaces the description of the tool.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Replaces the JSON Schema of the arguments. Calls are validated against this schema alone,
    /// and the body receives whatever it admits: narrow the tool's own schema, do not widen it.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    fn apply(&self, tool: &Tool) -> Result<Tool, InvalidToolError> {
        tool.shown_as(
            self.name.as_deref().unwrap_or_else(|| tool.name().as_str()),
            self.description.as_deref().unwrap_or_else(|| tool.description()),
            self.input_schema.as_ref().unwrap_or_else(|| tool.input_schema()),
        )
    }
}

/// Return types of a preparing function: a [`Preparation`], or a `Result` of one.
pub trait IntoPreparation {
    /// The decision.
    ///
    /// # Errors
    /// The function's own failure, as text; it ends the iteration.
    fn into_preparation(self) -> Result<Preparation, String>;
}

impl IntoPreparation for Preparation {
    fn into_preparation(self) -> Result<Preparation, String> {
        Ok(self)
    }
}

impl<E: Display> IntoPreparation for Result<Preparation, E> {
    fn into_preparation(self) -> Result<Preparation, String> {
        self.map_err(|error| error.to_string())
    }
}

/// Rewrites or withholds a provider's tool definitions with a function of tool and context: a
/// description in the tenant's words, a schema without arguments that this principal may not set.
///
/// The function cannot add tools. The listing fails with the class `gate` on an error, a panic, a
/// name that another tool of the listing has, or a name that no model API accepts, because a
/// withheld tool may be withheld for a reason. The function is called for each listing; a rewrite
/// with equal content yields the same tool instance, so that an unchanged menu keeps its identity.
/// Immediate listings stay immediate, asynchronous ones stay asynchronous.
///
/// Neighbors: [`gated_tools`](super::gated_tools) only withholds; [`prefixed`](super::prefixed())
/// renames all tools.
///
/// ```
/// use toolcrib_core::{ListContext, Preparation, Tool, ToolRewrite, prepared, static_tools};
///
/// let provider = prepared("plain", static_tools([]), |tool: &Tool, cx: &ListContext| {
///     match &cx.identity().tenant {
///         None => Preparation::Drop("needs a tenant".into()),
///         Some(tenant) => Preparation::Rewrite(
///             ToolRewrite::new().description(format!("{} For {tenant} only.", tool.description())),
///         ),
///     }
/// });
/// assert_eq!(provider.path(), "prepared(plain) > static");
/// ```
pub fn prepared<F, P>(
    name: impl Into<Arc<str>>,
    inner: Arc<dyn ToolProvider>,
    prepare: F,
) -> Arc<dyn ToolProvider>
where
    F: Fn(&Tool, &ListContext) -> P + Send + Sync + 'static,
    P: IntoPreparation,
{
    let (made, last) = (Mutex::default(), LastCatalog::default());
    Arc::new(PreparedProvider { name: name.into(), inner, prepare, made, last })
}

struct PreparedProvider<F> {
    name: Arc<str>,
    inner: Arc<dyn ToolProvider>,
    prepare: F,
    /// The last rewrite of each tool.
    made: Mutex<RewriteCache<(ToolRewrite, Tool)>>,
    last: LastCatalog,
}

impl<F, P> ToolProvider for PreparedProvider<F>
where
    F: Fn(&Tool, &ListContext) -> P + Send + Sync + 'static,
    P: IntoPreparation,
{
    fn id(&self) -> &str {
        "prepared"
    }

    fn path(&self) -> String {
        format!("prepared({}) > {}", self.name, self.inner.path())
    }

    fn leaf(&self) -> &str {
        self.inner.leaf()
    }

    fn is_gated(&self) -> bool {
        true
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        match Arc::clone(&self.inner).list(cx) {
            Listing::Now(answer) => {
                Listing::Now(answer.and_then(|catalog| self.prepare_all(cx, &catalog)))
            }
            later @ Listing::Later(_) => {
                let cx = cx.clone();
                later.and_then(move |catalog| self.prepare_all(&cx, &catalog))
            }
        }
    }
}

impl<F, P> PreparedProvider<F>
where
    F: Fn(&Tool, &ListContext) -> P + Send + Sync + 'static,
    P: IntoPreparation,
{
    fn prepare_all(&self, cx: &ListContext, catalog: &Catalog) -> Result<Catalog, DiscoveryError> {
        let mut prepared = self.last.builder();
        let mut renamed = false;
        prepared.withhold_all(catalog.withheld_by_provider());
        for tool in catalog.offered() {
            let outcome = self.prepare_one(tool, cx);
            match outcome.map_err(|problem| self.failed(tool.name(), &problem))? {
                Ok(new) => {
                    renamed |= new.name() != tool.name();
                    prepared.offer(&[new]);
                }
                Err(reason) => prepared.withhold(tool, &self.name, &reason),
            }
        }
        let prepared = self.last.keep(prepared.build());
        if renamed && let Some(name) = twice(prepared.offered()) {
            return Err(self.failed(name, "another tool of the listing has that name"));
        }
        // Preparers may decide differently at any time.
        let listing_info =
            ListingInfo { fresh_for: Duration::ZERO, ..catalog.listing_info().clone() };
        Ok(prepared.with_listing_info(listing_info))
    }

    fn failed(&self, tool: &ToolName, problem: &str) -> DiscoveryError {
        let message = format!("preparer `{}` failed on tool `{tool}`: {problem}", self.name);
        DiscoveryError::new(DiscoveryErrorClass::Gate, message).in_provider(self)
    }

    /// The tool to offer in place of this one, or the reason to withhold it.
    fn prepare_one(&self, tool: &Tool, cx: &ListContext) -> Result<Result<Tool, Reason>, String> {
        let said = catch_unwind(AssertUnwindSafe(|| (self.prepare)(tool, cx).into_preparation()))
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))));
        let rewrite = match said? {
            Preparation::Keep => return Ok(Ok(tool.clone())),
            Preparation::Drop(reason) => return Ok(Err(reason)),
            Preparation::Rewrite(rewrite) => rewrite,
        };
        let mut made = self.made.lock();
        if let Some((before, same)) = made.get(tool)
            && *before == rewrite
        {
            return Ok(Ok(same.clone()));
        }
        let new = rewrite.apply(tool).map_err(|invalid| invalid.to_string())?;
        made.keep(tool, (rewrite, new.clone()));
        Ok(Ok(new))
    }
}

/// The first duplicate name.
fn twice(tools: &[Tool]) -> Option<&ToolName> {
    let mut seen = HashSet::new();
    tools.iter().map(|tool| tool.name()).find(|name| !seen.insert(*name))
}
