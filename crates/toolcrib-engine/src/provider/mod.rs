//! Sources of tools, and their failure handling.

pub(crate) mod discover;
mod fallback;
mod listings;
mod notice;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolcrib_core::{
    __internal::{may_have, of_plugin},
    ToolProvider,
};

pub use self::notice::Notice;
pub(crate) use self::{
    fallback::{Fallback, Notices},
    listings::{Difference, Listings},
};
use crate::reliability::TargetId;

/// The effect on an iteration when one of its sources cannot be listed: it returns an error, it
/// panics, it times out, or its listing is not valid. Cancellation is not such a failure; it ends
/// the iteration.
///
/// An iteration that is [for one tool](crate::Turn::iteration_for) continues without a source that
/// cannot have that tool, whatever this setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFailure {
    /// The iteration fails with the source's error: nothing is offered, no call is possible.
    #[default]
    Fail,
    /// The source's last listing for the same tenant, principal and active skills replaces this
    /// one, however old it is. Without one, the source is omitted, as with [`Omit`](Self::Omit).
    /// It is [`stale_on_error`](toolcrib_core::CacheOptions::stale_on_error) without a
    /// [cache](toolcrib_core::cached()): the source is queried in each iteration, in its whole
    /// context, and reliability rules come first.
    ///
    /// Not for a source with a [gate](toolcrib_core::ToolProvider::is_gated) in it: a gate's
    /// earlier decision says nothing about its current one. Building an engine with such a source
    /// fails; if a gate appears later, the iteration fails. Put the gate around a cache with
    /// `stale_on_error` instead: it also decides on the older listing.
    ///
    /// Listings are kept in memory, 64 per source at most; they are dropped with the engine.
    Stale,
    /// The source is omitted, with a [`Notice`] in each iteration in which it is. Its tools are
    /// withheld: one entry for the source, and one for each tool of its last successful listing.
    Omit,
}

/// A provider of an engine, and what happens when it fails.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) provider: Arc<dyn ToolProvider>,
    /// The alternatives that a rule may use instead, in order.
    alternatives: Option<Arc<[Arc<dyn ToolProvider>]>>,
    on_failure: OnFailure,
    /// `None` for a source of a single turn: its changes are not reported.
    listings: Option<Arc<Listings>>,
    /// Whether its list is that of every turn.
    pub(crate) is_baseline: bool,
}

impl Source {
    pub(crate) fn new(provider: Arc<dyn ToolProvider>, on_failure: OnFailure) -> Self {
        let listings = Some(Arc::default());
        Self { provider, alternatives: None, on_failure, listings, is_baseline: false }
    }

    /// A source of one turn, whose failure ends the iteration.
    pub(crate) fn needed(provider: Arc<dyn ToolProvider>) -> Self {
        let on_failure = OnFailure::Fail;
        Self { provider, alternatives: None, on_failure, listings: None, is_baseline: false }
    }

    /// The same with alternatives that a rule may use instead.
    pub(crate) fn or(
        mut self,
        alternatives: impl IntoIterator<Item = Arc<dyn ToolProvider>>,
    ) -> Self {
        self.alternatives = Some(alternatives.into_iter().collect());
        self
    }

    /// The same as a plugin's source.
    pub(crate) fn of_plugin(self, plugin: &Arc<str>) -> Self {
        let of = |provider: &_| of_plugin(Arc::clone(plugin), Arc::clone(provider));
        let alternatives = self.alternatives.map(|others| others.iter().map(of).collect());
        Self { provider: of(&self.provider), alternatives, ..self }
    }

    /// Whether its failure ends the iteration.
    pub(crate) fn ends_iteration(&self) -> bool {
        self.on_failure == OnFailure::Fail
    }

    /// Its last listings, if they are used: a failure does not end the iteration, or changes are
    /// reported.
    pub(crate) fn listings(&self, is_heard: bool) -> Option<&Arc<Listings>> {
        self.listings.as_ref().filter(|_| is_heard || !self.ends_iteration())
    }

    /// Whether a stale listing would replace a decision that a gate makes again each time.
    pub(crate) fn passes_over_gate(&self) -> bool {
        let mut all = std::iter::once(&self.provider)
            .chain(self.alternatives.iter().flat_map(|all| all.iter()));
        self.on_failure == OnFailure::Stale && all.any(|provider| provider.is_gated())
    }

    /// All providers that may be queried for its tools, in order.
    pub(crate) fn in_turn(&self) -> Vec<Arc<dyn ToolProvider>> {
        let alternatives = self.alternatives.iter().flat_map(|others| others.iter());
        std::iter::once(&self.provider).chain(alternatives).cloned().collect()
    }

    /// Their identities, for breakers. A provider of one turn cannot be recognized in another: it
    /// is identified by name.
    pub(crate) fn which_in_turn(&self) -> Vec<TargetId> {
        let is_kept = self.listings.is_some();
        let which = |provider| if is_kept { TargetId::at(provider) } else { TargetId::Named };
        self.in_turn().iter().map(which).collect()
    }

    /// Whether it, or one of its alternatives, may have a tool of this name.
    pub(crate) fn may_have(&self, tool: &str) -> bool {
        let alternatives = self.alternatives.iter().flat_map(|others| others.iter());
        std::iter::once(&self.provider).chain(alternatives).any(|one| may_have(&**one, tool))
    }

    /// The pattern of its tools' names, otherwise its id: a few words that a model may read.
    fn name(&self) -> Arc<str> {
        const LONGEST: usize = 80;
        let name = self.provider.covers().unwrap_or_else(|| self.provider.id());
        name.chars().take(LONGEST).flat_map(char::escape_debug).collect::<String>().into()
    }
}
