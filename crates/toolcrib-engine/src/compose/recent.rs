use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{Composed, Situation, Visibility};

/// How many are kept; the one that was made longest ago makes room.
const MOST: usize = 64;

/// What an engine composed last, one for each [`Situation`], so that a turn whose list is the same
/// does not compose it again. Where each request is a turn of its own, most are.
#[derive(Default)]
pub(crate) struct Recent(Mutex<VecDeque<Arc<Composed>>>);

impl Recent {
    /// What was composed last in such a situation. Whether it still holds is not looked at.
    pub(crate) fn get(
        &self,
        visibility: &Arc<Visibility>,
        situation: &Situation,
    ) -> Option<Arc<Composed>> {
        self.lock().iter().find(|composed| composed.is_of(visibility, situation)).cloned()
    }

    /// Keeps what was composed in place of what is of the same situation.
    pub(crate) fn keep(&self, composed: &Arc<Composed>) {
        let visibility = composed.withheld.visibility();
        let situation = composed.withheld.situation();
        let mut kept = self.lock();
        let before = kept.iter().position(|before| before.is_of(visibility, situation));
        let gone = match before {
            Some(at) => kept.remove(at),
            None if kept.len() >= MOST => kept.pop_front(),
            None => None,
        };
        kept.push_back(Arc::clone(composed));
        drop(kept);
        // Tools may do anything when they go.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Composed>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
