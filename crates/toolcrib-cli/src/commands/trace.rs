//! `toolcrib runs` and `toolcrib trace`: the stored runs of a project.

use std::io;

use toolcrib_core::{CancellationToken, StoredRun};

use crate::{
    args::{GlobalArgs, ListArgs, RunsArgs, TraceArgs},
    exit::{self, Exit},
    host::{
        stored::{inspected, on_store, write_new},
        stored_trace::{StoredRuns, find},
    },
    output::{self, RunsJson},
    problem::Problem,
};

pub(super) async fn runs(
    global: &GlobalArgs,
    args: RunsArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let RunsArgs { gateway, list: ListArgs { limit, whom } } = args;
    let project = inspected(global, &cancellation).await?;
    let (runs_of, owner) = (StoredRuns::of(&project, gateway), whom.owner());
    let runs: Vec<StoredRun> = on_store(move || match runs_of.open()? {
        Some(store) => store.runs(&owner, limit),
        None => Ok(Vec::new()),
    })
    .await?;
    if global.json {
        output::json(&RunsJson { runs: &runs });
    } else {
        output::runs(&runs, limit, gateway, global.quiet);
    }
    Ok(exit::FINE)
}

pub(super) async fn show_trace(
    global: &GlobalArgs,
    args: TraceArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = inspected(global, &cancellation).await?;
    let traced = find(&project, args.gateway, args.run, &args.whom).await?.trace;
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
