//! Providers: "what tools should the model see right now?"

/// Methods of a decorator that call those of its inner provider.
macro_rules! forward {
    (leaf) => {
        fn leaf(&self) -> &str {
            self.inner.leaf()
        }
    };
    (covers) => {
        fn covers(&self) -> Option<&str> {
            self.inner.covers()
        }
    };
    (is_gated) => {
        fn is_gated(&self) -> bool {
            self.inner.is_gated()
        }
    };
    ($first:ident, $($others:ident),+) => {
        forward!($first);
        forward!($($others),+);
    };
}

pub(crate) mod cached;
pub(crate) mod catalog;
pub(crate) mod concat;
pub(crate) mod context_list;
pub(crate) mod covers;
mod discovery;
mod error;
mod from_fn;
mod gated;
pub(crate) mod listing_info;
pub(crate) mod of_plugin;
mod per_identity;
mod prefixed;
mod prepared;
mod rewritten;
mod skill_scoped;
mod static_tools;
mod with_timeout;
pub(crate) mod withheld_tool;

use std::{fmt, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};

pub use self::{
    cached::{CacheOptions, Cached, KeyField, Ttl, cached},
    catalog::{Catalog, Reason, WithheldByProvider},
    concat::concat,
    context_list::ListContext,
    discovery::{CatalogRequest, Discovery, ToolHub, discovery, discovery_fn},
    error::{DiscoveryError, DiscoveryErrorClass},
    from_fn::{IntoCatalog, from_async_fn, from_fn},
    gated::{GateDecision, IntoGateDecision, gated_tools},
    listing_info::{CacheStatus, ListingInfo},
    per_identity::{IdentityScope, PerIdentity, per_identity},
    prefixed::prefixed,
    prepared::{IntoPreparation, Preparation, ToolRewrite, prepared},
    skill_scoped::skill_scoped_tools,
    static_tools::static_tools,
    with_timeout::with_timeout,
    withheld_tool::{WithheldBy, WithheldTool},
};
pub use crate::tool::MissingReason;

/// Lists the tools that the model may see in an iteration.
///
/// A provider is queried once per iteration. It is pure: the same context and the same state of its
/// source give the same list. It is re-entrant: many runs query one provider at the same time. It
/// keeps the order, because a model may take position as a hint. Caching is the provider's
/// decision; the engine adds none. Failures are explicit: an error ends the iteration, because a
/// tool that silently vanishes in mid-conversation is harder to debug than a crash.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_core::{Catalog, ListContext, Listing, ToolProvider};
///
/// /// Offers its tools only in the first three iterations.
/// struct EarlyOnly(Catalog);
///
/// impl ToolProvider for EarlyOnly {
///     fn id(&self) -> &str { "early-only" }
///     fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
///         Listing::now(if cx.iteration() <= 3 { self.0.clone() } else { Catalog::new() })
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

    /// The id of the innermost provider of a stack of decorators, which produces the listing.
    /// Decorators forward it; all others keep the default, their own id.
    fn leaf(&self) -> &str {
        self.id()
    }

    /// The pattern of all names that its tools can have, such as `mcp__git__*`, if there is one. It
    /// represents the tools while they are unknown. Decorators forward it, unless they change
    /// names.
    fn covers(&self) -> Option<&str> {
        None
    }

    /// Whether the listing depends on a decision that can change: that of a [gate](gated_tools) or
    /// of a [preparer](prepared). An old listing of such a provider does not show the current
    /// decision, so an engine never serves it as a stale replacement. A decorator returns true if
    /// any of its providers does. Default: false.
    fn is_gated(&self) -> bool {
        false
    }

    /// Lists this provider's tools, immediately or later. An unchanged list is best returned as a
    /// clone of the same [`Catalog`], which costs nothing.
    ///
    /// A future must not start work that outlives it: a cancelled run drops it.
    fn list(self: Arc<Self>, cx: &ListContext) -> Listing;
}

/// The result of [`ToolProvider::list`].
pub enum Listing {
    /// The result is available; no future was made.
    Now(Result<Catalog, DiscoveryError>),
    /// The result follows asynchronously.
    Later(BoxFuture<'static, Result<Catalog, DiscoveryError>>),
}

impl Listing {
    /// An immediate list: a [`Catalog`], a `Vec` or an array of tools.
    pub fn now(tools: impl Into<Catalog>) -> Self {
        Self::Now(Ok(tools.into()))
    }

    /// A listing that failed at once.
    pub fn failed(error: DiscoveryError) -> Self {
        Self::Now(Err(error))
    }

    /// A list or a failure that follows when the future is done.
    pub fn later(
        future: impl Future<Output = Result<Catalog, DiscoveryError>> + Send + 'static,
    ) -> Self {
        Self::Later(Box::pin(future))
    }

    /// Maps the result, immediate or asynchronous, and keeps its kind.
    #[must_use]
    pub fn then(
        self,
        then: impl FnOnce(Result<Catalog, DiscoveryError>) -> Result<Catalog, DiscoveryError>
        + Send
        + 'static,
    ) -> Self {
        match self {
            Self::Now(answer) => Self::Now(then(answer)),
            Self::Later(future) => Self::later(future.map(then)),
        }
    }

    /// Maps the catalog, immediate or asynchronous, and keeps its kind.
    #[must_use]
    pub fn and_then(
        self,
        then: impl FnOnce(Catalog) -> Result<Catalog, DiscoveryError> + Send + 'static,
    ) -> Self {
        self.then(|answer| answer.and_then(then))
    }

    /// Awaits the result of the listing.
    ///
    /// # Errors
    /// The provider's failure.
    pub async fn wait(self) -> Result<Catalog, DiscoveryError> {
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
