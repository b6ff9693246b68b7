//! The breakers of an engine: for each tenant one per source, model and tool. Failures caused by
//! one tenant's credentials or input do not affect other tenants.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{
    __internal::BreakerChange, Breaker, BreakerConfig, BreakerOpenError, BreakerState, Permit,
    Stage, Tool, ToolProvider,
};

/// Maximum number kept per stage; tenants and remote tools come and go. Breakers that would admit
/// an attempt are evicted first, otherwise the one that is the next to.
const MOST_BREAKERS: usize = 1024;

/// The key of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct BreakerKey {
    /// The name in events.
    pub(super) name: Arc<str>,
    pub(super) which: TargetId,
    pub(super) tenant: Option<Arc<str>>,
}

/// Distinguishes several with the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum TargetId {
    /// The name is unique.
    #[default]
    Named,
    /// The provider at this address; the engine keeps it, so that no other can get the same
    /// address.
    At(usize),
    /// The tool with this origin.
    From { origin: Arc<str>, plugin: Option<Arc<str>> },
}

impl TargetId {
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

/// For each stage with breakers, those that were needed so far. All turns share them.
pub(super) struct Breakers(Vec<StageBreakers>);

struct StageBreakers {
    stage: Stage,
    config: BreakerConfig,
    known: Mutex<HashMap<BreakerKey, Breaker>>,
}

/// An admitted attempt.
pub(super) struct AdmittedAttempt {
    pub(super) permit: Permit,
    /// Whether the breaker is half-open now.
    pub(super) change: Option<BreakerChange>,
}

impl Breakers {
    pub(super) fn new(configs: &[(Stage, BreakerConfig)]) -> Self {
        let mut stages: Vec<StageBreakers> = Vec::new();
        for (stage, config) in configs {
            // The last configuration for a stage wins.
            stages.retain(|known| known.stage != *stage);
            stages.push(StageBreakers { stage: *stage, config: *config, known: Mutex::default() });
        }
        Self(stages)
    }

    /// Whether that stage has breakers.
    pub(super) fn are_at(&self, stage: Stage) -> bool {
        self.0.iter().any(|of| of.stage == stage)
    }

    /// Admits an attempt, or refuses it. `None` without a breaker.
    pub(super) fn admit(
        &self,
        stage: Stage,
        guarded: impl FnOnce() -> BreakerKey,
    ) -> Result<Option<AdmittedAttempt>, BreakerOpenError> {
        let Some(of) = self.0.iter().find(|of| of.stage == stage) else {
            return Ok(None);
        };
        let (permit, change) = of.breaker(guarded()).admit_noting()?;
        Ok(Some(AdmittedAttempt { permit, change }))
    }
}

impl StageBreakers {
    fn breaker(&self, guarded: BreakerKey) -> Breaker {
        let mut known = self.lock();
        if let Some(breaker) = known.get(&guarded) {
            return breaker.clone();
        }
        if known.len() >= MOST_BREAKERS {
            known.retain(|_, breaker| match breaker.state() {
                BreakerState::Closed => false,
                BreakerState::Open { retry_in } => !retry_in.is_zero(),
                _ => true,
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

    fn lock(&self) -> MutexGuard<'_, HashMap<BreakerKey, Breaker>> {
        self.known.lock()
    }
}
