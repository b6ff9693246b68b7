use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all, ready};

use super::{FailedListing, Handed, Listing, ToolProvider};
use crate::{catalog::Catalog, context_list::ListContext};

/// Several providers as one, in the order given, whatever order they answer in. Providers whose
/// answer comes later are waited for together, so the wait is that of the slowest.
pub fn concat(providers: impl IntoIterator<Item = Arc<dyn ToolProvider>>) -> Arc<dyn ToolProvider> {
    Arc::new(Concat(providers.into_iter().collect()))
}

struct Concat(Box<[Arc<dyn ToolProvider>]>);

impl ToolProvider for Concat {
    fn id(&self) -> &str {
        "concat"
    }

    fn path(&self) -> String {
        let inner: Vec<_> = self.0.iter().map(|provider| provider.path()).collect();
        format!("concat({})", inner.join(", "))
    }

    fn is_gated(&self) -> bool {
        self.0.iter().any(|provider| provider.is_gated())
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        list_in_order(&self.0, into, |provider, into| {
            let asked = Arc::clone(provider);
            let handed = Handed::note(&into);
            let listing = Arc::clone(provider).list(cx, into);
            match listing.and_then(move |catalog| handed.came_back(catalog)) {
                Listing::Now(Err(mut failed)) => {
                    failed.error = failed.error.in_provider(&*asked);
                    Listing::Now(Err(failed))
                }
                now @ Listing::Now(_) => now,
                Listing::Later(future) => Listing::later(async move {
                    future.await.map_err(|mut failed| {
                        failed.error = failed.error.in_provider(&*asked);
                        failed
                    })
                }),
            }
        })
    }
}

/// Asks sources one after the other through `list` and puts their answers together in order:
/// what [`concat()`] and an engine's discovery share. What a source is, only `list` knows.
///
/// The list goes from hand to hand while answers come at once. A source that answers later
/// keeps what it was handed; those behind it start an empty list, and all are waited for together.
pub fn list_in_order<S>(
    sources: impl IntoIterator<Item = S>,
    into: Catalog,
    mut list: impl FnMut(S, Catalog) -> Listing,
) -> Listing {
    let mut filling = into;
    let mut pending: Vec<BoxFuture<'static, Result<Catalog, FailedListing>>> = Vec::new();
    for source in sources {
        match list(source, filling) {
            Listing::Now(Ok(catalog)) => filling = catalog,
            Listing::Now(Err(failed)) if pending.is_empty() => return Listing::Now(Err(failed)),
            Listing::Now(Err(failed)) => {
                // Those that were asked are heard to the end; nobody else is asked.
                pending.push(Box::pin(ready(Err(failed))));
                filling = Catalog::new();
                break;
            }
            Listing::Later(future) => {
                pending.push(future);
                filling = Catalog::new();
            }
        }
    }
    if pending.is_empty() {
        return Listing::now(filling);
    }
    Listing::later(async move {
        let mut whole = Catalog::new();
        for answer in join_all(pending).await {
            whole.append(answer?);
        }
        whole.append(filling);
        Ok(whole)
    })
}
