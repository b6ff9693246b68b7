//! Where tools come from, and what happens when a source cannot be listed.

mod changes;
mod fallback;
mod last_good;
mod notice;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolcrib_core::{Glob, ToolProvider, of_plugin};

use self::last_good::LastGood;
pub use self::notice::Notice;
pub(crate) use self::{
    changes::{Changes, Difference},
    fallback::{Fallback, Notices},
    last_good::Key,
};
use crate::reliability::Which;

/// What happens to an iteration when one of its sources cannot be listed: it answers with an error,
/// it panics, it takes too long, or what it answers is no listing. Cancellation is no such failure, it
/// ends the iteration.
///
/// An iteration that is [for one tool](crate::Turn::iteration_for) goes on without a source that
/// cannot have that tool, whatever is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnFailure {
    /// The iteration fails with the source's error: nothing is offered, nothing can be called.
    #[default]
    Fail,
    /// What the source listed last for the same tenant, principal and active skills takes the place
    /// of this listing. Where there is none the source is left out, as with [`Omit`](Self::Omit).
    ///
    /// Not for a source with a [gate](toolcrib_core::ToolProvider::is_gated) in it: what a gate let
    /// pass before is no answer to what it would say now. An engine with such a source is not built,
    /// and where it turns out later that there is a gate, the iteration fails. Put the gate around a
    /// [`cached`](toolcrib_core::cached()) provider with
    /// [`stale_on_error`](toolcrib_core::CacheOptions::stale_on_error) instead: it judges the older
    /// answer too.
    ///
    /// Listings are kept in memory, 64 per source at most; they are gone with the engine.
    Stale,
    /// The source is left out, with a [`Notice`] in each iteration in which it is. Its tools are
    /// withheld: as one entry for the source, and one for each tool that it listed when it last
    /// could.
    Omit,
}

/// A provider of an engine, and what happens when it fails.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) provider: Arc<dyn ToolProvider>,
    /// Whom a rule may have asked instead, in order.
    alternatives: Option<Arc<[Arc<dyn ToolProvider>]>>,
    on_failure: OnFailure,
    /// Kept only where a failure is not the end of the iteration.
    last_good: Option<Arc<LastGood>>,
    /// Of what a turn alone has, nobody hears that it changed.
    pub(crate) changes: Option<Arc<Changes>>,
}

impl Source {
    pub(crate) fn new(provider: Arc<dyn ToolProvider>, on_failure: OnFailure) -> Self {
        let last_good = (on_failure != OnFailure::Fail).then(Arc::default);
        let changes = Some(Arc::default());
        Self { provider, alternatives: None, on_failure, last_good, changes }
    }

    /// A source of one turn, whose failure ends the iteration.
    pub(crate) fn needed(provider: Arc<dyn ToolProvider>) -> Self {
        let on_failure = OnFailure::Fail;
        Self { provider, alternatives: None, on_failure, last_good: None, changes: None }
    }

    /// The same with whom a rule may have asked instead.
    pub(crate) fn or(
        mut self,
        alternatives: impl IntoIterator<Item = Arc<dyn ToolProvider>>,
    ) -> Self {
        self.alternatives = Some(alternatives.into_iter().collect());
        self
    }

    /// The same as a plugin's.
    pub(crate) fn of_plugin(self, plugin: &Arc<str>) -> Self {
        let of = |provider: &_| of_plugin(Arc::clone(plugin), Arc::clone(provider));
        let alternatives = self.alternatives.map(|others| others.iter().map(of).collect());
        Self { provider: of(&self.provider), alternatives, ..self }
    }

    /// Whether an old listing would stand in for what a gate decides anew each time.
    pub(crate) fn passes_over_gate(&self) -> bool {
        let mut all = std::iter::once(&self.provider)
            .chain(self.alternatives.iter().flat_map(|all| all.iter()));
        self.on_failure == OnFailure::Stale && all.any(|provider| provider.is_gated())
    }

    /// All who may be asked for its tools, in order.
    pub(crate) fn in_turn(&self) -> Vec<Arc<dyn ToolProvider>> {
        let alternatives = self.alternatives.iter().flat_map(|others| others.iter());
        std::iter::once(&self.provider).chain(alternatives).cloned().collect()
    }

    /// Which ones they are, for breakers. A provider of one turn is none that could be found again: its
    /// kind is known by name.
    pub(crate) fn which_in_turn(&self) -> Vec<Which> {
        let is_kept = self.changes.is_some();
        let which = |provider| if is_kept { Which::at(provider) } else { Which::Named };
        self.in_turn().iter().map(which).collect()
    }

    /// Whether it, or one of its alternatives, may have a tool of this name.
    pub(crate) fn may_have(&self, tool: &str) -> bool {
        let alternatives = self.alternatives.iter().flat_map(|others| others.iter());
        std::iter::once(&self.provider).chain(alternatives).any(|one| may_have(&**one, tool))
    }

    /// What its tools are called, else its id: a few words that a model may read.
    fn name(&self) -> Arc<str> {
        const LONGEST: usize = 80;
        let name = self.provider.covers().unwrap_or_else(|| self.provider.id());
        name.chars().take(LONGEST).flat_map(char::escape_debug).collect::<String>().into()
    }
}

/// Whether a provider may have a tool of this name.
pub(crate) fn may_have(provider: &dyn ToolProvider, tool: &str) -> bool {
    provider.covers().is_none_or(|pattern| match pattern.strip_suffix('*') {
        // Of nearly all, and asked at each call: without the memory that a pattern takes.
        Some(prefix) if !prefix.contains(['*', '?']) => tool.starts_with(prefix),
        _ => Glob::new(pattern).matches(tool),
    })
}
