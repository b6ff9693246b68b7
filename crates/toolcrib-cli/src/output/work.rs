//! Submitted messages, workers, and sessions that are followed.

use std::{collections::HashSet, sync::Arc};

use serde::Serialize;
use serde_json::json;
use toolcrib_agent::RunOutcome;
use toolcrib_core::{SessionInfo, SessionStoreError, StoredSession, StoredTurn, TurnState};

use super::{
    lost,
    print::{note, say},
    sessions::{message, outcomes, turn_line},
    text::{BAD, DIM, GOOD, count, safe, safe_json},
};
use crate::args::GlobalArgs;

/// A value as one line of JSON Lines.
pub(crate) fn json_line(value: &impl Serialize) {
    match serde_json::to_string(value) {
        Ok(text) => say!("{}", safe_json(text)),
        Err(error) => lost("the result as JSON", error.into()),
    }
}

/// The session of a submitted message.
pub(crate) fn submitted(info: &SessionInfo, flags: &str, quiet: bool) {
    say!("{}", info.id);
    if !quiet {
        let messages = count(info.submitted, "message");
        note!("{DIM}{messages} waiting; `toolcrib follow {}{flags}` shows the run{DIM:#}", info.id);
    }
}

pub(crate) fn session_cancelled(id: &str, is_cancelled: bool, quiet: bool) {
    match is_cancelled {
        _ if quiet => {}
        true => say!("{GOOD}cancelled{GOOD:#} {id}"),
        false => say!("{id} has no run and no message to cancel"),
    }
}

pub(crate) fn worker_begins(concurrency: usize) {
    let most = count(u32::try_from(concurrency).unwrap_or(u32::MAX), "session");
    note!("{DIM}working on at most {most} at the same time; Ctrl-C ends it{DIM:#}");
}

/// A line about the end of a segment.
pub(crate) fn segment_ended(id: &str, outcome: &RunOutcome) {
    let iterations = count(outcome.iterations, "iteration");
    say!("{id}  {}  {DIM}{iterations}{DIM:#}", outcome.end_reason);
    if let Some(error) = &outcome.error {
        note!("{BAD}{id}{BAD:#}: {}", safe(&error.message));
    }
}

pub(crate) fn segment_failed(id: &str, problem: &str) {
    note!("{BAD}{id}{BAD:#}: {}", safe(problem));
}

pub(crate) fn segment_left(id: &str) {
    note!("{DIM}{id} is left to other workers{DIM:#}");
}

pub(crate) fn claim_failed(error: &SessionStoreError) {
    note!("{BAD}no session can be claimed{BAD:#}: {}", safe(&error.to_string()));
}

/// Prints what a session has more than at the last look.
pub(crate) struct Follower {
    /// The first turn.
    from: u32,
    /// The last turn whose beginning was printed, and the last whose end was.
    begun: u32,
    ended: u32,
    /// The number of messages of the session at the last look.
    messages: usize,
    /// The ids of calls that wait for approval.
    waiting: HashSet<Arc<str>>,
    json: bool,
    quiet: bool,
    verbose: bool,
}

impl Follower {
    /// Begins with a turn.
    pub(crate) fn new(from: u32, global: &GlobalArgs) -> Self {
        let GlobalArgs { json, quiet, verbose, .. } = *global;
        let (begun, ended, messages, waiting) = (0, 0, 0, HashSet::new());
        Self { from, begun, ended, messages, waiting, json, quiet, verbose }
    }

    /// Whether a turn is one of those that are followed.
    pub(crate) fn has_shown(&self, turn: u32) -> bool {
        turn >= self.from
    }

    /// Whether a call that waits was not told yet.
    pub(crate) fn is_new(&mut self, id: &Arc<str>) -> bool {
        self.waiting.insert(Arc::clone(id))
    }

    pub(crate) fn show(&mut self, session: &StoredSession) {
        let outcomes = outcomes(session);
        for turn in session.turns.iter().filter(|turn| turn.number >= self.from) {
            if turn.number > self.begun {
                self.begun = turn.number;
                self.turn(turn);
            }
            let new = session.messages.iter().skip(self.messages);
            for stored in new.filter(|stored| stored.turn == turn.number) {
                match self.json {
                    true => json_line(&json!({ "type": "message", "message": stored })),
                    false => message(&stored.message, &outcomes, self.verbose),
                }
            }
            if turn.number > self.ended
                && let TurnState::Ended { stopped, error } = &turn.state
            {
                self.ended = turn.number;
                self.end(turn, stopped, error.as_deref());
            }
        }
        self.messages = session.messages.len();
    }

    fn turn(&self, turn: &StoredTurn) {
        match self.json {
            true => json_line(&json!({ "type": "turn", "turn": turn })),
            false if self.quiet => {}
            false => turn_line(turn),
        }
    }

    fn end(&self, turn: &StoredTurn, stopped: &str, error: Option<&str>) {
        match (self.json, error) {
            (true, _) => json_line(&json!({ "type": "end", "turn": turn })),
            (false, Some(error)) => note!("{BAD}{}{BAD:#}: {}", safe(stopped), safe(error)),
            (false, None) if self.quiet => {}
            (false, None) => note!("{DIM}{}{DIM:#}", safe(stopped)),
        }
    }
}
