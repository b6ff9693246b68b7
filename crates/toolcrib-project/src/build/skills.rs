//! Skills, with their tools.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, suggest};
use toolcrib_core::ToolName;
use toolcrib_engine::{Skill, SkillStep, Skills};

use crate::{
    bind::{located::is_declared, names::Names, part::Part},
    file::SkillsSection,
    read::{
        root::Root,
        skills::{FolderFiles, SkillFile, SkillStamp, skill_file},
    },
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
pub(crate) fn build_skills(part: &Part, names: &Names, problems: &Problems) -> Vec<Skill> {
    let folder = part.skills.folder.as_deref().unwrap_or_default();
    let build = |file: &SkillFile| {
        let stamp = part.skills.stamps.get(&file.id).cloned().unwrap_or_default();
        let place =
            SkillPlace { plugin: part.plugin_id(), root: &part.root, folder, stamp: &stamp };
        build_skill(file, &place, names, problems)
    };
    part.skills.skills.iter().map(build).collect()
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
    file: &SkillFile,
    place: &SkillPlace<'_>,
    names: &Names,
    problems: &Problems,
) -> Skill {
    let allowed = AllowedTools::of(&file.allowed_tools, names, problems);
    let body = allowed.instructions(Arc::clone(&file.body));
    let tools: Vec<_> = match file.tools.is_empty() {
        true => allowed.tools,
        false => file.tools.iter().filter_map(|tool| resolve(tool, names, problems)).collect(),
    };
    let steps = file.steps.iter().filter_map(|step| {
        let tool = resolve(&step.name, names, problems)?;
        Some(SkillStep { tool, note: step.remark.clone() })
    });
    let origin = place.root.shown(&skill_file(place.folder, &file.id));
    let own = place.root.folder(&format!("{}/{}", place.folder, file.id)).ok();
    let own = own.filter(|_| place.stamp.has_files);
    let mut skill = Skill::new(file.id.clone(), Arc::clone(&file.description), body)
        .tools(tools)
        .steps(steps, file.on_skip);
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

/// The tools that `allowed-tools` names, and the names of those that this project does not have.
struct AllowedTools {
    tools: Vec<ToolName>,
    missing: Vec<String>,
}

/// Names of tools of other hosts, and of the built-in tools that do the same.
const OF_OTHER_HOSTS: [(&str, &str); 13] = [
    ("AskUserQuestion", "clarify"),
    ("Bash", "terminal"),
    ("Edit", "patch_file"),
    ("Glob", "list_files"),
    ("Grep", "search_files"),
    ("LS", "list_files"),
    ("MultiEdit", "patch_file"),
    ("Read", "read_file"),
    ("Task", "task"),
    ("TodoWrite", "todo_set"),
    ("WebFetch", "fetch_url"),
    ("WebSearch", "web_search"),
    ("Write", "write_file"),
];

impl AllowedTools {
    /// Each missing tool is a warning.
    fn of(allowed: &[Located<Arc<str>>], names: &Names, problems: &Problems) -> Self {
        let mut found = Self { tools: Vec::new(), missing: Vec::new() };
        let mut in_arguments = false;
        for named in allowed {
            // Other hosts also write arguments, with blanks: `Bash(git add:*)`.
            let was_in_arguments = in_arguments;
            in_arguments =
                (in_arguments || named.value.contains('(')) && !named.value.ends_with(')');
            if was_in_arguments {
                continue;
            }
            let word = named.value.split('(').next().unwrap_or_default();
            let same = OF_OTHER_HOSTS.iter().find(|(theirs, _)| *theirs == word);
            let tool = same.map_or(word, |(_, ours)| ours);
            let is_known =
                names.is_of_a_server(tool) || names.tools.iter().any(|known| **known == *tool);
            match ToolName::new(tool).ok().filter(|_| is_known) {
                Some(tool) if found.tools.contains(&tool) => {}
                Some(tool) => found.tools.push(tool),
                None if found.missing.iter().any(|missing| missing == word) => {}
                None => {
                    let message = format!(
                        "`allowed-tools` names `{word}`, and this project has no such tool"
                    );
                    let help = match same {
                        Some((_, ours)) => format!("switch on a toolset with `{ours}`"),
                        None => "the skill says so to the model".to_owned(),
                    };
                    problems.push(Diagnostic::warning(&named.at, message).help(help));
                    found.missing.push(word.to_owned());
                }
            }
        }
        found
    }

    /// The instructions, with a sentence on the missing tools.
    fn instructions(&self, body: Arc<str>) -> Arc<str> {
        if self.missing.is_empty() {
            return body;
        }
        let missing = suggest::quoted(self.missing.iter().map(String::as_str));
        format!("{body}\n\n(These tools of the skill are not available here: {missing}.)").into()
    }
}
