use std::{
    fmt::Write as _,
    sync::{Arc, LazyLock},
};

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_core::{InvalidToolError, SkillId, Tool, ToolBuilder, ToolContext, ToolError};

use super::{closed, framework_tool, ids};
use crate::skills::{ActiveSkills, Skill, SkillFileError, SkillFiles, active::Request};

/// The name of the tool that activates a skill, and reads the files of one that is active.
pub const READ_SKILL: &str = "read_skill";

/// Maximum number of files named to a model; of further ones it reads only the count.
const MOST_NAMED: usize = 100;

#[derive(Deserialize)]
struct Args {
    id: SkillId,
    path: Option<String>,
}

/// The tool without the names of the skills.
fn unnamed() -> ToolBuilder {
    framework_tool(READ_SKILL).read_only().idempotent()
}

/// The tool as rules and personalities see it; they ignore the skills that it names. `None` if it
/// cannot be built.
pub(crate) fn read_skill_as_judged() -> Option<&'static Tool> {
    static JUDGED: LazyLock<Option<Tool>> = LazyLock::new(|| {
        unnamed().description("Activates a skill.").handler(|_: Value, _| async { "" }).ok()
    });
    JUDGED.as_ref()
}

/// The tool with which a model activates a skill of this turn, and reads the files of an active
/// one. A body and its files are trusted: both are returned unfenced. The skill's tools are offered
/// from the next iteration on.
pub(super) fn read_skill(
    active: &Arc<ActiveSkills>,
    told: &[Arc<Skill>],
) -> Result<Tool, InvalidToolError> {
    let mut description = String::from(
        "Activates a skill: returns its instructions, and offers its tools from the next step on. \
         Skills:",
    );
    for skill in told {
        let _ = write!(description, "\n- {}: {}", skill.id, skill.description);
    }
    let mut properties = json!({
        "id": { "type": "string", "enum": ids(told), "description": "The skill to activate." },
    });
    // Without files, the property would only cost tokens in every request.
    if told.iter().any(|skill| skill.files.is_some())
        && let Some(properties) = properties.as_object_mut()
    {
        properties.insert(
            "path".into(),
            json!({
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
                "description": "Instead of activating: reads this file of the skill, which must be \
                                active.",
            }),
        );
    }
    let (active, told) = (Arc::clone(active), Arc::<[_]>::from(told));
    unnamed().description(description).input_schema(closed(&properties, &["id"])).handler(
        move |Args { id, path }: Args, cx: ToolContext| {
            let skill = told.iter().find(|skill| skill.id == id).cloned();
            let active = Arc::clone(&active);
            async move {
                // The schema admits no other id.
                let skill =
                    skill.ok_or_else(|| ToolError::input_invalid("there is no such skill"))?;
                match path {
                    None => activate(&active, &skill, &cx).await,
                    Some(path) => read(&active, &skill, path).await,
                }
            }
        },
    )
}

async fn activate(
    active: &ActiveSkills,
    skill: &Skill,
    cx: &ToolContext,
) -> Result<String, ToolError> {
    let mut text = format!(
        "Skill `{}` is active. Its tools are offered from your next step on.\n\n{}",
        skill.id,
        skill.instructions()
    );
    // Steps under way continue; completed ones begin again.
    if let Some(place) = active.place(&skill.id) {
        let _ = write!(text, "\n\n{place}");
    }
    if let Some(files) = &skill.files {
        let files = Arc::clone(files);
        let _ = write!(text, " {}", blocking(move || all(&*files)).await?);
    }
    active.request(cx, Request::Activate(skill.id.clone()));
    Ok(text)
}

async fn read(active: &ActiveSkills, skill: &Skill, path: String) -> Result<String, ToolError> {
    let id = &skill.id;
    if !active.now().contains(id) {
        return Err(ToolError::input_invalid(format!(
            "skill `{id}` is not active: activate it first, without `path`"
        )));
    }
    let Some(files) = &skill.files else {
        return Err(ToolError::input_invalid(format!("skill `{id}` has no files")));
    };
    let files = Arc::clone(files);
    blocking(move || {
        let read = files.read(&path).and_then(text_of);
        read.map_err(|error| {
            let shown: String = path.chars().take(100).collect();
            let text = format!("`{}` {error}. {}", shown.escape_debug(), all(&*files));
            ToolError::input_invalid(text).caused_by(error)
        })
    })
    .await?
}

/// Text without a byte order mark, which some editors write.
fn text_of(content: Vec<u8>) -> Result<String, SkillFileError> {
    let text = String::from_utf8(content).map_err(|_| SkillFileError::NotText)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// The names of the files, as a sentence.
fn all(files: &dyn SkillFiles) -> String {
    let Ok(paths) = files.list() else {
        return "Which files it has cannot be read now.".to_owned();
    };
    if paths.is_empty() {
        return "It has no files now.".to_owned();
    }
    let named: Vec<_> =
        paths.iter().take(MOST_NAMED).map(|path| format!("`{}`", path.escape_debug())).collect();
    let more = match paths.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("Its files: {}{more}.", named.join(", "))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        ToolError::failed("the files of the skill cannot be read").caused_by(error)
    })
}
