//! `toolcrib menu`: what the model would see.

use toolcrib_core::CancellationToken;
use toolcrib_engine::IterationError;
use toolcrib_project::Mode;

use super::{ChosenModel, Problem, engine, load, turn_options};
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
    let project = load(global, Mode::Inspect, ChosenModel::default(), &cancellation).await?;
    let options = turn_options(&project, &args.situation, cancellation)?;
    let mut turn =
        engine(&project)?.turn(options).map_err(|error| Problem::usage(error.to_string()))?;
    let iteration = turn.iteration().await.map_err(|error| match error {
        IterationError::Cancelled => Problem::cancelled(),
        error => Problem::failed("discovery_failed", error.to_string()),
    })?;
    if global.json {
        output::json(&MenuJson::from(&iteration));
    } else {
        output::menu(&iteration, args.why || global.verbose);
    }
    Ok(exit::FINE)
}
