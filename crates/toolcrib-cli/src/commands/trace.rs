//! `toolcrib runs` and `toolcrib trace`: the stored runs of a project.

use std::io;

use toolcrib_core::{CancellationToken, SessionStore, StoredRun, StoredSession};
use toolcrib_project::Project;

use super::{
    Problem,
    sessions::{inspected, on_store, unknown, write_new},
};
use crate::{
    args::{GlobalArgs, IdentityArgs, ListArgs, TraceArgs},
    exit::{self, Exit},
    output::{self, RunsJson},
    trace::{RunName, Trace, trace},
};

pub(super) async fn runs(
    global: &GlobalArgs,
    args: ListArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let ListArgs { limit, whom } = args;
    let project = inspected(global, &cancellation).await?;
    let (sessions, owner) = (project.sessions().clone(), whom.owner());
    let runs: Vec<StoredRun> = on_store(move || match sessions.open_existing()? {
        Some(store) => store.runs(&owner, limit),
        None => Ok(Vec::new()),
    })
    .await?;
    if global.json {
        output::json(&RunsJson { runs: &runs });
    } else {
        output::runs(&runs, limit, global.quiet);
    }
    Ok(exit::FINE)
}

pub(super) async fn show_trace(
    global: &GlobalArgs,
    args: TraceArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = inspected(global, &cancellation).await?;
    let traced = find(&project, args.run, &args.whom).await?.trace;
    match args.html {
        Some(path) => {
            let page = output::trace_page(&traced).map_err(io::Error::other);
            page.and_then(|page| write_new(&path, &page))
                .map_err(|error| Problem::usage(format!("`--html`: {error}")))?;
            if global.json {
                output::json(&traced);
            } else {
                output::exported_to(&path, global.quiet);
            }
        }
        None if global.json => output::json(&traced),
        None => output::trace(&traced, global.verbose),
    }
    Ok(exit::FINE)
}

/// A run with its session.
pub(super) struct StoredTrace {
    pub(super) session: StoredSession,
    pub(super) trace: Trace,
}

/// A run of a name; without one, the last run.
pub(super) async fn find(
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
