//! `toolcrib check`: the contents of a project, or all its errors.

use toolcrib_core::CancellationToken;

use super::{ChosenModel, Problem, Purpose, engine, load};
use crate::{
    args::{Global, Look},
    exit::{self, Exit},
    output::{self, CheckJson},
};

pub(super) async fn check(
    global: &Global,
    look: Look,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = load(global, Purpose::Check(look), ChosenModel::default(), &cancellation).await?;
    engine(&project)?;
    if !global.quiet && !global.json {
        output::warnings(project.program_warnings(), true);
    }
    if global.json {
        output::json(&CheckJson::from(&project));
    } else {
        output::project(&project, global.quiet, global.verbose);
    }
    Ok(exit::FINE)
}
