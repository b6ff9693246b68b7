//! One `SKILL.md`.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Severity, Spot, split_frontmatter, suggest};
use toolcrib_core::SkillId;
use toolcrib_engine::{OnSkip, ToolsMode};

use super::frontmatter::{Keys, RemarkedName};
use crate::file::tools_mode;

/// The longest id of a skill, in characters.
const MAX_ID: usize = 64;
/// The longest description without a warning, in characters: every description is part of every
/// model request.
const LONG_DESCRIPTION: usize = 1024;
/// The prefix of Toolcrib's keys.
const OURS: &str = "toolcrib";
/// Toolcrib's keys in `metadata`.
const KEYS: [&str; 4] =
    ["toolcrib-tools", "toolcrib-tools-mode", "toolcrib-steps", "toolcrib-on-skip"];

/// A skill as in its file. Whether the tools exist is checked later.
#[derive(Debug)]
pub(crate) struct SkillFile {
    /// The folder's name: unlike the `name` in the file it always exists and is unique.
    pub(crate) id: SkillId,
    pub(crate) description: Arc<str>,
    pub(crate) body: Arc<str>,
    /// `metadata.toolcrib-tools`, without duplicates.
    pub(crate) tools: Vec<Located<Arc<str>>>,
    /// `metadata.toolcrib-tools-mode`.
    pub(crate) tools_mode: Option<ToolsMode>,
    /// `metadata.toolcrib-steps`: tools with remarks.
    pub(crate) steps: Vec<RemarkedName>,
    /// `metadata.toolcrib-on-skip`.
    pub(crate) on_skip: OnSkip,
    /// `allowed-tools`: the tools of a skill that names none in `metadata`.
    pub(crate) allowed_tools: Vec<Located<Arc<str>>>,
}

impl SkillFile {
    /// Reads the file of the skill in a folder of that name. `None` if a part was refused, which is
    /// recorded.
    pub(crate) fn read(
        file: &Arc<str>,
        folder: &str,
        text: &str,
        problems: &Problems,
    ) -> Option<Self> {
        let id = skill_id(folder, file, problems);
        let Some((frontmatter, body)) = split_frontmatter(text) else {
            problems.push(
                Diagnostic::error(
                    &Spot::start_of(Arc::clone(file)),
                    "the file does not begin with frontmatter between two lines of `---`",
                )
                .help(format!(
                    "begin it with: --- / name: {folder} / description: Its purpose. / ---"
                )),
            );
            return None;
        };
        let mut keys = Keys::of_file(frontmatter, file, problems)?;
        name(&mut keys, folder);
        let description = keys
            .required_text("description", "What it is for, and when to use it.")
            .map(|text| description(&text, problems));
        for passed in ["license", "compatibility"] {
            keys.pass(passed);
        }
        let is_separator = |c: char| c.is_whitespace() || c == ',';
        let allowed_tools =
            keys.names("allowed-tools", is_separator, Severity::Warning).unwrap_or_default();
        let ours = keys.map("metadata").map(metadata).unwrap_or_default();
        for (key, near) in keys.unknown() {
            problems.push(if key.value.starts_with(OURS) {
                Diagnostic::error(&key.at, format!("`{}` belongs under `metadata`", key.value))
                    .help("write below `metadata:`, indented: toolcrib-tools: NAME NAME")
            } else {
                let message = format!("unknown key `{}` in the frontmatter", key.value);
                Diagnostic::warning(&key.at, message)
                    .help(near.map(|near| format!("did you mean `{near}`?")))
            });
        }
        Some(Self {
            id: id?,
            description: description?,
            body: body.trim().into(),
            tools: ours.tools,
            tools_mode: ours.tools_mode,
            steps: ours.steps,
            on_skip: ours.on_skip,
            allowed_tools,
        })
    }
}

/// The values of Toolcrib's keys in `metadata`.
#[derive(Default)]
struct SkillMetadata {
    tools: Vec<Located<Arc<str>>>,
    tools_mode: Option<ToolsMode>,
    steps: Vec<RemarkedName>,
    on_skip: OnSkip,
}

/// Reads Toolcrib's keys in `metadata`. Other keys belong to other hosts.
fn metadata(mut keys: Keys<'_>) -> SkillMetadata {
    let listed =
        keys.names("toolcrib-tools", char::is_whitespace, Severity::Error).unwrap_or_default();
    let problems = keys.problems;
    let mut tools: Vec<Located<Arc<str>>> = Vec::with_capacity(listed.len());
    for tool in listed {
        if tools.iter().any(|earlier| earlier.value == tool.value) {
            let message = format!("`{}` occurs twice in `toolcrib-tools`", tool.value);
            problems.push(Diagnostic::warning(&tool.at, message).help("remove one of them"));
        } else {
            tools.push(tool);
        }
    }
    let tools_mode = choice(&mut keys, "toolcrib-tools-mode")
        .and_then(|mode| tools_mode("toolcrib-tools-mode", &mode, problems));
    let steps = keys.remarked("toolcrib-steps").unwrap_or_default();
    let on_skip = choice(&mut keys, "toolcrib-on-skip").map(|choice| {
        if steps.is_empty() {
            let message = "`toolcrib-on-skip` applies to steps, and there are none";
            problems.push(
                Diagnostic::error(&choice.at, message).help("write `toolcrib-steps`, or remove it"),
            );
        }
        on_skip(&choice, problems)
    });
    for (key, near) in keys.unknown().filter(|(key, _)| key.value.starts_with(OURS)) {
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("Toolcrib's keys are: {}", suggest::quoted(KEYS)),
        };
        let message = format!("unknown key `{}` in `metadata`", key.value);
        problems.push(Diagnostic::error(&key.at, message).help(help));
    }
    SkillMetadata { tools, tools_mode, steps, on_skip: on_skip.unwrap_or_default() }
}

/// The text of a Toolcrib key; other values are recorded.
fn choice(keys: &mut Keys<'_>, key: &'static str) -> Option<Located<Arc<str>>> {
    keys.text(key).unwrap_or_else(|wrong| {
        keys.problems.push(Diagnostic::error(&wrong.at, format!("`{key}` {}", wrong.value)));
        None
    })
}

fn on_skip(written: &Located<Arc<str>>, problems: &Problems) -> OnSkip {
    match &*written.value {
        "advance" => OnSkip::Advance,
        "hold" => OnSkip::Hold,
        other => {
            let message = format!("`toolcrib-on-skip` is `advance` or `hold`, not `{other}`");
            problems.push(Diagnostic::error(&written.at, message));
            OnSkip::Hold
        }
    }
}

fn skill_id(folder: &str, file: &Arc<str>, problems: &Problems) -> Option<SkillId> {
    let is_id = (1..=MAX_ID).contains(&folder.len())
        && folder.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if !is_id {
        let at = Spot::start_of(Arc::clone(file));
        let message = format!(
            "a skill has the name of its folder, and `{folder}` is not a valid \
            name"
        );
        problems.push(Diagnostic::error(&at, message).help(format!(
            "rename the folder: use 1 to {MAX_ID} of the characters a-z, A-Z, 0-9, `_` and `-`"
        )));
        return None;
    }
    SkillId::new(folder).ok()
}

/// Warns if the name in the file differs from the folder's, or is missing.
fn name(keys: &mut Keys<'_>, folder: &str) {
    let (at, message) = match keys.text("name") {
        Ok(Some(name)) if *name.value == *folder => return,
        Ok(Some(name)) => (
            name.at,
            format!("the name `{}` differs from the folder's and is not used", name.value),
        ),
        Ok(None) => (keys.at.clone(), "`name` is missing in the frontmatter".to_owned()),
        Err(wrong) => (wrong.at, format!("`name` {}", wrong.value)),
    };
    keys.problems.push(
        Diagnostic::warning(&at, message)
            .help(format!("the skill has the name of its folder, `{folder}`")),
    );
}

fn description(text: &Located<Arc<str>>, problems: &Problems) -> Arc<str> {
    let description = text.value.trim();
    let chars = description.chars().count();
    if chars > LONG_DESCRIPTION {
        problems.push(
            Diagnostic::warning(&text.at, format!("`description` has {chars} characters")).help(
                format!(
                    "every model request contains it; keep it within {LONG_DESCRIPTION}, and move \
                     the rest into the body"
                ),
            ),
        );
    }
    description.into()
}
