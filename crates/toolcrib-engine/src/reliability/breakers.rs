//! The breakers of an engine: one per source, model and tool that has failed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolcrib_core::Stage;

use crate::breaker::{Breaker, BreakerChange, BreakerConfig, BreakerOpen, Permit};

/// How many are kept per stage; names of remote tools come and go. One that is closed makes room.
const MOST_BREAKERS: usize = 1024;

/// Per stage that has breakers at all, those that were needed so far. They are shared by all turns.
pub(super) struct Breakers(Vec<OfStage>);

struct OfStage {
    stage: Stage,
    config: BreakerConfig,
    known: Mutex<HashMap<Arc<str>, Breaker>>,
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

    /// Lets an attempt through, or refuses it. `None` where there is no breaker.
    pub(super) fn admit(
        &self,
        stage: Stage,
        name: &Arc<str>,
    ) -> Result<Option<Admitted>, BreakerOpen> {
        let Some(of) = self.0.iter().find(|of| of.stage == stage) else {
            return Ok(None);
        };
        let (permit, change) = of.breaker(name).admit_noting()?;
        Ok(Some(Admitted { permit, change }))
    }
}

impl OfStage {
    fn breaker(&self, name: &Arc<str>) -> Breaker {
        let mut known = self.lock();
        if let Some(breaker) = known.get(name) {
            return breaker.clone();
        }
        if known.len() >= MOST_BREAKERS {
            known.retain(|_, breaker| breaker.retry_in().is_some());
        }
        let breaker = Breaker::new(self.config);
        known.insert(Arc::clone(name), breaker.clone());
        breaker
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Breaker>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
