//! Skills, with their tools.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::ToolName;
use toolcrib_engine::{Skill, Skills};

use super::names::{Names, is_declared};
use crate::{
    PROJECT_FILE,
    skills::{SkillFile, SkillFolders},
};

/// The skills of a project. `focus` is what the project file says of it, if anything.
pub(crate) fn build_skills(
    folders: SkillFolders,
    focus: Option<bool>,
    names: &Names,
    problems: &Problems,
) -> Skills {
    let build = |file: SkillFile| {
        warn_of_foreign_tools(&file.allowed_tools, names, problems);
        let tools = file.tools.iter().filter_map(|tool| resolve(tool, names, problems));
        Skill::new(file.id, file.description, file.body).tools(tools)
    };
    let skills = Skills::new(folders.skills.into_iter().map(build).collect());
    let skills = skills.unwrap_or_else(|error| {
        problems.push(Diagnostic::error(&Spot::start_of(PROJECT_FILE), error.to_string()));
        Skills::default()
    });
    match focus {
        Some(focus) => skills.focus(focus),
        None => skills,
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
