use std::{sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{
    DiscoveryError, DiscoveryErrorClass, Listing, ToolProvider, context_list::ListContext,
};

/// Limits the time of an asynchronous listing. On timeout the listing fails with the class
/// `timeout`, and the inner future is dropped.
///
/// Immediate listings are not timed, however long the call took. Requires tokio's timer.
///
/// ```
/// # use std::time::Duration;
/// # use toolcrib_core::{static_tools, with_timeout};
/// let provider = with_timeout(static_tools([]), Duration::from_secs(5));
/// assert_eq!(provider.path(), "timeout(5s) > static");
/// ```
pub fn with_timeout(inner: Arc<dyn ToolProvider>, limit: Duration) -> Arc<dyn ToolProvider> {
    Arc::new(TimeoutProvider { inner, limit })
}

struct TimeoutProvider {
    inner: Arc<dyn ToolProvider>,
    limit: Duration,
}

impl ToolProvider for TimeoutProvider {
    fn id(&self) -> &str {
        "timeout"
    }

    fn path(&self) -> String {
        format!("timeout({:?}) > {}", self.limit, self.inner.path())
    }

    forward!(leaf, covers, is_gated);

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let future = match Arc::clone(&self.inner).list(cx) {
            Listing::Later(future) => future,
            now @ Listing::Now(_) => return now,
        };
        Listing::later(async move {
            timeout(self.limit, future).await.unwrap_or_else(|_| {
                let message = format!("it did not answer within {:?}", self.limit);
                Err(DiscoveryError::new(DiscoveryErrorClass::Timeout, message).in_provider(&*self))
            })
        })
    }
}
