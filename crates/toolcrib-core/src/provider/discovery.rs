use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{
    DiscoveryError, IntoCatalog, Listing, ToolProvider, catalog::Catalog, context_list::ListContext,
};
use crate::names::{identity::Identity, name::SkillId};

/// A remote catalog of tools: a registry, a marketplace, a policy service.
///
/// Adapters implement this one method; [`discovery`] makes a provider of it. Caching
/// ([`cached`](super::cached())) and timeouts ([`with_timeout`](super::with_timeout())) are
/// separate. A hub must never turn an error into an empty list.
///
/// ```
/// use toolcrib_core::{
///     BoxFuture, Catalog, CatalogRequest, DiscoveryError, Tool, ToolHub, discovery,
/// };
///
/// struct Registry;
///
/// # impl Registry {
/// #     async fn get(&self, _: &str) -> Result<Vec<Tool>, std::io::Error> { Ok(Vec::new()) }
/// # }
/// impl ToolHub for Registry {
///     fn fetch_catalog<'a>(
///         &'a self,
///         request: &'a CatalogRequest,
///     ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
///         Box::pin(async move {
///             let tenant = request.identity().tenant.as_deref().unwrap_or("public");
///             let tools = self.get(tenant).await.map_err(DiscoveryError::source_failed)?;
///             Ok(tools.into())
///         })
///     }
/// }
///
/// let provider = discovery(Registry).id("registry").build();
/// assert_eq!(provider.id(), "registry");
/// ```
pub trait ToolHub: Send + Sync + 'static {
    /// Fetches the current catalog for the identity of the request. Tools that did not change
    /// should be the same instances as before, so that an unchanged menu keeps its identity.
    ///
    /// Dropping the future must end the fetch; work spawned elsewhere watches
    /// [`CatalogRequest::cancellation`].
    fn fetch_catalog<'a>(
        &'a self,
        request: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>>;
}

impl<T: ToolHub + ?Sized> ToolHub for Arc<T> {
    fn fetch_catalog<'a>(
        &'a self,
        request: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
        (**self).fetch_catalog(request)
    }
}

/// Identity and situation of a catalog request.
#[derive(Debug, Clone)]
pub struct CatalogRequest(ListContext);

impl CatalogRequest {
    /// The identity of the request. Inside a cache it contains only the fields of the cache key.
    pub fn identity(&self) -> &Arc<Identity> {
        self.0.identity()
    }

    /// The most recently activated skill, if any.
    pub fn active_skill(&self) -> Option<&SkillId> {
        self.0.active_skill()
    }

    /// All active skills, the most recently activated last.
    pub fn active_skills(&self) -> &[SkillId] {
        self.0.active_skills()
    }

    /// The iteration of the turn, from 1.
    pub fn iteration(&self) -> u32 {
        self.0.iteration()
    }

    /// Fires when no caller waits for the catalog any more.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.cancellation()
    }
}

impl From<ListContext> for CatalogRequest {
    fn from(cx: ListContext) -> Self {
        Self(cx)
    }
}

/// Builds a provider of a hub's tools. It queries the hub in every iteration, asynchronously, and
/// ends with the run's cancellation even if the hub does not watch it.
///
/// Neighbors: [`discovery_fn`] takes a closure in place of a type;
/// [`from_async_fn`](super::from_async_fn()) is shorter if no id, pattern or request is needed.
pub fn discovery(hub: impl ToolHub) -> Discovery {
    Discovery { hub: Arc::new(hub), id: "discovery".into(), covers: None }
}

/// Starts a provider of the tools that an async closure fetches: [`discovery`] without a type.
///
/// ```
/// use toolcrib_core::{Tool, discovery_fn};
///
/// # async fn get(_: &str) -> Result<Vec<Tool>, std::io::Error> { Ok(Vec::new()) }
/// let provider = discovery_fn(async |request| {
///     get(request.identity().tenant.as_deref().unwrap_or("public")).await
/// })
/// .id("registry")
/// .build();
/// assert_eq!(provider.id(), "registry");
/// ```
pub fn discovery_fn<F, Fut>(fetch: F) -> Discovery
where
    F: Fn(CatalogRequest) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoCatalog,
{
    discovery(HubFn(fetch))
}

struct HubFn<F>(F);

impl<F, Fut> ToolHub for HubFn<F>
where
    F: Fn(CatalogRequest) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoCatalog,
{
    fn fetch_catalog<'a>(
        &'a self,
        request: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
        let tools = (self.0)(request.clone());
        Box::pin(async move { tools.await.into_catalog() })
    }
}

/// Builds the provider of a [`ToolHub`]; see [`discovery`].
#[derive(Clone)]
#[must_use = "it provides nothing until `build`"]
pub struct Discovery {
    hub: Arc<dyn ToolHub>,
    id: Arc<str>,
    covers: Option<Arc<str>>,
}

impl Discovery {
    /// The provider's id in events and messages. Default: `discovery`.
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = id.into();
        self
    }

    /// The pattern of all names that the hub's tools can have, such as `crm_*`. It represents them
    /// while the hub is unavailable. Default: none.
    pub fn covers(mut self, pattern: impl Into<Arc<str>>) -> Self {
        self.covers = Some(pattern.into());
        self
    }

    /// Builds the provider over the client.
    pub fn build(self) -> Arc<dyn ToolProvider> {
        Arc::new(DiscoveryProvider(self))
    }
}

crate::internal::debug_fields!(Discovery { id, .. });

struct DiscoveryProvider(Discovery);

impl ToolProvider for DiscoveryProvider {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn covers(&self) -> Option<&str> {
        self.0.covers.as_deref()
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let request = CatalogRequest(cx.clone());
        Listing::later(async move {
            tokio::select! {
                biased;
                () = request.cancellation().cancelled() => Err(DiscoveryError::cancelled()),
                fetched = self.0.hub.fetch_catalog(&request) => fetched,
            }
        })
    }
}
