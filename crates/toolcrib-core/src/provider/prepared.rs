use std::{
    collections::HashSet,
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;

use super::{
    DiscoveryError, DiscoveryErrorClass, FailedListing, Handed, Listing, ToolProvider,
    rewritten::Rewritten,
};
use crate::{
    catalog::{Catalog, Reason},
    context_list::ListContext,
    definition::InvalidTool,
    name::ToolName,
    panic_text::panic_text,
    tool::Tool,
};

/// What becomes of one tool in [`prepared`].
#[derive(Debug, Clone, PartialEq)]
pub enum Prepared {
    /// It is offered as it is.
    Keep,
    /// It is offered as another text; its body, limits and origin stay.
    Rewrite(ToolRewrite),
    /// It is held back, and why.
    Drop(Reason),
}

/// What a model reads in place of what a tool says of itself. What is not set stays.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolRewrite {
    name: Option<String>,
    description: Option<String>,
    input_schema: Option<Value>,
}

impl ToolRewrite {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another name. One that another tool of the same provider has fails the listing.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Another description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Another JSON Schema of the arguments. Calls are checked against this one alone, and the body
    /// gets what it admits: narrow the tool's own, do not widen it.
    #[must_use]
    pub fn input_schema(mut self, schema: Value) -> Self {
        self.input_schema = Some(schema);
        self
    }

    fn apply(&self, tool: &Tool) -> Result<Tool, InvalidTool> {
        tool.shown_as(
            self.name.as_deref().unwrap_or_else(|| tool.name().as_str()),
            self.description.as_deref().unwrap_or_else(|| tool.description()),
            self.input_schema.as_ref().unwrap_or_else(|| tool.input_schema()),
        )
    }
}

/// What a function that prepares may return: a [`Prepared`], or a `Result` of one.
pub trait IntoPrepared {
    /// The decision.
    ///
    /// # Errors
    /// The function's own failure, as text; it ends the iteration.
    fn into_prepared(self) -> Result<Prepared, String>;
}

impl IntoPrepared for Prepared {
    fn into_prepared(self) -> Result<Prepared, String> {
        Ok(self)
    }
}

impl<E: Display> IntoPrepared for Result<Prepared, E> {
    fn into_prepared(self) -> Result<Prepared, String> {
        self.map_err(|error| error.to_string())
    }
}

/// Lets a function rewrite or drop the definitions of a provider, one tool at a time and by the
/// context: a description in the tenant's words, a schema without what this person may not set.
///
/// It cannot add a tool: it is asked about those that there are. A name that another tool of the
/// answer has, one that no model API takes, an error and a panic fail the listing with the class
/// `gate`, because what is dropped may be dropped for a reason. The function is asked each time; a
/// rewrite that says the same again gives the same tool again, so that an unchanged menu stays one.
/// Mirrors its inner provider: now stays now, later stays later.
///
/// Neighbours: [`gated_tools`](super::gated_tools) only holds back; [`prefixed`](super::prefixed())
/// renames all.
///
/// ```
/// use toolcrib_core::{ListContext, Prepared, Tool, ToolRewrite, prepared, static_tools};
///
/// let provider = prepared("plain", static_tools([]), |tool: &Tool, cx: &ListContext| {
///     match &cx.identity().tenant {
///         None => Prepared::Drop("needs a tenant".into()),
///         Some(tenant) => Prepared::Rewrite(
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
    P: IntoPrepared,
{
    Arc::new(Preparing { name: name.into(), inner, prepare, made: Mutex::default() })
}

struct Preparing<F> {
    name: Arc<str>,
    inner: Arc<dyn ToolProvider>,
    prepare: F,
    /// What each tool was made into last.
    made: Mutex<Rewritten<(ToolRewrite, Tool)>>,
}

impl<F, P> ToolProvider for Preparing<F>
where
    F: Fn(&Tool, &ListContext) -> P + Send + Sync + 'static,
    P: IntoPrepared,
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

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let handed = Handed::note(&into);
        match Arc::clone(&self.inner).list(cx, into) {
            Listing::Now(answer) => {
                Listing::Now(answer.and_then(|catalog| self.prepare_all(&handed, cx, catalog)))
            }
            later @ Listing::Later(_) => {
                let cx = cx.clone();
                later.and_then(move |catalog| self.prepare_all(&handed, &cx, catalog))
            }
        }
    }
}

impl<F, P> Preparing<F>
where
    F: Fn(&Tool, &ListContext) -> P + Send + Sync + 'static,
    P: IntoPrepared,
{
    fn prepare_all(
        &self,
        handed: &Handed,
        cx: &ListContext,
        catalog: Catalog,
    ) -> Result<Catalog, FailedListing> {
        let mut catalog = handed.came_back(catalog).map_err(|mut failed| {
            failed.error = failed.error.in_provider(&*self.inner);
            failed
        })?;
        let mut renamed = false;
        let outcome = catalog.gate_from(handed.offered(), &self.name, |tool| {
            let prepared = self.prepare_one(tool, cx);
            match prepared.map_err(|problem| self.failed(tool.name(), &problem))? {
                Ok(new) => {
                    renamed |= new.name() != tool.name();
                    *tool = new;
                    Ok(None)
                }
                Err(reason) => Ok(Some(reason)),
            }
        });
        if let Err(error) = outcome {
            return Err(FailedListing { error, catalog });
        }
        if renamed && let Some(name) = twice(catalog.offered().get(handed.offered()..)) {
            let error = self.failed(name, "two tools have that name now");
            return Err(FailedListing { error, catalog });
        }
        Ok(catalog)
    }

    fn failed(&self, tool: &ToolName, problem: &str) -> DiscoveryError {
        let message = format!("what prepares `{}` failed on tool `{tool}`: {problem}", self.name);
        DiscoveryError::new(DiscoveryErrorClass::Gate, message).in_provider(self)
    }

    /// The tool to offer in place of this one, or why there is none.
    fn prepare_one(&self, tool: &Tool, cx: &ListContext) -> Result<Result<Tool, Reason>, String> {
        let said = catch_unwind(AssertUnwindSafe(|| (self.prepare)(tool, cx).into_prepared()))
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))));
        let rewrite = match said? {
            Prepared::Keep => return Ok(Ok(tool.clone())),
            Prepared::Drop(reason) => return Ok(Err(reason)),
            Prepared::Rewrite(rewrite) => rewrite,
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The first name that stands twice.
fn twice(tools: Option<&[Tool]>) -> Option<&ToolName> {
    let mut seen = HashSet::new();
    tools.into_iter().flatten().map(|tool| tool.name()).find(|name| !seen.insert(*name))
}
