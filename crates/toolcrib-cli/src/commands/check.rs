//! `toolcrib check`: what is there, or all that is wrong.

use toolcrib_core::CancellationToken;
use toolcrib_project::Mode;

use super::{ChosenModel, Problem, engine, load};
use crate::{
    args::Global,
    exit::{self, Exit},
    output::{self, CheckJson},
};

pub(super) async fn check(
    global: &Global,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = load(global, Mode::Inspect, ChosenModel::default(), &cancellation).await?;
    engine(&project)?;
    if global.json {
        output::json(&CheckJson::from(&project));
    } else {
        output::project(&project, global.quiet, global.verbose);
    }
    Ok(exit::FINE)
}
