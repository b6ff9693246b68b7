//! Tools from a catalogue that an HTTP server keeps: a registry, a marketplace, a policy service.
//!
//! The catalogue is JSON. Where in it the list, a name, a description, a schema and the next page
//! stand is said by JSON pointers; one template says how any of its tools is called. An
//! [`HttpHub`] is a [`ToolHub`]: it asks whenever it is asked. Put [`cached`](toolcrib_core::cached())
//! around its provider, with a key of what its request names.
//!
//! # Places
//! As in the kind [`http`](crate::http), with these names:
//!
//! | place | in the catalogue's request | in a call |
//! |---|---|---|
//! | `{tenant}`, `{principal}` | on whose behalf | on whose behalf |
//! | `{cursor}` | in the query: what the page before gives for the next one | – |
//! | `{tool}` | – | the tool's own name in the catalogue |
//! | `{arguments}` | – | all that the model passes, as JSON |
//! | `{secret:NAME}` in headers | asked for at each fetch | asked for at each call |
//!
//! A tenant or principal that has a place and is not named by the run fails: nobody is sent the
//! catalogue of nobody in particular by accident.
//!
//! # Pages
//! [`next`](HubPointers::next) points to the next page: its cursor, where the URL has a place for
//! one, else its URL, on the same origin as the first. Nothing there, `null`, `false` and an empty
//! text are the end. A page that leads back to one that was there fails.
//!
//! # What is offered
//! Tools sorted by their own names, so that a server that lists them in another order changes
//! nothing. A tool that is no tool (no name, a schema that is none, a definition of more than
//! 64 KiB) is held back with the reason, and so is a second one of a name; the others are offered.
//! A tool whose description did not change is the very one that it was before. Where the server
//! sends an `ETag`, it is asked with it the next time, and 304 means that nothing changed.
//!
//! Results are untrusted. Where it may go is the client's: [`toolcrib_scope::http`].

mod catalogue;
mod error;
mod listed;
mod pages;
mod spec;

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use toolcrib_core::{
    BoxFuture, Catalog, CatalogRequest, DiscoveryError, Secrets, ToolHub, ToolProvider, discovery,
};

use self::{
    catalogue::{Catalogue, Whom},
    listed::{Definitions, Listed},
    pages::Page,
};
pub use self::{
    error::{HubError, HubErrors, HubPart, HubProblem},
    spec::{HubLimits, HubPointers, HubSpec},
};

/// For how many tenants or principals the last catalogue is remembered, for `ETag` and so that
/// tools stay the same ones.
const MOST_REMEMBERED: usize = 64;

/// A catalogue behind HTTP; cloning shares it. Made of a [`HubSpec`].
#[derive(Clone)]
pub struct HttpHub(Arc<Inner>);

struct Inner {
    catalogue: Catalogue,
    definitions: Definitions,
    secrets: Option<Arc<dyn Secrets>>,
    /// The one that was asked for last stands last.
    seen: Mutex<VecDeque<(Whom, Arc<Seen>)>>,
}

/// The last catalogue of somebody.
struct Seen {
    pages: Vec<Arc<Page>>,
    listed: Arc<Listed>,
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
        let whom = self.catalogue.whom(request.identity())?;
        let before = self.seen(&whom);
        let pages_before = before.as_ref().map(|seen| &*seen.pages).unwrap_or_default();
        let cancellation = request.cancellation();
        let pages =
            self.catalogue.pages(&whom, pages_before, self.secrets.clone(), cancellation).await?;
        if let Some(before) = &before
            && before.pages.len() == pages.len()
            && before.pages.iter().zip(&pages).all(|(before, now)| Arc::ptr_eq(before, now))
        {
            return Ok(catalog_of(&before.listed));
        }
        let remotes = pages.iter().flat_map(|page| page.tools.iter().cloned()).collect();
        let listed = self.definitions.make(remotes, before.as_ref().map(|seen| &*seen.listed));
        let catalog = catalog_of(&listed);
        self.remember(whom, Seen { pages, listed: Arc::new(listed) });
        Ok(catalog)
    }

    fn seen(&self, whom: &Whom) -> Option<Arc<Seen>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().find(|(of, _)| of == whom).map(|(_, seen)| Arc::clone(seen))
    }

    fn remember(&self, whom: Whom, now: Seen) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|(of, _)| *of != whom);
        if seen.len() >= MOST_REMEMBERED {
            seen.pop_front();
        }
        seen.push_back((whom, Arc::new(now)));
    }
}

fn catalog_of(listed: &Listed) -> Catalog {
    let mut catalog = Catalog::new();
    listed.fill(&mut catalog);
    catalog
}

impl fmt::Debug for HttpHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpHub").field("id", self.0.definitions.origin()).finish_non_exhaustive()
    }
}
