//! Skills, with their tools.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems};
use toolcrib_core::ToolName;
use toolcrib_engine::{Skill, SkillStep, Skills};

use super::{located::is_declared, names::Names, part::Part};
use crate::{
    config::SkillsSection,
    root::Root,
    skills::{FolderFiles, SkillFile, SkillStamp, skill_file},
};

/// The location of a skill: the root, the folder, and its content.
pub(crate) struct SkillPlace<'a> {
    /// Its plugin, if it is not the project's own.
    pub(crate) plugin: Option<&'a Arc<str>>,
    pub(crate) root: &'a Root,
    pub(crate) folder: &'a str,
    pub(crate) stamp: &'a SkillStamp,
}

/// The skills of a part. Their names are unique, like those of folders.
pub(crate) fn build_skills(part: &mut Part, names: &Names, problems: &Problems) -> Vec<Skill> {
    let files = std::mem::take(&mut part.skills.skills);
    let folder = part.skills.folder.as_deref().unwrap_or_default();
    let build = |file: SkillFile| {
        let stamp = part.skills.stamps.get(&file.id).cloned().unwrap_or_default();
        let place =
            SkillPlace { plugin: part.plugin_id(), root: &part.root, folder, stamp: &stamp };
        build_skill(file, &place, names, problems)
    };
    files.into_iter().map(build).collect()
}

/// The settings for all skills of a project.
pub(crate) fn for_all_skills(section: &SkillsSection) -> Skills {
    let mut skills = Skills::default();
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

/// One skill, from its file.
pub(crate) fn build_skill(
    file: SkillFile,
    place: &SkillPlace<'_>,
    names: &Names,
    problems: &Problems,
) -> Skill {
    warn_of_foreign_tools(&file.allowed_tools, names, problems);
    let tools = file.tools.iter().filter_map(|tool| resolve(tool, names, problems));
    let steps = file.steps.iter().filter_map(|step| {
        let tool = resolve(&step.name, names, problems)?;
        Some(SkillStep { tool, note: step.remark.clone() })
    });
    let origin = place.root.shown(&skill_file(place.folder, &file.id));
    let own = place.root.folder(&format!("{}/{}", place.folder, file.id)).ok();
    let own = own.filter(|_| place.stamp.has_files);
    let mut skill =
        Skill::new(file.id, file.description, file.body).tools(tools).steps(steps, file.on_skip);
    skill.tools_mode = file.tools_mode;
    skill.plugin = place.plugin.cloned();
    skill.origin = Some(origin);
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

/// `allowed-tools` is other hosts' key for the tools that a skill may call; Toolcrib reads the
/// tools of a skill from `metadata`.
fn warn_of_foreign_tools(allowed: &[Located<Arc<str>>], names: &Names, problems: &Problems) {
    // Other hosts also write arguments: `Bash(git:*)`.
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
            format!("`allowed-tools` names `{foreign}`, which is not a tool of this project");
        let help = "it has no effect; tools of a skill are named in `metadata.toolcrib-tools`";
        problems.push(Diagnostic::warning(&tool.at, message).help(help));
    }
}
