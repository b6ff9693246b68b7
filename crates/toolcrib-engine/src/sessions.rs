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
    /// Those that have tools, or a turn that is at work.
    known: HashMap<Arc<Identity>, Session>,
    /// Counts what happens here.
    ticks: u64,
}

struct Session {
    /// Tells it from another of the same name that begins when this one is over.
    begun: u64,
    /// How many of its turns are at work.
    turns: usize,
    tools: Vec<Tool>,
    /// When a turn has left something here last.
    last: u64,
}

/// What a turn has of its conversation.
pub(crate) struct TurnSession {
    begun: u64,
    /// What the turn begins with, beside the baseline.
    pub(crate) tools: Vec<Tool>,
}

impl SessionTools {
    /// Begins a turn of that conversation. It has to [leave](Self::leave), or to
    /// [end](Self::forget) the conversation.
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

    /// Takes over what a turn leaves in its registry: what it added and took out, and nothing that
    /// other turns of the conversation did meanwhile. Nothing of a conversation that is over.
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
        // Without the lock: tools may do anything when they go.
        drop(gone);
    }

    /// Ends a turn of that conversation, which goes on.
    pub(crate) fn leave(&self, identity: &Identity, turn: &TurnSession) {
        let mut sessions = self.lock();
        let Some(session) = sessions.of(identity, turn) else { return };
        session.turns -= 1;
        if session.turns == 0 && session.tools.is_empty() {
            sessions.known.remove(identity);
        }
    }

    /// Lets go of all that a conversation has, which is over: also for its turns that are at work.
    pub(crate) fn forget(&self, identity: &Identity) {
        let gone = self.lock().known.remove(identity);
        // Without the lock, as above.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    fn tick(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    /// The conversation of a turn, unless it is over.
    fn of(&mut self, identity: &Identity, turn: &TurnSession) -> Option<&mut Session> {
        self.known.get_mut(identity).filter(|session| session.begun == turn.begun)
    }

    /// Takes the tools of one conversation where too many have some.
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

/// Whether a registry holds that tool, not merely one of its name.
pub(crate) fn is_in(registry: &ToolRegistry, tool: &Tool) -> bool {
    registry.get(tool.name()).is_some_and(|there| there.same(tool))
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
        // Nor does one that is over take a turn from its successor.
        let old = sessions.begin(&identity);
        sessions.forget(&identity);
        let new = sessions.begin(&identity);
        sessions.leave(&identity, &old);
        assert_eq!(known(), 1);
        sessions.leave(&identity, &new);
        assert_eq!(known(), 0);
    }
}
