//! The names that a project declares, broken parts included: a broken tool is reported once, and
//! not again by each section that names it.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, suggest};
use toolcrib_engine::READ_SKILL;

use crate::{config::ProjectFile, skills::SkillFolders};

/// The names that a project declares.
#[derive(Debug)]
pub(crate) struct Names {
    /// The tools, without `read_skill`.
    pub(crate) tools: Vec<Arc<str>>,
    pub(crate) toolsets: Vec<Arc<str>>,
    pub(crate) skills: Vec<Arc<str>>,
    pub(crate) roles: Vec<Arc<str>>,
    pub(crate) secrets: Vec<Arc<str>>,
    /// The models that have a name of the project's own.
    pub(crate) models: Vec<Arc<str>>,
}

impl Names {
    pub(crate) fn of(file: &ProjectFile, skills: &SkillFolders) -> Self {
        let mut toolsets: Vec<_> =
            file.tools.iter().filter_map(|tool| tool.toolset.clone()).collect();
        toolsets.sort();
        toolsets.dedup();
        Self {
            tools: file
                .tools
                .iter()
                .filter_map(|tool| tool.name.as_ref())
                .map(|name| name.value.as_str().into())
                .collect(),
            toolsets,
            skills: skills.names.clone(),
            roles: file
                .policy
                .roles
                .iter()
                .filter_map(|role| role.name.as_ref())
                .map(|name| Arc::clone(&name.value))
                .collect(),
            secrets: file.secrets.iter().map(|secret| Arc::clone(&secret.name.value)).collect(),
            models: file.models.iter().map(|model| Arc::clone(&model.name.value)).collect(),
        }
    }

    /// The tools, with `read_skill` if it will be offered.
    pub(crate) fn tools_and_read_skill(&self) -> Vec<Arc<str>> {
        let read_skill = (!self.skills.is_empty()).then(|| READ_SKILL.into());
        self.tools.iter().cloned().chain(read_skill).collect()
    }
}

/// Whether a name is among those declared; if not, that is recorded. `kind` says what it names,
/// in the singular.
pub(crate) fn is_declared(
    name: &Located<Arc<str>>,
    kind: &str,
    declared: &[Arc<str>],
    problems: &Problems,
) -> bool {
    let known = declared.contains(&name.value);
    if !known {
        let help = suggest::help(&name.value, &format!("{kind}s"), declared.iter().map(|n| &**n));
        problems.push(
            Diagnostic::error(&name.at, format!("there is no {kind} `{}`", name.value)).help(help),
        );
    }
    known
}
