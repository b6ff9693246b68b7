//! The next iteration of a turn, as a command shows it.

use toolcrib_core::{CancellationToken, Glob, Identity, ToolName};
use toolcrib_engine::{Engine, Explanation, Iteration, Turn, Withheld};
use toolcrib_project::Project;

use crate::{
    args::{GlobalArgs, OfflineArgs, Situation},
    exit::Exit,
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, with_project},
        turn::{engine, turn_options},
    },
};

/// Shows the next iteration of a turn in this situation.
pub(crate) async fn with_iteration(
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
pub(crate) fn turn_of(
    project: &Project,
    engine: &Engine,
    situation: &Situation,
    cancellation: CancellationToken,
) -> Result<Turn, Problem> {
    let options = turn_options(project, situation, cancellation)?;
    Ok(engine.turn(options)?)
}

/// For an unknown name: why the source is unavailable that may have the tool.
pub(crate) fn why(iteration: &Iteration, tool: &str) -> Option<Explanation> {
    iteration.why(tool).or_else(|| iteration.why(withheld_name(iteration.withheld(), tool)?))
}

/// The name under which a tool is withheld: its own, else its omitted source's.
pub(crate) fn withheld_name<'a>(withheld: &'a Withheld, tool: &str) -> Option<&'a str> {
    let is_source = |name: &&str| name.contains('*') && Glob::new(*name).matches(tool);
    withheld.names().find(|name| *name == tool).or_else(|| withheld.names().find(is_source))
}

/// An operator may see all known names, unlike a model.
pub(crate) fn unknown(iteration: &Iteration, tool: &str) -> Problem {
    let menu = iteration.menu();
    let offered = menu.names().chain(menu.deferred().iter().map(|tool| tool.name()));
    let known = offered.map(ToolName::as_str).chain(iteration.withheld().names());
    Problem::unknown("tool", tool, known)
}
