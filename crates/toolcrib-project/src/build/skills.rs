//! Skills, with their tools.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::ToolName;
use toolcrib_engine::{Skill, Skills, Step};

use super::names::{Names, is_declared};
use crate::{
    PROJECT_FILE,
    config::SkillsSection,
    root::Root,
    skills::{FolderFiles, SkillFile, SkillFolders, SkillStamp, folder_of},
};

/// The skills of a project.
pub(crate) fn build_skills(
    folders: SkillFolders,
    section: &SkillsSection,
    root: &Root,
    names: &Names,
    problems: &Problems,
) -> Skills {
    let SkillFolders { skills, stamps, .. } = folders;
    let folder = folder_of(section);
    let build = |file: SkillFile| {
        let stamp = stamps.get(&file.id).cloned().unwrap_or_default();
        build_skill(file, root, folder, &stamp, names, problems)
    };
    let skills = Skills::new(skills.into_iter().map(build).collect());
    let mut skills = skills.unwrap_or_else(|error| {
        problems.push(Diagnostic::error(&Spot::start_of(PROJECT_FILE), error.to_string()));
        Skills::default()
    });
    if let Some(focus) = section.focus {
        skills = skills.focus(focus);
    }
    if let Some(mode) = section.tools {
        skills = skills.tools_mode(mode);
    }
    skills
        .offer_list_skills(section.list_skills.unwrap_or_default())
        .offer_deactivate_skill(section.deactivate_skill.unwrap_or_default())
}

/// One skill, from its file among the skills in `folder`.
pub(crate) fn build_skill(
    file: SkillFile,
    root: &Root,
    folder: &str,
    stamp: &SkillStamp,
    names: &Names,
    problems: &Problems,
) -> Skill {
    warn_of_foreign_tools(&file.allowed_tools, names, problems);
    let tools = file.tools.iter().filter_map(|tool| resolve(tool, names, problems));
    let steps = file.steps.iter().filter_map(|step| {
        let tool = resolve(&step.name, names, problems)?;
        Some(Step { tool, note: step.remark.clone() })
    });
    let own = root.folder(&format!("{folder}/{}", file.id)).ok().filter(|_| stamp.has_files);
    let mut skill =
        Skill::new(file.id, file.description, file.body).tools(tools).steps(steps, file.on_skip);
    skill.tools_mode = file.tools_mode;
    match own {
        Some(own) => skill.files(Arc::new(FolderFiles::new(own))),
        None => skill,
    }
}

fn resolve(tool: &Located<Arc<str>>, names: &Names, problems: &Problems) -> Option<ToolName> {
    (names.is_remote(tool, problems) || is_declared(tool, "tool", &names.tools, problems))
        .then(|| ToolName::new(Arc::clone(&tool.value)).ok())
        .flatten()
}

/// `allowed-tools` is other hosts' word for what a skill may call; which tools belong to a skill
/// is said under `metadata`.
fn warn_of_foreign_tools(allowed: &[Located<Arc<str>>], names: &Names, problems: &Problems) {
    // Other hosts write arguments too: `Bash(git:*)`.
    let name = |tool: &Located<Arc<str>>| -> String {
        tool.value.split('(').next().unwrap_or_default().to_owned()
    };
    let is_foreign = |name: &String| {
        !names.is_of_a_server(name) && !names.tools.iter().any(|known| **known == **name)
    };
    if let Some((tool, foreign)) =
        allowed.iter().map(|tool| (tool, name(tool))).find(|(_, name)| is_foreign(name))
    {
        let message =
            format!("`allowed-tools` names `{foreign}`, which is no tool of this project");
        let help = "nothing acts on it; tools of a skill are named in `metadata.toolcrib-tools`";
        problems.push(Diagnostic::warning(&tool.at, message).help(help));
    }
}
