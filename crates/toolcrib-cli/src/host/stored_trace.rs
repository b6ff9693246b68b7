//! A stored run with its session.

use toolcrib_core::StoredSession;
use toolcrib_project::Project;

use super::stored::{on_store, unknown};
use crate::{
    args::IdentityArgs,
    problem::Problem,
    trace::{RunName, Trace, trace},
};

/// A run with its session.
pub(crate) struct StoredTrace {
    pub(crate) session: StoredSession,
    pub(crate) trace: Trace,
}

/// A run of a name; without one, the last run.
pub(crate) async fn find(
    project: &Project,
    run: Option<RunName>,
    whom: &IdentityArgs,
) -> Result<StoredTrace, Problem> {
    let (sessions, owner) = (project.sessions().clone(), whom.owner());
    let named = run.clone();
    let found = on_store(move || {
        let Some(store) = sessions.open_existing()? else {
            return match named {
                Some(run) => Err(unknown(&run.session)),
                None => Ok(None),
            };
        };
        let (id, turn) = match named {
            Some(run) => {
                let info = store.find(&owner, &run.session)?;
                (info.id, run.turn.unwrap_or(info.turns))
            }
            None => match store.runs(&owner, 1)?.into_iter().next() {
                Some(last) => (last.session, last.turn.number),
                None => return Ok(None),
            },
        };
        let session = store.read(&owner, &id)?;
        let events = store.events(&owner, &id, turn)?;
        let trace = trace(&session, turn, events);
        Ok(Some((session, trace)))
    });
    match found.await? {
        None => Err(Problem::usage(
            "no runs are stored for this principal and tenant; `toolcrib run` stores one",
        )),
        Some((session, Some(trace))) => Ok(StoredTrace { session, trace }),
        Some((session, None)) => {
            let turns = session.turns.len();
            let session = run.map(|run| run.session).unwrap_or_default();
            Err(Problem::usage(format!(
                "the session `{session}` has no such turn; it has {turns}, from 1; \
                 `toolcrib runs` lists all"
            )))
        }
    }
}
