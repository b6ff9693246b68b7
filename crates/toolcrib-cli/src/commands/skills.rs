//! `toolcrib skills`: lists the skills of a project, installs or removes one.

use toolcrib_core::CancellationToken;

use super::{ChosenModel, Problem, Purpose, load};
use crate::{
    args::{Global, Look, SkillsCommand},
    exit::{self, Exit},
    output::{self, InstalledJson, RemovedJson, SkillsJson},
};

pub(super) async fn skills(
    global: &Global,
    look: Look,
    command: Option<SkillsCommand>,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let command = command.unwrap_or(SkillsCommand::List(look));
    let purpose = match &command {
        SkillsCommand::List(own) => Purpose::Look(Look { offline: look.offline || own.offline }),
        // They write into the project.
        SkillsCommand::Install { .. } | SkillsCommand::Remove { .. } => Purpose::Ask,
    };
    let project = load(global, purpose, ChosenModel::default(), &cancellation).await?;
    match command {
        SkillsCommand::List(_) => {
            // Skill files are searched on disk.
            let listed = on_disk(move || SkillsJson::of(&project)).await?;
            if global.json {
                output::json(&listed);
            } else {
                output::skills(&listed, global.quiet, global.verbose);
            }
        }
        SkillsCommand::Install { file, force } => {
            // An installation that has begun is finished: the skill is installed as a whole, or not
            // at all.
            let installed = on_disk(move || project.install_skill(&file, force)).await??;
            if global.json {
                output::json(&InstalledJson::from(&installed));
            } else {
                output::skill_installed(&installed, global.quiet);
            }
        }
        SkillsCommand::Remove { skill } => {
            let id = skill.clone();
            let folder = on_disk(move || project.remove_skill(&id)).await??;
            if global.json {
                output::json(&RemovedJson::new(&skill, &folder));
            } else {
                output::removed(&skill, &folder);
            }
        }
    }
    Ok(exit::FINE)
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Problem::failed("internal", error.to_string()))
}
