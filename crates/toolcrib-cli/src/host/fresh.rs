//! Evaluates the work of `--fresh` before databases are replaced: with the new databases in memory,
//! and without starting programs or opening connections.

use toolcrib_core::CancellationToken;
use toolcrib_project::Project;

use crate::{
    args::{FreshArgs, GlobalArgs},
    problem::Problem,
    project::load::{ChosenModel, Purpose, with_project},
};

/// Runs a function on the project with its databases as they would be recreated, if `--fresh` is
/// given.
pub(crate) async fn judge<T: Default>(
    global: &GlobalArgs,
    fresh: FreshArgs,
    model: &ChosenModel,
    cancellation: &CancellationToken,
    work: impl AsyncFnOnce(&Project) -> Result<T, Problem>,
) -> Result<T, Problem> {
    if !fresh.fresh {
        return Ok(T::default());
    }
    with_project(global, Purpose::Judge, model.clone(), cancellation, work).await
}
