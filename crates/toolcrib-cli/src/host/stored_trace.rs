//! A stored run with its session.

use std::{path::PathBuf, sync::Arc};

use toolcrib_core::{SessionStoreError, Store, StoredSession};
use toolcrib_project::{Project, Sessions};
use toolcrib_store::SqliteStore;

use super::{
    gateway_calls,
    stored::{on_store, unknown},
};
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

/// Where runs are stored: those of agents in the sessions, calls of a gateway apart.
pub(crate) enum StoredRuns {
    Sessions(Sessions),
    Gateway(PathBuf),
}

impl StoredRuns {
    pub(crate) fn of(project: &Project, gateway: bool) -> Self {
        match gateway {
            true => Self::Gateway(gateway_calls::file(project)),
            false => Self::Sessions(project.sessions().clone()),
        }
    }

    /// The store; `None` if nothing was stored. Blocks.
    pub(crate) fn open(&self) -> Result<Option<Arc<dyn Store>>, SessionStoreError> {
        match self {
            Self::Sessions(sessions) => sessions.open_existing(),
            Self::Gateway(file) => {
                Ok(SqliteStore::open_existing(file)?.map(|store| Arc::new(store) as Arc<dyn Store>))
            }
        }
    }
}

/// A run of a name; without one, the last run.
pub(crate) async fn find(
    project: &Project,
    gateway: bool,
    run: Option<RunName>,
    whom: &IdentityArgs,
) -> Result<StoredTrace, Problem> {
    let (runs, owner) = (StoredRuns::of(project, gateway), whom.owner());
    let named = run.clone();
    let found = on_store(move || {
        let Some(store) = runs.open()? else {
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
        None => Err(Problem::usage(match gateway {
            true => {
                "no calls are stored for this principal and tenant; `toolcrib serve \
                     --store-calls` stores them"
            }
            false => "no runs are stored for this principal and tenant; `toolcrib run` stores one",
        })),
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
