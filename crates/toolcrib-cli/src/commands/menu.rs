//! `toolcrib menu`: what the model would see.

use toolcrib_core::CancellationToken;
use toolcrib_engine::{Iteration, IterationError, Turn};
use toolcrib_project::Project;

use super::{ChosenModel, Problem, Purpose, engine, turn_options, with_project};
use crate::{
    args::{Global, MenuArgs, Situation},
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
    with_project(global, Purpose::Look(args.look), model, &token, async |project| {
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
    let mut turn = turn(project, &args.situation, cancellation)?;
    let iteration = look(&mut turn).await?;
    output::unmatched(project);
    if global.json {
        output::json(&MenuJson::new(&iteration, args.why));
    } else {
        output::menu(&iteration, args.why || global.verbose);
    }
    Ok(exit::FINE)
}

/// A turn in this situation.
pub(super) fn turn(
    project: &Project,
    situation: &Situation,
    cancellation: CancellationToken,
) -> Result<Turn, Problem> {
    let options = turn_options(project, situation, cancellation)?;
    engine(project)?.turn(options).map_err(|error| Problem::usage(error.to_string()))
}

/// What the model would see next.
pub(super) async fn look(turn: &mut Turn) -> Result<Iteration, Problem> {
    turn.iteration().await.map_err(not_begun)
}

/// Why an iteration did not begin.
pub(super) fn not_begun(error: IterationError) -> Problem {
    match error {
        IterationError::Cancelled => Problem::cancelled(),
        IterationError::Skill(error) => Problem::usage(error.to_string()),
        error => Problem::failed("discovery_failed", error.to_string()),
    }
}
