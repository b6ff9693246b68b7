//! The tools that conversations keep from one turn to the next.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolcrib_core::{Identity, Lifetime, Tool, ToolRegistry};

/// How many conversations are remembered that have tools; the one that had a turn longest ago makes
/// room.
const MOST_SESSIONS: usize = 1_024;

/// The tools that live for a [session](Lifetime::Session), by whose it is.
#[derive(Default)]
pub(crate) struct SessionTools(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    known: HashMap<Arc<Identity>, Session>,
    /// How often a turn has left something.
    turns: u64,
}

#[derive(Default)]
struct Session {
    tools: Vec<Tool>,
    /// Which turn of all left something here last.
    last: u64,
}

impl SessionTools {
    /// What a turn of that conversation begins with, beside the baseline.
    pub(crate) fn of(&self, identity: &Identity) -> Vec<Tool> {
        let sessions = self.lock();
        sessions.known.get(identity).map(|session| session.tools.clone()).unwrap_or_default()
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
        sessions.turns += 1;
        let last = sessions.turns;
        let session = sessions.known.entry(Arc::clone(identity)).or_default();
        session.last = last;
        session.tools.retain(|tool| is_in(registry, tool) || !began_with_it(tool));
        for tool in added {
            match session.tools.iter_mut().find(|there| there.name() == tool.name()) {
                Some(there) => *there = tool,
                None => session.tools.push(tool),
            }
        }
        if session.tools.is_empty() {
            sessions.known.remove(identity);
        } else if sessions.known.len() > MOST_SESSIONS {
            let oldest = sessions.known.iter().min_by_key(|(_, session)| session.last);
            if let Some(oldest) = oldest.map(|(of, _)| Arc::clone(of)) {
                sessions.known.remove(&oldest);
            }
        }
    }

    /// Lets go of all that a conversation has, which is over.
    pub(crate) fn forget(&self, identity: &Identity) {
        let gone = self.lock().known.remove(identity);
        // Without the lock: tools may do anything when they go.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a registry holds that tool, not merely one of its name.
pub(crate) fn is_in(registry: &ToolRegistry, tool: &Tool) -> bool {
    registry.get(tool.name()).is_some_and(|there| there.same(tool))
}
