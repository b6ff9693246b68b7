use std::{error::Error, sync::Arc};

use super::{DiscoveryError, FailedListing, Listing, ToolProvider};
use crate::{catalog::Catalog, context_list::ListContext, tool::Tool};

/// What a function may return that lists tools: a `Vec` or an array of them, or a `Result` of one.
pub trait IntoTools {
    /// The tools, in order.
    ///
    /// # Errors
    /// Why there is no list; it ends the iteration, unless the source is declared otherwise.
    fn into_tools(self) -> Result<Vec<Tool>, DiscoveryError>;
}

impl IntoTools for Vec<Tool> {
    fn into_tools(self) -> Result<Vec<Tool>, DiscoveryError> {
        Ok(self)
    }
}

impl<const N: usize> IntoTools for [Tool; N] {
    fn into_tools(self) -> Result<Vec<Tool>, DiscoveryError> {
        Ok(self.into())
    }
}

impl<T: IntoTools, E: Into<Box<dyn Error + Send + Sync>>> IntoTools for Result<T, E> {
    fn into_tools(self) -> Result<Vec<Tool>, DiscoveryError> {
        match self {
            Ok(tools) => tools.into_tools(),
            Err(error) => Err(DiscoveryError::from_boxed(error.into())),
        }
    }
}

/// A provider made from a function that has its tools at hand.
///
/// Make the tools once and clone them: a tool that is made anew for each listing is another tool,
/// and the menu is composed again. The id stands in events; `"unnamed"` tells nobody anything.
///
/// ```
/// use toolcrib_core::{ListContext, Tool, from_fn};
///
/// # fn tool() -> Tool {
/// #     Tool::builder("t").description("d")
/// #         .handler(|_: serde_json::Value, _: toolcrib_core::ToolContext| async { "" }).unwrap()
/// # }
/// let night_watch = tool();
/// let provider = from_fn("early-only", move |cx: &ListContext| {
///     if cx.iteration() <= 3 { vec![night_watch.clone()] } else { vec![] }
/// });
/// assert_eq!(provider.id(), "early-only");
/// ```
pub fn from_fn<F, T>(id: impl Into<Arc<str>>, list: F) -> Arc<dyn ToolProvider>
where
    F: Fn(&ListContext) -> T + Send + Sync + 'static,
    T: IntoTools,
{
    Arc::new(FromFn { id: id.into(), list })
}

struct FromFn<F> {
    id: Arc<str>,
    list: F,
}

impl<F, T> ToolProvider for FromFn<F>
where
    F: Fn(&ListContext) -> T + Send + Sync + 'static,
    T: IntoTools,
{
    fn id(&self) -> &str {
        &self.id
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        Listing::Now(filled(into, (self.list)(cx)))
    }
}

/// A provider made from an async function, which gets a context of its own.
///
/// The future is dropped when the run is cancelled; what it does elsewhere must watch
/// [`ListContext::cancellation`]. It is asked in every iteration: put [`cached`](super::cached())
/// around it where that is too often.
///
/// ```
/// use toolcrib_core::{ListContext, Tool, from_async_fn};
///
/// # async fn fetch(_tenant: Option<&str>) -> Result<Vec<Tool>, std::io::Error> { Ok(vec![]) }
/// let provider = from_async_fn("crm", |cx: ListContext| async move {
///     fetch(cx.identity().tenant.as_deref()).await
/// });
/// # let _ = provider;
/// ```
pub fn from_async_fn<F, Fut>(id: impl Into<Arc<str>>, list: F) -> Arc<dyn ToolProvider>
where
    F: Fn(ListContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoTools,
{
    Arc::new(FromAsyncFn { id: id.into(), list })
}

struct FromAsyncFn<F> {
    id: Arc<str>,
    list: F,
}

impl<F, Fut> ToolProvider for FromAsyncFn<F>
where
    F: Fn(ListContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoTools,
{
    fn id(&self) -> &str {
        &self.id
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let answer = (self.list)(cx.clone());
        Listing::later(async move { filled(into, answer.await) })
    }
}

fn filled(mut into: Catalog, tools: impl IntoTools) -> Result<Catalog, FailedListing> {
    match tools.into_tools() {
        Ok(tools) => {
            into.offer_all(&tools);
            Ok(into)
        }
        Err(error) => Err(FailedListing { error, catalog: into }),
    }
}
