//! The tools that sessions keep from one turn to the next.

use std::{collections::HashMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{Identity, Lifetime, Tool, ToolRegistry};

/// Maximum number of remembered sessions with tools; the least recently used one is evicted.
const MOST_SESSIONS: usize = 1_024;

/// The tools with the lifetime of a [session](Lifetime::Session), by identity.
#[derive(Default)]
pub(crate) struct SessionTools(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    /// Sessions with tools, or with a running turn.
    known: HashMap<Arc<Identity>, Session>,
    /// Logical clock.
    ticks: u64,
}

struct Session {
    /// Distinguishes it from a later session of the same name.
    begun: u64,
    /// Number of its running turns.
    turns: usize,
    tools: Vec<Tool>,
    /// When a turn last stored something here.
    last: u64,
}

/// A turn's part of its session.
pub(crate) struct TurnSession {
    begun: u64,
    /// The tools that the turn begins with, beside the baseline.
    pub(crate) tools: Vec<Tool>,
}

impl SessionTools {
    /// Begins a turn of that session. The turn must [leave](Self::leave) or [end](Self::forget) the
    /// session.
    pub(crate) fn begin(&self, identity: &Arc<Identity>) -> TurnSession {
        let mut sessions = self.lock();
        let begun = sessions.tick();
        let session = sessions.known.entry(Arc::clone(identity)).or_insert(Session {
            begun,
            turns: 0,
            tools: Vec::new(),
            last: begun,
        });
        session.turns += 1;
        TurnSession { begun: session.begun, tools: session.tools.clone() }
    }

    /// Stores a turn's changes of its registry: the tools that it added and removed, without
    /// changes that other turns of the session made meanwhile. Nothing for a session that has
    /// ended.
    pub(crate) fn take_over(
        &self,
        identity: &Identity,
        turn: &TurnSession,
        registry: &ToolRegistry,
        baseline: &ToolRegistry,
    ) {
        let of_session = |tool: &Tool| tool.ephemeral() == Some(Lifetime::Session);
        let began_with = |tool: &Tool| turn.tools.iter().any(|begun| begun.same(tool));
        let added: Vec<_> = registry
            .all()
            .into_iter()
            .filter(|tool| of_session(tool) && !began_with(tool) && !is_in(baseline, tool))
            .collect();
        if added.is_empty() && turn.tools.is_empty() {
            return;
        }
        let mut sessions = self.lock();
        let last = sessions.tick();
        let Some(session) = sessions.of(identity, turn) else { return };
        session.last = last;
        let taken_out = |tool: &mut Tool| began_with(tool) && !is_in(registry, tool);
        let mut gone: Vec<_> = session.tools.extract_if(.., taken_out).collect();
        for tool in added {
            match session.tools.iter_mut().find(|there| there.name() == tool.name()) {
                Some(there) => gone.push(std::mem::replace(there, tool)),
                None => session.tools.push(tool),
            }
        }
        gone.extend(sessions.make_room());
        drop(sessions);
        // Without the lock: destructors of tools may do anything.
        drop(gone);
    }

    /// Ends a turn of that session, which continues.
    pub(crate) fn leave(&self, identity: &Identity, turn: &TurnSession) {
        let mut sessions = self.lock();
        let Some(session) = sessions.of(identity, turn) else { return };
        session.turns -= 1;
        if session.turns == 0 && session.tools.is_empty() {
            sessions.known.remove(identity);
        }
    }

    /// Ends a session and drops all of its tools, also for its running turns.
    pub(crate) fn forget(&self, identity: &Identity) {
        let gone = self.lock().known.remove(identity);
        // Without the lock, as above.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock()
    }
}

impl Sessions {
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// The session of a turn, unless it has ended.
    fn of(&mut self, identity: &Identity, turn: &TurnSession) -> Option<&mut Session> {
        self.known.get_mut(identity).filter(|session| session.begun == turn.begun)
    }

    /// Evicts the tools of one session if too many have some.
    fn make_room(&mut self) -> Vec<Tool> {
        let have_tools = || self.known.iter().filter(|(_, session)| !session.tools.is_empty());
        if self.known.len() <= MOST_SESSIONS || have_tools().count() <= MOST_SESSIONS {
            return Vec::new();
        }
        let oldest = have_tools().min_by_key(|(_, session)| session.last);
        let Some(oldest) = oldest.map(|(of, _)| Arc::clone(of)) else { return Vec::new() };
        let Some(session) = self.known.get_mut(&oldest) else { return Vec::new() };
        let gone = std::mem::take(&mut session.tools);
        if session.turns == 0 {
            self.known.remove(&oldest);
        }
        gone
    }
}

/// Whether a registry contains that tool, not merely one with its name.
pub(crate) fn is_in(registry: &ToolRegistry, tool: &Tool) -> bool {
    registry.get(tool.name()).is_some_and(|there| there.same(tool))
}

/// Whether a listed tool is one of a registry, whose definition may contain secrets that are
/// redacted in a list.
pub(crate) fn is_listed_of(registry: &ToolRegistry, tool: &Tool) -> bool {
    registry.get(tool.name()).is_some_and(|there| there.same_body(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_conversations_that_have_neither_turns_nor_tools() {
        let sessions = SessionTools::default();
        let identity = Arc::new(Identity::conversation("c"));
        let known = || sessions.lock().known.len();
        let (one, two) = (sessions.begin(&identity), sessions.begin(&identity));
        sessions.leave(&identity, &one);
        assert_eq!(known(), 1);
        sessions.leave(&identity, &two);
        assert_eq!(known(), 0);
        // Nor does an ended session take a turn from its successor.
        let old = sessions.begin(&identity);
        sessions.forget(&identity);
        let new = sessions.begin(&identity);
        sessions.leave(&identity, &old);
        assert_eq!(known(), 1);
        sessions.leave(&identity, &new);
        assert_eq!(known(), 0);
    }
}
