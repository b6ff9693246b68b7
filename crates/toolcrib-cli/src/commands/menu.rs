//! `toolcrib menu`: what the model would see.

use toolcrib_core::CancellationToken;
use toolcrib_engine::IterationError;
use toolcrib_project::{Mode, Project};

use super::{ChosenModel, Problem, engine, turn_options, with_project};
use crate::{
    args::{Global, MenuArgs},
    exit::{self, Exit},
    output::{self, MenuJson},
};

pub(super) async fn menu(
    global: &Global,
    args: MenuArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let model = ChosenModel::default();
    let token = cancellation.clone();
    with_project(global, Mode::Inspect, model, &token, async |project| {
        show(global, &args, project, cancellation).await
    })
    .await
}

async fn show(
    global: &Global,
    args: &MenuArgs,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let options = turn_options(project, &args.situation, cancellation)?;
    let mut turn =
        engine(project)?.turn(options).map_err(|error| Problem::usage(error.to_string()))?;
    let iteration = turn.iteration().await.map_err(|error| cannot_list(&error))?;
    if global.json {
        output::json(&MenuJson::new(&iteration, args.why));
    } else {
        output::menu(&iteration, args.why || global.verbose);
    }
    Ok(exit::FINE)
}

/// There is no menu.
pub(super) fn cannot_list(error: &IterationError) -> Problem {
    match error {
        IterationError::Cancelled => Problem::cancelled(),
        error => Problem::failed("discovery_failed", error.to_string()),
    }
}
