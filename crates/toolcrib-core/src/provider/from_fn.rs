use std::{error::Error, sync::Arc};

use super::{DiscoveryError, Listing, ToolProvider, catalog::Catalog, context_list::ListContext};
use crate::tool::Tool;

/// Return types of a listing function: a [`Catalog`], a `Vec` or an array of tools, or a
/// `Result` of one.
pub trait IntoCatalog {
    /// The tools, in order.
    ///
    /// # Errors
    /// The listing failed. This ends the iteration, unless the source's failure handling is
    /// configured otherwise.
    fn into_catalog(self) -> Result<Catalog, DiscoveryError>;
}

impl IntoCatalog for Catalog {
    fn into_catalog(self) -> Result<Catalog, DiscoveryError> {
        Ok(self)
    }
}

impl IntoCatalog for Vec<Tool> {
    fn into_catalog(self) -> Result<Catalog, DiscoveryError> {
        Ok(self.into())
    }
}

impl<const N: usize> IntoCatalog for [Tool; N] {
    fn into_catalog(self) -> Result<Catalog, DiscoveryError> {
        Ok(self.into())
    }
}

impl<T: IntoCatalog, E: Into<Box<dyn Error + Send + Sync>>> IntoCatalog for Result<T, E> {
    fn into_catalog(self) -> Result<Catalog, DiscoveryError> {
        match self {
            Ok(tools) => tools.into_catalog(),
            Err(error) => Err(DiscoveryError::from_boxed(error.into())),
        }
    }
}

/// A provider made from a function that returns its tools immediately.
///
/// Make the tools once and clone them: a tool that is rebuilt for each listing counts as another
/// tool, and the menu is composed again. The id appears in events, so choose a meaningful one.
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
    T: IntoCatalog,
{
    Arc::new(FnProvider { id: id.into(), list })
}

struct FnProvider<F> {
    id: Arc<str>,
    list: F,
}

impl<F, T> ToolProvider for FnProvider<F>
where
    F: Fn(&ListContext) -> T + Send + Sync + 'static,
    T: IntoCatalog,
{
    fn id(&self) -> &str {
        &self.id
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        Listing::Now((self.list)(cx).into_catalog())
    }
}

/// A provider made from an async function, which owns its context.
///
/// The future is dropped when the run is cancelled; work spawned elsewhere must watch
/// [`ListContext::cancellation`]. The function is called in every iteration: wrap it in
/// [`cached`](super::cached()) if that is too often.
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
    Fut::Output: IntoCatalog,
{
    Arc::new(AsyncFnProvider { id: id.into(), list })
}

struct AsyncFnProvider<F> {
    id: Arc<str>,
    list: F,
}

impl<F, Fut> ToolProvider for AsyncFnProvider<F>
where
    F: Fn(ListContext) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoCatalog,
{
    fn id(&self) -> &str {
        &self.id
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let answer = (self.list)(cx.clone());
        Listing::later(async move { answer.await.into_catalog() })
    }
}
