//! The breakers of an engine: for each tenant one per source, model and tool. What one tenant makes
//! fail, with credentials or input of its own, keeps nobody else from it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolcrib_core::{Stage, Tool, ToolProvider};

use crate::breaker::{Breaker, BreakerChange, BreakerConfig, BreakerOpen, BreakerState, Permit};

/// How many are kept per stage; tenants and remote tools come and go. Room is made by those that
/// would let an attempt through, else by the one that is the next to.
const MOST_BREAKERS: usize = 1024;

/// Whom a breaker guards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Guarded {
    /// As events say it.
    pub(super) name: Arc<str>,
    pub(super) which: Which,
    pub(super) tenant: Option<Arc<str>>,
}

/// Which one of those that have one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    /// There is one of a name.
    #[default]
    Named,
    /// The provider at this address; one that the engine keeps, so that no other comes to lie there.
    At(usize),
    /// The tool that comes from there.
    From { origin: Arc<str>, plugin: Option<Arc<str>> },
}

impl Which {
    /// A provider that the engine keeps.
    pub(crate) fn at(provider: &Arc<dyn ToolProvider>) -> Self {
        Self::At(Arc::as_ptr(provider).addr())
    }

    pub(crate) fn tool(tool: &Tool) -> Self {
        let definition = tool.definition();
        let plugin = definition.plugin().map(Arc::from);
        Self::From { origin: Arc::clone(definition.shared_origin()), plugin }
    }
}

/// Per stage that has breakers at all, those that were needed so far. They are shared by all turns.
pub(super) struct Breakers(Vec<OfStage>);

struct OfStage {
    stage: Stage,
    config: BreakerConfig,
    known: Mutex<HashMap<Guarded, Breaker>>,
}

/// An attempt that was let through.
pub(super) struct Admitted {
    pub(super) permit: Permit,
    /// Whether the breaker is half-open now.
    pub(super) change: Option<BreakerChange>,
}

impl Breakers {
    pub(super) fn new(configs: &[(Stage, BreakerConfig)]) -> Self {
        let mut stages: Vec<OfStage> = Vec::new();
        for (stage, config) in configs {
            // Who says it twice means the last.
            stages.retain(|known| known.stage != *stage);
            stages.push(OfStage { stage: *stage, config: *config, known: Mutex::default() });
        }
        Self(stages)
    }

    /// Whether there are any at that stage.
    pub(super) fn are_at(&self, stage: Stage) -> bool {
        self.0.iter().any(|of| of.stage == stage)
    }

    /// Lets an attempt through, or refuses it. `None` where there is no breaker.
    pub(super) fn admit(
        &self,
        stage: Stage,
        guarded: impl FnOnce() -> Guarded,
    ) -> Result<Option<Admitted>, BreakerOpen> {
        let Some(of) = self.0.iter().find(|of| of.stage == stage) else {
            return Ok(None);
        };
        let (permit, change) = of.breaker(guarded()).admit_noting()?;
        Ok(Some(Admitted { permit, change }))
    }
}

impl OfStage {
    fn breaker(&self, guarded: Guarded) -> Breaker {
        let mut known = self.lock();
        if let Some(breaker) = known.get(&guarded) {
            return breaker.clone();
        }
        if known.len() >= MOST_BREAKERS {
            known.retain(|_, breaker| match breaker.state() {
                BreakerState::Closed => false,
                BreakerState::Open { retry_in } => !retry_in.is_zero(),
                BreakerState::HalfOpen => true,
            });
        }
        if known.len() >= MOST_BREAKERS {
            let next = known.iter().min_by_key(|(_, breaker)| breaker.retry_in());
            if let Some(next) = next.map(|(guarded, _)| guarded.clone()) {
                known.remove(&next);
            }
        }
        let breaker = Breaker::new(self.config);
        known.insert(guarded, breaker.clone());
        breaker
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Guarded, Breaker>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
