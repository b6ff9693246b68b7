//! One `SKILL.md`.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::SkillId;

use super::frontmatter::{Keys, Markdown};

/// The longest name of a skill, in characters.
const MAX_NAME: usize = 64;
/// The longest description, in characters: every description is always before the model.
const MAX_DESCRIPTION: usize = 1024;
/// How our own keys begin.
const OURS: &str = "toolcrib";

/// A skill as its file has it. Whether the tools exist is not known here.
#[derive(Debug)]
pub(crate) struct SkillFile {
    pub(crate) id: SkillId,
    pub(crate) description: Arc<str>,
    pub(crate) body: Arc<str>,
    /// `metadata.toolcrib-tools`.
    pub(crate) tools: Vec<Located<Arc<str>>>,
    /// `allowed-tools`, which other hosts read.
    pub(crate) allowed_tools: Vec<Located<Arc<str>>>,
}

impl SkillFile {
    /// Reads the file of the skill in a folder of that name. `None` when something in it had to
    /// be refused, which is recorded.
    pub(super) fn read(
        file: &Arc<str>,
        folder: &str,
        text: &str,
        problems: &Problems,
    ) -> Option<Self> {
        let Some(markdown) = Markdown::split(text) else {
            problems.push(
                Diagnostic::error(
                    &Spot::start_of(Arc::clone(file)),
                    "the file does not begin with frontmatter between two lines of `---`",
                )
                .help(format!(
                    "begin it with: --- / name: {folder} / description: What it is for. / ---"
                )),
            );
            return None;
        };
        let mut keys = Keys::of_file(markdown.frontmatter, file, problems)?;
        let id =
            keys.required_text("name", folder).and_then(|name| skill_id(&name, folder, problems));
        let description = keys
            .required_text("description", "What it is for, and when to use it.")
            .and_then(|text| description(&text, problems));
        for passed in ["license", "compatibility"] {
            keys.pass(passed);
        }
        let allowed_tools =
            keys.names("allowed-tools", |c| c.is_whitespace() || c == ',').unwrap_or_default();
        let tools = keys.map("metadata").map(metadata).unwrap_or_default();
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
            body: markdown.body.trim().into(),
            tools,
            allowed_tools,
        })
    }
}

/// What our own keys in `metadata` say. Other keys there are other hosts' business.
fn metadata(mut keys: Keys<'_>) -> Vec<Located<Arc<str>>> {
    let tools = keys.names("toolcrib-tools", char::is_whitespace).unwrap_or_default();
    let problems = keys.problems;
    for (key, _) in keys.unknown().filter(|(key, _)| key.value.starts_with(OURS)) {
        problems.push(
            Diagnostic::error(&key.at, format!("unknown key `{}` in `metadata`", key.value))
                .help("the one key of ours there is `toolcrib-tools`"),
        );
    }
    tools
}

fn skill_id(name: &Located<Arc<str>>, folder: &str, problems: &Problems) -> Option<SkillId> {
    let is_name = name.value.len() <= MAX_NAME
        && name.value.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'));
    if !is_name {
        problems.push(
            Diagnostic::error(&name.at, format!("`{}` is not a name of a skill", name.value))
                .help(format!("use 1 to {MAX_NAME} of the characters a-z, 0-9 and `-`")),
        );
        return None;
    }
    if *name.value != *folder {
        problems.push(
            Diagnostic::error(
                &name.at,
                format!("skill `{}` lies in a folder called `{folder}`", name.value),
            )
            .help(format!("write name: {folder}, or rename the folder")),
        );
        return None;
    }
    SkillId::new(Arc::clone(&name.value)).ok()
}

fn description(text: &Located<Arc<str>>, problems: &Problems) -> Option<Arc<str>> {
    let description = text.value.trim();
    let chars = description.chars().count();
    if chars > MAX_DESCRIPTION {
        problems.push(
            Diagnostic::error(&text.at, format!("`description` has {chars} characters"))
                .help(format!("at most {MAX_DESCRIPTION}; move the rest into the body")),
        );
        return None;
    }
    Some(description.into())
}
