use std::sync::Arc;

use futures_util::future::join_all;

use super::{
    Listing, ToolProvider,
    catalog::{CatalogBuilder, LastCatalog},
    context_list::ListContext,
};

/// Combines several providers into one. Tools appear in the given order, regardless of the order of
/// the responses. Asynchronous providers are awaited together, so the wait is that of the slowest.
pub fn concat(providers: impl IntoIterator<Item = Arc<dyn ToolProvider>>) -> Arc<dyn ToolProvider> {
    let providers = providers.into_iter().collect();
    Arc::new(Concat { providers, last: LastCatalog::default() })
}

struct Concat {
    providers: Box<[Arc<dyn ToolProvider>]>,
    last: LastCatalog,
}

impl ToolProvider for Concat {
    fn id(&self) -> &str {
        "concat"
    }

    fn path(&self) -> String {
        let inner: Vec<_> = self.providers.iter().map(|provider| provider.path()).collect();
        format!("concat({})", inner.join(", "))
    }

    fn is_gated(&self) -> bool {
        self.providers.iter().any(|provider| provider.is_gated())
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let listing = list_in_order(&self.providers, self.last.builder(), |provider| {
            let asked = Arc::clone(provider);
            let listing = Arc::clone(provider).list(cx);
            listing.then(move |answer| answer.map_err(|error| error.in_provider(&*asked)))
        });
        listing.and_then(move |whole| Ok(self.last.keep(whole)))
    }
}

/// Queries sources one after the other through `list` and joins their answers in order. Used by
/// [`concat()`] and by an engine's discovery. Only `list` knows the type of a source.
///
/// Asynchronous answers are awaited together. After an immediate failure no further source is
/// queried, and those already queried run to completion.
pub fn list_in_order<S>(
    sources: impl IntoIterator<Item = S>,
    mut whole: CatalogBuilder,
    mut list: impl FnMut(S) -> Listing,
) -> Listing {
    // From the first one that is asynchronous on.
    let mut pending: Vec<Listing> = Vec::new();
    for source in sources {
        match list(source) {
            Listing::Now(Ok(catalog)) if pending.is_empty() => whole.append(&catalog),
            Listing::Now(Err(error)) if pending.is_empty() => return Listing::failed(error),
            listing => {
                let is_failed = matches!(listing, Listing::Now(Err(_)));
                pending.push(listing);
                if is_failed {
                    break;
                }
            }
        }
    }
    if pending.is_empty() {
        return Listing::now(whole.build());
    }
    Listing::later(async move {
        for answer in join_all(pending.into_iter().map(Listing::wait)).await {
            whole.append(&answer?);
        }
        Ok(whole.build())
    })
}
