use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{DiscoveryError, DiscoveryErrorClass, FailedListing, Listing, ToolProvider};
use crate::{catalog::Catalog, context_list::ListContext};

/// Gives a provider so much time to answer. Beyond it the listing fails with the class `timeout`,
/// and what the provider still did is dropped.
///
/// Mirrors its inner provider: an answer that is there at once takes no time, however long the call
/// took; only what comes later is timed. Needs tokio's timer.
///
/// ```
/// # use std::time::Duration;
/// # use toolcrib_core::{static_tools, with_timeout};
/// let provider = with_timeout(static_tools([]), Duration::from_secs(5));
/// assert_eq!(provider.path(), "timeout(5s) > static");
/// ```
pub fn with_timeout(inner: Arc<dyn ToolProvider>, limit: Duration) -> Arc<dyn ToolProvider> {
    Arc::new(WithTimeout { inner, limit })
}

struct WithTimeout {
    inner: Arc<dyn ToolProvider>,
    limit: Duration,
}

impl ToolProvider for WithTimeout {
    fn id(&self) -> &str {
        "timeout"
    }

    fn path(&self) -> String {
        format!("timeout({:?}) > {}", self.limit, self.inner.path())
    }

    fn leaf(&self) -> &str {
        self.inner.leaf()
    }

    fn covers(&self) -> Option<&str> {
        self.inner.covers()
    }

    fn is_gated(&self) -> bool {
        self.inner.is_gated()
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let future = match Arc::clone(&self.inner).list(cx, into) {
            Listing::Later(future) => future,
            now @ Listing::Now(_) => return now,
        };
        Listing::later(async move {
            timeout(self.limit, future).await.unwrap_or_else(|_| {
                let message = format!("it did not answer within {:?}", self.limit);
                Err(FailedListing {
                    error: DiscoveryError::new(DiscoveryErrorClass::Timeout, message)
                        .in_provider(&*self),
                    catalog: Catalog::new(),
                })
            })
        })
    }
}
