//! `toolcrib check`: what is there, or all that is wrong.

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
    let project = load(global, Purpose::Look(look), ChosenModel::default(), &cancellation).await?;
    engine(&project)?;
    if global.json {
        output::json(&CheckJson::from(&project));
    } else {
        output::project(&project, global.quiet, global.verbose);
    }
    Ok(exit::FINE)
}
