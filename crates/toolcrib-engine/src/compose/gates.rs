//! The gates of providers, tried with supposed facts: a change of facts is named only if they offer the tool then.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use toolcrib_core::{CancellationToken, Identity, ListContext, Listing, ToolProvider};

use crate::policy::facts::Facts;

/// The providers with gates of an engine.
#[derive(Clone, Default)]
pub(crate) struct Gates(Arc<[Arc<dyn ToolProvider>]>);

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|provider| provider.path())).finish()
    }
}

impl Gates {
    /// The gates among some providers.
    pub(crate) fn among(providers: impl Iterator<Item = Arc<dyn ToolProvider>>) -> Self {
        Self(providers.filter(|provider| provider.is_gated()).collect())
    }

    /// Whether providers with gates withhold a tool under some facts. `None` if none of them knows it, or none
    /// answers at once.
    pub(super) fn withhold(&self, tool: &str, facts: Facts<'_>) -> Option<bool> {
        if self.0.is_empty() {
            return None;
        }
        let identity = Identity {
            tenant: facts.tenant.map(Arc::from),
            principal: facts.principal.map(Arc::from),
            ..Identity::conversation("supposed")
        };
        let cx = ListContext::new(Arc::new(identity), CancellationToken::new())
            .with_iteration(facts.iteration)
            .with_active_skills(facts.skills.into());
        let mut withheld = None;
        for provider in self.0.iter() {
            // A provider that fails says nothing.
            let listing = catch_unwind(AssertUnwindSafe(|| Arc::clone(provider).list(&cx)));
            let Ok(Listing::Now(Ok(catalog))) = listing else { continue };
            if catalog.offered().iter().any(|one| *one.name() == *tool) {
                return Some(false);
            }
            let mut held = catalog.withheld_by_provider().iter();
            if held.any(|held| *held.tool.name() == *tool) {
                withheld = Some(true);
            }
        }
        withheld
    }
}
