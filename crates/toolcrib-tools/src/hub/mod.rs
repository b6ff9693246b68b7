//! Tools from a catalog that an HTTP server keeps: a registry, a marketplace, a policy service.
//!
//! The catalog is JSON. JSON pointers lead to the list, a name, a description, a schema and the
//! next page; one template says how any of its tools is called. An
//! [`HttpHub`] is a [`ToolHub`]: it asks whenever it is asked. Put [`cached`](toolcrib_core::cached())
//! around its provider, with a key of what its request names.
//!
//! # Places
//! As in the kind [`http`](crate::http), with these names:
//!
//! | place | in the catalog's request | in a call |
//! |---|---|---|
//! | `{tenant}`, `{principal}` | on whose behalf | on whose behalf |
//! | `{cursor}` | in the query: what the page before gives for the next one | – |
//! | `{tool}` | – | the tool's own name in the catalog |
//! | `{arguments}` | – | all that the model passes, as JSON |
//! | `{secret:NAME}` in headers | asked for at each fetch | asked for at each call |
//!
//! A tenant or principal that has a place and is not named by the turn fails:
//! no client receives a catalog without identity by accident.
//!
//! # Pages
//! [`next`](HubPointers::next) points to the next page: its cursor, where the URL has a place for
//! one, else its URL, on the same origin as the first. Nothing there, `null`, `false` and an empty
//! text are the end. A page that leads back to one that was there fails.
//!
//! # What is offered
//! Tools sorted by their own names, so that a server that lists them in another order changes
//! nothing. An invalid tool (no name, an invalid schema, a definition of more than
//! 64 KiB) is held back with the reason, and so is a second one of a name; the others are offered.
//! A tool whose description did not change is the very one that it was before. Where the server
//! sends an `ETag`, it is asked with it the next time, and 304 means that nothing changed.
//!
//! Results are untrusted. Where it may go is the client's: [`toolcrib_capabilities::http`].

mod catalog;
mod listed;
mod pages;
mod spec;
mod table;

use std::sync::Arc;

use parking_lot::Mutex;

use toolcrib_core::{
    __internal::LruCache, BoxFuture, Catalog, CatalogRequest, DiscoveryError, Lanes, Secrets,
    ToolHub, ToolProvider, discovery,
};

pub use self::spec::{HubLimits, HubPointers, HubSpec};
#[doc(hidden)]
pub use self::table::{HubTable, read_order};
use self::{
    catalog::{CatalogKey, HubCatalog, source},
    listed::{Definitions, RemoteCatalog},
    pages::Page,
};

/// For how many tenants or principals the last catalog is remembered, for `ETag` and so that
/// tools stay the same ones.
const MOST_REMEMBERED: usize = 64;

/// A catalog behind HTTP; cloning shares it. Made of a [`HubSpec`].
#[derive(Clone)]
pub struct HttpHub(Arc<Inner>);

struct Inner {
    catalog: HubCatalog,
    definitions: Arc<Definitions>,
    secrets: Option<Arc<dyn Secrets>>,
    seen: Mutex<LruCache<CatalogKey, Arc<LastCatalog>>>,
}

/// The last catalog of one tenant or principal.
struct LastCatalog {
    pages: Vec<Arc<Page>>,
    listed: Arc<RemoteCatalog>,
}

impl HttpHub {
    /// A provider of its tools, called `hub:NAME`, that asks in every iteration. Put
    /// [`cached`](toolcrib_core::cached()) around it.
    pub fn provider(&self) -> Arc<dyn ToolProvider> {
        let mut provider = discovery(self.clone()).id(Arc::clone(self.0.definitions.origin()));
        if let Some(pattern) = self.0.definitions.covers() {
            provider = provider.covers(pattern);
        }
        provider.build()
    }
}

impl ToolHub for HttpHub {
    fn fetch_catalog<'a>(
        &'a self,
        request: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
        Box::pin(self.0.fetch(request))
    }
}

impl Inner {
    async fn fetch(&self, request: &CatalogRequest) -> Result<Catalog, DiscoveryError> {
        let whom = self.catalog.whom(request.identity())?;
        let before = self.seen.lock().get(&whom).map(|seen| Arc::clone(seen));
        let pages_before = before.as_ref().map(|seen| &*seen.pages).unwrap_or_default();
        let cancellation = request.cancellation();
        let pages =
            self.catalog.pages(&whom, pages_before, self.secrets.clone(), cancellation).await?;
        if let Some(before) = &before
            && before.pages.len() == pages.len()
            && before.pages.iter().zip(&pages).all(|(before, now)| Arc::ptr_eq(before, now))
            && !self.definitions.has_pins()
        {
            return Ok(before.listed.catalog().clone());
        }
        let bytes = pages.iter().map(|page| page.bytes).sum();
        let (definitions, from) = (Arc::clone(&self.definitions), pages.clone());
        let make = move || {
            let remotes = from.iter().flat_map(|page| page.tools.iter().cloned()).collect();
            definitions.make(remotes, before.as_ref().map(|seen| &*seen.listed))
        };
        let made = Lanes::of_process().run_large(bytes, self.definitions.origin(), make).await;
        let made = made.map_err(|problem| source(format!("its catalog: {problem}")))?;
        let listed = made.map_err(|problem| source(format!("its catalog: {problem}")))?;
        let catalog = listed.catalog().clone();
        let seen = Arc::new(LastCatalog { pages, listed: Arc::new(listed) });
        let gone = self.seen.lock().insert(whom, seen);
        // Outside the lock: tools may do anything when they are dropped.
        drop(gone);
        Ok(catalog)
    }
}

toolcrib_core::__internal::debug_fields!(HttpHub, hub, id = hub.0.definitions.origin(), ..);
