//! The list of skills, and the installation of one.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib_core::{Event, EventKind};
use toolcrib_engine::{OnSkip, Skill};
use toolcrib_project::{InstalledSkill, Project};

use super::{
    print::{note, say},
    text::{DIM, GOOD, STRONG, WARN, count, of_plugin, one_line, safe, shown},
};

/// The length limit of a description on a line, in characters.
const SHORT: usize = 100;

/// The output of `skills --json`.
#[derive(Serialize)]
pub(crate) struct SkillsJson {
    skills: Vec<SkillJson>,
}

#[derive(Serialize)]
struct SkillJson {
    id: String,
    plugin: Option<String>,
    description: String,
    tools_mode: &'static str,
    tools: Vec<String>,
    steps: Vec<StepJson>,
    /// Absent without steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_skip: Option<&'static str>,
    files: Vec<String>,
    body_chars: usize,
}

#[derive(Serialize)]
struct StepJson {
    tool: String,
    note: Option<String>,
}

impl SkillsJson {
    /// Blocking: searches for files.
    pub(crate) fn of(project: &Project) -> Self {
        let all = project.skills();
        let one = |skill: &Skill| SkillJson {
            id: skill.id.to_string(),
            plugin: skill.plugin.as_ref().map(ToString::to_string),
            description: skill.description.to_string(),
            tools_mode: all.mode_of(skill).as_str(),
            tools: skill.tools.iter().map(ToString::to_string).collect(),
            steps: skill
                .all_steps()
                .iter()
                .map(|step| StepJson {
                    tool: step.tool.to_string(),
                    note: step.note.as_ref().map(ToString::to_string),
                })
                .collect(),
            on_skip: skill.on_skip().map(|on_skip| match on_skip {
                OnSkip::Hold => "hold",
                _ => "advance",
            }),
            // A failed listing is tried again when a model requests it.
            files: skill.files.as_ref().and_then(|files| files.list().ok()).unwrap_or_default(),
            body_chars: skill.body.chars().count(),
        };
        Self { skills: all.iter().map(one).collect() }
    }
}

/// Prints the list.
pub(crate) fn skills(listed: &SkillsJson, quiet: bool, verbose: bool) {
    for skill in &listed.skills {
        if quiet {
            say!("{}", safe(&skill.id));
            continue;
        }
        let description =
            if verbose { skill.description.clone() } else { one_line(&skill.description, SHORT) };
        let description = safe(&description);
        let of = of_plugin(skill.plugin.as_deref());
        say!("{STRONG}{}{STRONG:#}{of}  {description}", safe(&skill.id));
        if !skill.tools.is_empty() {
            say!(
                "  {DIM}tools{DIM:#} {} {DIM}({}){DIM:#}",
                skill.tools.join(", "),
                skill.tools_mode
            );
        }
        if let Some(on_skip) = skill.on_skip {
            let steps: Vec<_> = skill.steps.iter().map(|step| &*step.tool).collect();
            say!("  {DIM}steps{DIM:#} {} {DIM}(skip: {on_skip}){DIM:#}", steps.join(" → "));
        }
        if !skill.files.is_empty() {
            let files: Vec<_> = skill.files.iter().map(|file| safe(file)).collect();
            say!("  {DIM}files{DIM:#} {}", files.join(", "));
        }
    }
    if listed.skills.is_empty() && !quiet {
        note!("{DIM}this project has no skills; a skill is a folder with a SKILL.md{DIM:#}");
    }
}

/// Tells an operator that a changed skill is invalid.
pub(crate) fn reload_failed(event: &Event) {
    if let EventKind::SkillReloadFailed { problem } = &event.kind {
        note!(
            "{WARN}warning{WARN:#}: a changed skill is invalid; its previous version stays in \
            use: {}",
            safe(problem)
        );
    }
}

/// The output of `skills install --json`.
pub(crate) fn installed_json(skill: &InstalledSkill) -> Value {
    let files = skill.files.iter().map(|(path, bytes)| json!({ "path": path, "bytes": bytes }));
    json!({
        "id": skill.id,
        "description": skill.description,
        "folder": skill.folder.to_string_lossy(),
        "files": files.collect::<Vec<_>>(),
        "replaced": skill.replaced,
        "warnings": skill.warnings.iter().collect::<Vec<_>>(),
    })
}

/// Prints the installed skill.
pub(crate) fn installed(skill: &InstalledSkill, quiet: bool) {
    let what = if skill.replaced { "replaced" } else { "installed" };
    say!("{GOOD}{what}{GOOD:#} {}  {}", safe(&skill.id), shown(&skill.folder));
    if quiet {
        return;
    }
    say!("  {}", safe(&one_line(&skill.description, SHORT)));
    for (path, bytes) in &skill.files {
        say!("  {} {DIM}{}{DIM:#}", safe(path), count(*bytes, "byte"));
    }
    super::warnings::warnings(&skill.warnings, true);
    note!("{DIM}a model that activates it follows its instructions: read it first{DIM:#}");
}

/// Prints the removed skill.
pub(crate) fn removed(id: &str, folder: &Path) {
    say!("{GOOD}removed{GOOD:#} {}  {}", safe(id), shown(folder));
}
