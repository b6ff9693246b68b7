//! An entry of `skills/list`.

use rmcp::model::{Skill, SkillResource, SkillResources};
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// The limit of files of one skill by SEP-2640, `SKILL.md` included.
pub const MOST_SKILL_FILES: usize = 512;
/// The limit of their size, in bytes.
pub const MOST_SKILL_BYTES: u64 = 16 * 1024 * 1024;

/// The limit of a description in the format of skills, in characters.
pub const MOST_SKILL_DESCRIPTION: usize = 1024;

/// The largest file that is read, in bytes, as of a skill in a folder.
pub(super) const MOST_FILE_BYTES: u64 = 1024 * 1024;

/// Whether an id is a name by the specification of skills: up to 64 lower-case letters, digits and
/// single hyphens between them.
pub fn is_skill_name(id: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    id.len() <= 64 && id.split('-').all(is_word)
}

/// A skill as its server lists it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemoteSkill {
    name: Option<String>,
    entry: Map<String, Value>,
    /// The entry as a skill; else its flaw.
    skill: Result<Skill, String>,
}

impl RemoteSkill {
    pub(super) fn read(entry: Map<String, Value>) -> Self {
        let frontmatter = entry.get("frontmatter");
        let name = frontmatter.and_then(|fields| fields.get("name")).and_then(Value::as_str);
        let name = name.map(|name| name.chars().take(128).collect());
        let skill = Skill::deserialize(&Value::Object(entry.clone()));
        let skill = skill.map_err(|error| format!("its entry cannot be read: {error}"));
        let skill = skill.and_then(|skill| match flaw_of(&skill) {
            None => Ok(skill),
            Some(flaw) => Err(flaw),
        });
        let skill = skill.map_err(|flaw| flaw.chars().take(500).collect());
        Self { name, entry, skill }
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn entry(&self) -> &Map<String, Value> {
        &self.entry
    }

    /// Why it cannot be offered, if so.
    pub(super) fn flaw(&self) -> Option<&str> {
        self.skill.as_ref().err().map(String::as_str)
    }

    pub(super) fn description(&self) -> &str {
        self.skill.as_ref().map_or("", |skill| &skill.frontmatter.description)
    }

    /// The fields of the frontmatter, as the server lists them.
    pub(super) fn frontmatter(&self) -> Option<&Map<String, Value>> {
        self.entry.get("frontmatter")?.as_object()
    }

    /// Whether its files have no digests.
    pub(super) fn is_dynamic(&self) -> bool {
        self.skill.as_ref().is_ok_and(|skill| skill.resources == SkillResources::Dynamic)
    }

    /// The URI of its `SKILL.md`.
    pub(super) fn uri(&self) -> Option<&str> {
        self.entry.get("uri")?.as_str()
    }

    /// The beginning of the URIs of its files.
    pub(super) fn root(&self) -> Option<&str> {
        self.uri()?.strip_suffix(rmcp::model::SKILL_MD).filter(|root| root.ends_with('/'))
    }

    /// Its listed files, `SKILL.md` included; none if it is dynamic.
    pub(super) fn files(&self) -> &[SkillResource] {
        match self.skill.as_ref().map(|skill| &skill.resources) {
            Ok(SkillResources::Files(files)) => files,
            _ => &[],
        }
    }

    /// Whether it has files beside `SKILL.md`, as far as it is known.
    pub(super) fn has_files(&self) -> bool {
        self.is_dynamic() || self.files().len() > 1
    }

    /// The paths of its files beside `SKILL.md`.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        let root = self.root().unwrap_or_default();
        let paths = self.files().iter().filter_map(move |file| file.uri.strip_prefix(root));
        paths.filter(|path| *path != rmcp::model::SKILL_MD)
    }

    /// The names in `allowed-tools`: a text with spaces or commas between them, or a list.
    pub(super) fn allowed_tools(&self) -> impl Iterator<Item = &str> {
        let value = self.frontmatter().and_then(|fields| fields.get("allowed-tools"));
        let texts = match value {
            Some(Value::Array(items)) => items.as_slice(),
            Some(other) => std::slice::from_ref(other),
            None => &[],
        };
        let is_separator = |c: char| c.is_whitespace() || c == ',';
        let names =
            texts.iter().filter_map(Value::as_str).flat_map(move |text| text.split(is_separator));
        names.filter(|name| !name.is_empty())
    }
}

/// Why a skill breaks the format, if it does.
fn flaw_of(skill: &Skill) -> Option<String> {
    if let Err(error) = skill.validate() {
        return Some(error.to_string());
    }
    if !is_skill_name(&skill.frontmatter.name) {
        return Some(
            "its name is not one of the format: up to 64 of a-z, 0-9 and single hyphens".to_owned(),
        );
    }
    let description = skill.frontmatter.description.trim();
    if description.is_empty() || description.chars().count() > MOST_SKILL_DESCRIPTION {
        return Some(format!("its description must have 1 to {MOST_SKILL_DESCRIPTION} characters"));
    }
    let SkillResources::Files(files) = &skill.resources else { return None };
    let bytes = files.iter().fold(0_u64, |bytes, file| bytes.saturating_add(file.size));
    if files.len() > MOST_SKILL_FILES || bytes > MOST_SKILL_BYTES {
        return Some(format!(
            "it has {} files of {bytes} bytes; the limits are {MOST_SKILL_FILES} files and \
             {MOST_SKILL_BYTES} bytes",
            files.len()
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_skill_name;

    #[test]
    fn names_are_those_of_the_format() {
        for (id, is) in [
            ("billing", true),
            ("git-workflow-2", true),
            ("Billing", false),
            ("a--b", false),
            ("-a", false),
            ("a b", false),
            ("a/b", false),
            ("", false),
        ] {
            assert_eq!(is_skill_name(id), is, "{id}");
        }
        assert!(is_skill_name(&"a".repeat(64)) && !is_skill_name(&"a".repeat(65)));
    }
}
