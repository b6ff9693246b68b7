//! `toolcrib menu`: the tools that the model would see.

use toolcrib_core::CancellationToken;
use toolcrib_engine::{Engine, Iteration, Turn};
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
        output::json(&MenuJson::new(&iteration, project, args.why));
    } else {
        output::menu(&iteration, args.why || global.verbose, global.verbose);
    }
    Ok(exit::FINE)
}

/// A turn in this situation.
pub(super) fn turn(
    project: &Project,
    situation: &Situation,
    cancellation: CancellationToken,
) -> Result<Turn, Problem> {
    turn_of(project, &engine(project)?, situation, cancellation)
}

/// The same as [`turn`], with an engine of the project.
pub(super) fn turn_of(
    project: &Project,
    engine: &Engine,
    situation: &Situation,
    cancellation: CancellationToken,
) -> Result<Turn, Problem> {
    let options = turn_options(project, situation, cancellation)?;
    Ok(engine.turn(options)?)
}

/// The next iteration's menu.
pub(super) async fn look(turn: &mut Turn) -> Result<Iteration, Problem> {
    Ok(turn.iteration().await?)
}
