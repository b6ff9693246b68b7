//! `toolcrib menu`: the tools that the model would see.

use toolcrib_core::{CancellationToken, Identity};
use toolcrib_engine::{Engine, Iteration, Turn};
use toolcrib_project::Project;

use super::{ChosenModel, Problem, Purpose, engine, turn_options, with_project};
use crate::{
    args::{GlobalArgs, MenuArgs, OfflineArgs, Situation},
    exit::{self, Exit},
    output::{self, MenuJson},
};

pub(super) async fn menu(
    global: &GlobalArgs,
    args: MenuArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    with_iteration(
        global,
        args.look,
        &args.situation,
        cancellation,
        async |project, _, iteration| {
            output::unmatched(project);
            if global.json {
                output::json(&MenuJson::new(iteration, project, args.why));
            } else {
                output::menu(iteration, args.why || global.verbose, global.verbose);
            }
            Ok(exit::FINE)
        },
    )
    .await
}

/// Shows the next iteration of a turn in this situation.
pub(super) async fn with_iteration(
    global: &GlobalArgs,
    look: OfflineArgs,
    situation: &Situation,
    cancellation: CancellationToken,
    show: impl AsyncFnOnce(&Project, &Identity, &Iteration) -> Result<Exit, Problem>,
) -> Result<Exit, Problem> {
    let (model, token) = (ChosenModel::default(), cancellation.clone());
    with_project(global, Purpose::Look(look), model, &token, async |project| {
        let mut turn = turn_of(project, &engine(project)?, situation, cancellation)?;
        let iteration = turn.iteration().await?;
        show(project, turn.identity(), &iteration).await
    })
    .await
}

/// A turn in this situation, with an engine of the project.
pub(super) fn turn_of(
    project: &Project,
    engine: &Engine,
    situation: &Situation,
    cancellation: CancellationToken,
) -> Result<Turn, Problem> {
    let options = turn_options(project, situation, cancellation)?;
    Ok(engine.turn(options)?)
}
