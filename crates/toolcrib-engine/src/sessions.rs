//! The tools that conversations keep from one turn to the next.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolcrib_core::{Identity, Lifetime, Tool, ToolRegistry};

/// How many conversations are remembered that have tools; the one that had a turn longest ago makes
/// room.
const MOST_SESSIONS: usize = 1_024;

/// The tools that live for a [session](Lifetime::Session), by whose it is.
#[derive(Default)]
pub(crate) struct SessionTools(Mutex<VecDeque<(Arc<Identity>, Vec<Tool>)>>);

impl SessionTools {
    /// What a turn of that conversation begins with, beside the baseline.
    pub(crate) fn of(&self, identity: &Identity) -> Vec<Tool> {
        let sessions = self.lock();
        let known = sessions.iter().find(|(of, _)| **of == *identity);
        known.map(|(_, tools)| tools.clone()).unwrap_or_default()
    }

    /// Takes over what a turn leaves in its registry: what it added and took out, and nothing that
    /// other turns of the conversation did meanwhile.
    pub(crate) fn take_over(
        &self,
        identity: &Arc<Identity>,
        began_with: &[Tool],
        registry: &ToolRegistry,
        baseline: &ToolRegistry,
    ) {
        let of_session = |tool: &Tool| tool.ephemeral() == Some(Lifetime::Session);
        let began_with_it = |tool: &Tool| began_with.iter().any(|begun| begun.same(tool));
        let added: Vec<_> = registry
            .all()
            .into_iter()
            .filter(|tool| of_session(tool) && !began_with_it(tool) && !is_in(baseline, tool))
            .collect();
        if added.is_empty() && began_with.is_empty() {
            return;
        }
        let mut sessions = self.lock();
        let known = sessions.iter().position(|(of, _)| of == identity);
        let known = known.and_then(|at| sessions.remove(at));
        let mut tools = known.map(|(_, tools)| tools).unwrap_or_default();
        tools.retain(|tool| is_in(registry, tool) || !began_with_it(tool));
        for tool in added {
            match tools.iter_mut().find(|there| there.name() == tool.name()) {
                Some(there) => *there = tool,
                None => tools.push(tool),
            }
        }
        if !tools.is_empty() {
            sessions.push_back((Arc::clone(identity), tools));
            if sessions.len() > MOST_SESSIONS {
                sessions.pop_front();
            }
        }
    }

    /// Lets go of all that a conversation has, which is over.
    pub(crate) fn forget(&self, identity: &Identity) {
        self.lock().retain(|(of, _)| **of != *identity);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Arc<Identity>, Vec<Tool>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a registry holds that tool, not merely one of its name.
pub(crate) fn is_in(registry: &ToolRegistry, tool: &Tool) -> bool {
    registry.get(tool.name()).is_some_and(|there| there.same(tool))
}
