//! `toolcrib check`: the contents of a project, or all its errors.

use toolcrib_core::{CancellationToken, Menu};

use super::lint::of_skills;
use crate::{
    args::{GlobalArgs, OfflineArgs},
    exit::{self, Exit},
    output,
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, load},
        turn::engine,
    },
};

pub(super) async fn check(
    global: &GlobalArgs,
    look: OfflineArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = load(global, Purpose::Check(look), ChosenModel::default(), &cancellation).await?;
    engine(&project)?;
    if !global.quiet && !global.json {
        output::warnings(project.program_warnings(), true);
    }
    if global.json {
        output::json(&output::checked(&project));
    } else {
        let of_skills = of_skills(&project).await?;
        let tools = project.tools().iter().chain(&of_skills).cloned().collect();
        let menu = Menu::new(tools).map_err(|error| Problem::invalid(error.to_string()))?;
        output::project(&project, &menu, global.quiet, global.verbose);
    }
    Ok(exit::FINE)
}
