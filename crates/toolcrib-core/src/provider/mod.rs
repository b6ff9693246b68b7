//! Providers: "what tools should the model see right now?"

mod cached;
mod concat;
mod discovery;
mod error;
mod from_fn;
mod gated;
mod handed;
mod of_plugin;
mod per_identity;
mod prefixed;
mod prepared;
mod rewritten;
mod skill_scoped;
mod static_tools;
mod with_timeout;

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;

pub use self::{
    cached::{CacheOptions, Cached, KeyField, Ttl, cached},
    concat::{concat, list_in_order},
    discovery::{CatalogRequest, Discovery, ToolHub, discovery},
    error::{DiscoveryError, DiscoveryErrorClass},
    from_fn::{IntoTools, from_async_fn, from_fn},
    gated::{Gate, IntoVerdict, Verdict, gated_tools},
    handed::Handed,
    of_plugin::of_plugin,
    per_identity::{PerIdentity, Whose, per_identity},
    prefixed::prefixed,
    prepared::{IntoPrepared, Prepared, ToolRewrite, prepared},
    skill_scoped::skill_scoped_tools,
    static_tools::static_tools,
    with_timeout::with_timeout,
};
use crate::{catalog::Catalog, context_list::ListContext};

/// Answers one question per iteration: what tools should the model see right now?
///
/// A provider is asked once per iteration. It is pure: the same context and the same state of its
/// source give the same list. It is re-entrant: many runs ask one provider at the same time.
/// Order is kept, a model may take position as a hint. It caches by itself or not at all; the
/// engine never caches behind its back. It fails loudly: an error ends the iteration, because a
/// tool that silently vanishes in mid-conversation is harder to debug than a crash.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_core::{Catalog, ListContext, Listing, Tool, ToolProvider};
///
/// /// Offers its tool only in the first three iterations.
/// struct EarlyOnly(Tool);
///
/// impl ToolProvider for EarlyOnly {
///     fn id(&self) -> &str { "early-only" }
///     fn list(self: Arc<Self>, cx: &ListContext, mut into: Catalog) -> Listing {
///         if cx.iteration() <= 3 {
///             into.offer(self.0.clone());
///         }
///         Listing::now(into)
///     }
/// }
/// ```
pub trait ToolProvider: Send + Sync + 'static {
    /// A stable id, for events and messages.
    fn id(&self) -> &str {
        "unnamed"
    }

    /// The id and those of the providers inside, outermost first: `gated(read_only) > static`.
    fn path(&self) -> String {
        self.id().to_owned()
    }

    /// The id of the provider at the bottom of a stack of decorators: who really answers. A
    /// decorator answers what the provider inside does; all others keep the default, their own id.
    fn leaf(&self) -> &str {
        self.id()
    }

    /// The pattern of all names that its tools can have, such as `mcp__git__*`, where there is one:
    /// what stands for its tools while nobody knows them. A provider around this one answers the
    /// same, as long as it changes no names.
    fn covers(&self) -> Option<&str> {
        None
    }

    /// Whether what it lists has passed a decision that may be another one next time: that of a
    /// [gate](gated_tools) or of [what prepares](prepared). An old listing of such a provider is no
    /// answer to what the decision would be now, so an engine does not let one stand in. A provider
    /// around others answers yes where one of them does. Default: no.
    fn is_gated(&self) -> bool {
        false
    }

    /// Adds this provider's tools to `into` and gives it back: at once, or later. What was in it
    /// must come back with it; a list of one's own is a failure of the provider.
    ///
    /// A future may take `into` along. It must not start work that outlives it; dropping it is how
    /// a run that was cancelled ends it.
    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing;
}

/// A provider's answer.
pub enum Listing {
    /// The answer is here; no future was made.
    Now(Result<Catalog, FailedListing>),
    /// The answer comes later.
    Later(BoxFuture<'static, Result<Catalog, FailedListing>>),
}

impl Listing {
    /// The list, now.
    pub fn now(catalog: Catalog) -> Self {
        Self::Now(Ok(catalog))
    }

    /// A failure, now; hands the caller's list back.
    pub fn failed(catalog: Catalog, error: DiscoveryError) -> Self {
        Self::Now(Err(FailedListing { error, catalog }))
    }

    /// The list, once the future is done.
    pub fn later(
        future: impl Future<Output = Result<Catalog, FailedListing>> + Send + 'static,
    ) -> Self {
        Self::Later(Box::pin(future))
    }

    /// Changes what comes out, now or later, as the answer itself does.
    #[must_use]
    pub fn and_then(
        self,
        then: impl FnOnce(Catalog) -> Result<Catalog, FailedListing> + Send + 'static,
    ) -> Self {
        match self {
            Self::Now(answer) => Self::Now(answer.and_then(then)),
            Self::Later(future) => Self::later(async move { then(future.await?) }),
        }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// The provider's failure.
    pub async fn wait(self) -> Result<Catalog, FailedListing> {
        match self {
            Self::Now(answer) => answer,
            Self::Later(future) => future.await,
        }
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(answer) => f.debug_tuple("Now").field(answer).finish(),
            Self::Later(_) => f.write_str("Later(..)"),
        }
    }
}

/// A listing that failed, with the list as it came in, so that whoever degrades can go on.
#[derive(Debug)]
pub struct FailedListing {
    /// What went wrong.
    pub error: DiscoveryError,
    /// The list that was handed in.
    pub catalog: Catalog,
}
