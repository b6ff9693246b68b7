//! `toolcrib skills`: lists the skills of a project, installs or removes one.

use serde_json::json;
use toolcrib_core::CancellationToken;
use toolcrib_project::InstallError;

use crate::{
    args::{GlobalArgs, OfflineArgs, SkillsCommand},
    exit::{self, Exit},
    output::{self, SkillsJson},
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, blocking, load},
        own_edit::OwnEdit,
    },
};

pub(super) async fn skills(
    global: &GlobalArgs,
    look: OfflineArgs,
    command: Option<SkillsCommand>,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let command = command.unwrap_or(SkillsCommand::List(look));
    let purpose = match &command {
        SkillsCommand::List(own) => {
            Purpose::Look(OfflineArgs { offline: look.offline || own.offline })
        }
        // They write into the project.
        SkillsCommand::Install { .. } | SkillsCommand::Remove { .. } => Purpose::Ask,
    };
    let project = load(global, purpose, ChosenModel::default(), &cancellation).await?;
    match command {
        SkillsCommand::List(_) => {
            // Skill files are searched on disk.
            let listed = blocking(move || SkillsJson::of(&project)).await?;
            if global.json {
                output::json(&listed);
            } else {
                output::skills(&listed, global.quiet, global.verbose);
            }
        }
        SkillsCommand::Install { file, force } => {
            // An installation that has begun is finished: the skill is installed as a whole, or not
            // at all.
            let work = move || {
                let edit = OwnEdit::of(project.root(), &cancellation);
                let installed = project.install_skill(&file, force)?;
                edit.trust();
                Ok::<_, InstallError>(installed)
            };
            let installed = blocking(work).await??;
            if global.json {
                output::json(&output::installed_json(&installed));
            } else {
                output::skill_installed(&installed, global.quiet);
            }
        }
        SkillsCommand::Remove { skill } => {
            let id = skill.clone();
            let work = move || {
                let edit = OwnEdit::of(project.root(), &cancellation);
                let folder = project.remove_skill(&id)?;
                edit.trust();
                Ok::<_, InstallError>(folder)
            };
            let folder = blocking(work).await??;
            if global.json {
                output::json(&json!({ "id": skill, "folder": folder.to_string_lossy() }));
            } else {
                output::removed(&skill, &folder);
            }
        }
    }
    Ok(exit::FINE)
}
