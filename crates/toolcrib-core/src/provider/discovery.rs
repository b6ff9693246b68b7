use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::{DiscoveryError, FailedListing, Listing, ToolProvider};
use crate::{catalog::Catalog, context_list::ListContext, identity::Identity, name::SkillId};

/// A catalogue of tools that somebody else keeps: a registry, a marketplace, a policy service.
///
/// Adapters implement this one method; [`discovery`] makes a provider of it. What a hub need not do:
/// cache ([`cached`](super::cached()) does), time out ([`with_timeout`](super::with_timeout())
/// does), or turn an error into an empty list, which nobody may do.
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
///             Ok(Catalog::from_iter(tools))
///         })
///     }
/// }
///
/// let provider = discovery(Registry).id("registry").build();
/// assert_eq!(provider.id(), "registry");
/// ```
pub trait ToolHub: Send + Sync + 'static {
    /// The catalogue as it is now, for whoever the request names. Tools that did not change should
    /// be the very ones that were given before, so that an unchanged menu stays one.
    ///
    /// Dropping the future must end the fetch; what it does elsewhere watches
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

/// For whom a hub is asked, and in what situation.
#[derive(Debug, Clone)]
pub struct CatalogRequest(ListContext);

impl CatalogRequest {
    /// On whose behalf. Behind a cache it names only what the key declares.
    pub fn identity(&self) -> &Arc<Identity> {
        self.0.identity()
    }

    /// The skill activated last, if any.
    pub fn active_skill(&self) -> Option<&SkillId> {
        self.0.active_skill()
    }

    /// All active skills, the last activated last.
    pub fn active_skills(&self) -> &[SkillId] {
        self.0.active_skills()
    }

    /// Which iteration of the turn, from 1.
    pub fn iteration(&self) -> u32 {
        self.0.iteration()
    }

    /// Fires when nobody waits for the catalogue any more.
    pub fn cancellation(&self) -> &CancellationToken {
        self.0.cancellation()
    }
}

impl From<ListContext> for CatalogRequest {
    fn from(cx: ListContext) -> Self {
        Self(cx)
    }
}

/// Starts a provider of a hub's tools. It asks the hub in every iteration, later, and ends with the
/// run's cancellation whether the hub watches it or not.
pub fn discovery(hub: impl ToolHub) -> Discovery {
    Discovery { hub: Arc::new(hub), id: "discovery".into(), covers: None }
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
    /// What the provider is called in events and messages. Default: `discovery`.
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = id.into();
        self
    }

    /// The pattern of all names that the hub's tools can have, such as `crm_*`: what stands for them
    /// while the hub cannot be asked. Default: none.
    pub fn covers(mut self, pattern: impl Into<Arc<str>>) -> Self {
        self.covers = Some(pattern.into());
        self
    }

    /// The provider.
    pub fn build(self) -> Arc<dyn ToolProvider> {
        Arc::new(Discovered(self))
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").field("id", &self.id).finish_non_exhaustive()
    }
}

struct Discovered(Discovery);

impl ToolProvider for Discovered {
    fn id(&self) -> &str {
        &self.0.id
    }

    fn covers(&self) -> Option<&str> {
        self.0.covers.as_deref()
    }

    fn list(self: Arc<Self>, cx: &ListContext, mut into: Catalog) -> Listing {
        let request = CatalogRequest(cx.clone());
        Listing::later(async move {
            let fetched = tokio::select! {
                biased;
                () = request.cancellation().cancelled() => Err(DiscoveryError::cancelled()),
                fetched = self.0.hub.fetch_catalog(&request) => fetched,
            };
            match fetched {
                Ok(catalog) => {
                    into.append(catalog);
                    Ok(into)
                }
                Err(error) => Err(FailedListing { error, catalog: into }),
            }
        })
    }
}
