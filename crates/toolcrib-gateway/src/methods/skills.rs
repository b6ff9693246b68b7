//! The engine's skills, for clients with the extension `io.modelcontextprotocol/skills` (SEP-2640):
//! each is a folder of resources, `skill://NAME/SKILL.md` and its files, with sizes and digests.
//!
//! A client sees the skills that it may activate. Reading activates nothing: the tools of a skill are
//! offered after a call of `read_skill`, or at the path of the skill.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use rmcp::{
    ErrorData,
    model::{
        DIRECTORY_MIME_TYPE, GetSkillResult, ListResourcesResult, ListSkillsResult,
        ReadResourceResult, Resource, ResourceContents, SKILL_MD, Skill as Entry, SkillFrontmatter,
        SkillResource, SkillResources,
    },
};
use serde_json::{Map, Value};
use toolcrib_core::__internal::shortened;
use toolcrib_engine::{READ_SKILL, Redactor, Skill, SkillFiles};
use toolcrib_mcp::__internal::{
    MOST_SKILL_BYTES, MOST_SKILL_DESCRIPTION, MOST_SKILL_FILES, is_skill_name,
};

use super::{
    assets::one_page,
    find_resource::{not_found, uri_of},
};
use crate::{client::request::RequestContext, wire::message::Outcome};

const SCHEME: &str = "skill://";

/// Characters that are not literal in a path (RFC 3986, section 3.3).
const OUTSIDE_PATHS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A skill as clients read it.
struct ServedSkill {
    frontmatter: SkillFrontmatter,
    /// The contents by path, `SKILL.md` among them.
    files: BTreeMap<String, Vec<u8>>,
}

/// `skills/list`.
pub(crate) async fn list(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    one_page(&params)?;
    let _place = context.place()?;
    let mut entries = Vec::new();
    for skill in permitted(context, |_| true) {
        entries.extend(served(context, &skill, None).await?.map(|served| served.entry()));
    }
    Ok(ListSkillsResult::with_all_items(entries).into())
}

/// `skills/get`.
pub(crate) async fn get(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let _place = context.place()?;
    let uri = uri_of(&params)?;
    let found = find(context, &uri).filter(|(_, path)| path == SKILL_MD);
    let (skill, _) = found.ok_or_else(|| absent("skill", &uri))?;
    let served = served(context, &skill, None).await?.ok_or_else(|| absent("skill", &uri))?;
    Ok(GetSkillResult::new(served.entry()).into())
}

/// `resources/directory/read`.
pub(crate) async fn directory(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    one_page(&params)?;
    let _place = context.place()?;
    let uri = uri_of(&params)?;
    let (skill, path) = find(context, &uri).ok_or_else(|| absent("directory", &uri))?;
    let served = served(context, &skill, None).await?;
    let children = served.and_then(|served| served.children(&path));
    let children = children.ok_or_else(|| absent("directory", &uri))?;
    Ok(ListResourcesResult::with_all_items(children).into())
}

/// The content of a skill's file; `None` if the URI is not of a skill that the caller may read.
pub(crate) async fn read(
    context: &RequestContext<'_>,
    uri: &str,
) -> Result<Option<Outcome>, ErrorData> {
    let Some((skill, path)) = find(context, uri) else { return Ok(None) };
    let served = served(context, &skill, Some(&path)).await?;
    // Below a skill there is nothing of servers.
    let content = served.as_ref().and_then(|served| served.files.get(&*path));
    let content = content.ok_or_else(|| not_found(context, uri))?;
    let contents = match std::str::from_utf8(content) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(_) => ResourceContents::blob(BASE64_STANDARD.encode(content), uri),
    };
    let contents = contents.with_mime_type(media_type(&path, content));
    Ok(Some(Ok(ReadResourceResult::new(vec![contents]).into())))
}

/// The `SKILL.md` of each skill, for `resources/list`.
pub(crate) fn listed(context: &RequestContext<'_>) -> Vec<Resource> {
    let resource = |skill: &Skill| {
        let frontmatter = frontmatter(context, skill)?;
        let resource = Resource::new(uri(&frontmatter.name, SKILL_MD), frontmatter.name);
        Some(resource.with_description(frontmatter.description).with_mime_type("text/markdown"))
    };
    permitted(context, |_| true).iter().filter_map(|skill| resource(skill)).collect()
}

/// The skills of a kind that the caller may activate.
fn permitted(context: &RequestContext<'_>, is_wanted: impl Fn(&Skill) -> bool) -> Vec<Arc<Skill>> {
    let (gateway, access) = (&context.serving.gateway, &context.caller.access);
    let skills = gateway.config.engine.skills_of(access.personality.as_deref());
    let may_activate = |skill: &&Arc<Skill>| {
        let access = access.as_ref().clone().skill(skill.id.clone());
        gateway.check(&access).is_ok()
    };
    let wanted = skills.iter_shared().filter(|skill| is_wanted(skill));
    wanted.filter(may_activate).cloned().collect()
}

/// The skill of a URI and the path within it, which need not exist; empty for its folder.
fn find(context: &RequestContext<'_>, uri: &str) -> Option<(Arc<Skill>, String)> {
    let rest = uri.strip_prefix(SCHEME)?;
    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
    let found = permitted(context, |skill| skill.id.as_str() == name).into_iter().next()?;
    Some((found, percent_decode_str(path).decode_utf8_lossy().into_owned()))
}

/// Reads a skill with all of its files, or with this one; `None` if its name is not one of the
/// format, if it is larger than the format permits, or if a file cannot be read.
async fn served(
    context: &RequestContext<'_>,
    skill: &Skill,
    only: Option<&str>,
) -> Result<Option<ServedSkill>, ErrorData> {
    let Some(frontmatter) = frontmatter(context, skill) else { return Ok(None) };
    let redactor = context.serving.gateway.config.engine.redactor().clone();
    let manifest = manifest(&frontmatter, skill, context.era.session().is_some());
    let manifest = redactor.text(&manifest).into_owned().into_bytes();
    let mut files = BTreeMap::from([(SKILL_MD.to_owned(), manifest)]);
    if let Some(source) = skill.files.clone() {
        let only = only.map(str::to_owned);
        let read = move || contents(&*source, only.as_deref(), &redactor);
        let read = tokio::task::spawn_blocking(read).await;
        let read = read.map_err(|_| ErrorData::internal_error("the skill cannot be read", None))?;
        let Some(contents) = read else { return Ok(None) };
        files.extend(contents);
    }
    Ok(Some(ServedSkill { frontmatter, files }))
}

/// The redacted files beside `SKILL.md`, or this one of them.
fn contents(
    source: &dyn SkillFiles,
    only: Option<&str>,
    redactor: &Redactor,
) -> Option<Vec<(String, Vec<u8>)>> {
    let mut paths = source.list().ok()?;
    paths.retain(|path| path != SKILL_MD);
    if paths.len() >= MOST_SKILL_FILES {
        return None;
    }
    paths.retain(|path| only.is_none_or(|only| path == only));
    let (mut contents, mut bytes) = (Vec::new(), 0_u64);
    for path in paths {
        let content = source.read(&path).ok()?;
        bytes += content.len() as u64;
        if bytes > MOST_SKILL_BYTES {
            return None;
        }
        contents.push(match String::from_utf8(content) {
            Ok(text) => (path, redactor.text(&text).into_owned().into_bytes()),
            Err(binary) => (path, binary.into_bytes()),
        });
    }
    Some(contents)
}

/// The name and description; `None` if the id is not a name of the format.
fn frontmatter(context: &RequestContext<'_>, skill: &Skill) -> Option<SkillFrontmatter> {
    let name = skill.id.as_str();
    let description = context.serving.gateway.config.engine.redactor().text(&skill.description);
    let description: String = description.chars().take(MOST_SKILL_DESCRIPTION).collect();
    is_skill_name(name).then(|| SkillFrontmatter::new(name, description))
}

/// The text of `SKILL.md`, for clients that are offered `read_skill` or not. Keys of a project's own
/// file are for this program, and not repeated.
fn manifest(
    SkillFrontmatter { name, description, .. }: &SkillFrontmatter,
    skill: &Skill,
    has_read_skill: bool,
) -> String {
    // A JSON string is one of YAML.
    let description = Value::from(description.as_str());
    let mut text = format!("---\nname: {name}\ndescription: {description}\n---\n\n");
    text.push_str(&skill.guide());
    if has_read_skill && !skill.tools.is_empty() {
        text.push_str(&format!(
            "\n\nCall `{READ_SKILL}` with the id `{name}` first: it offers the tools of this skill."
        ));
    }
    text.push('\n');
    text
}

impl ServedSkill {
    fn entry(&self) -> Entry {
        let name = &self.frontmatter.name;
        let file = |(path, content): (&String, &Vec<u8>)| {
            SkillResource::from_bytes(uri(name, path), content)
        };
        let files = self.files.iter().map(file).collect();
        Entry::new(uri(name, SKILL_MD), self.frontmatter.clone(), SkillResources::Files(files))
    }

    /// The files and folders of a folder; `None` if there is no such folder.
    fn children(&self, folder: &str) -> Option<Vec<Resource>> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut children = BTreeMap::new();
        for (path, content) in &self.files {
            let Some(below) = path.strip_prefix(&prefix) else { continue };
            let (child, is_folder) = match below.split_once('/') {
                Some((child, _)) => (child, true),
                None => (below, false),
            };
            let resource =
                Resource::new(uri(&self.frontmatter.name, &format!("{prefix}{child}")), child);
            let media_type =
                if is_folder { DIRECTORY_MIME_TYPE } else { media_type(path, content) };
            children.insert(child, resource.with_mime_type(media_type));
        }
        (!children.is_empty()).then(|| children.into_values().collect())
    }
}

fn uri(name: &str, path: &str) -> String {
    format!("{SCHEME}{name}/{}", utf8_percent_encode(path, OUTSIDE_PATHS))
}

fn media_type(path: &str, content: &[u8]) -> &'static str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "md" => "text/markdown",
        "json" => "application/json",
        "png" => "image/png",
        "pdf" => "application/pdf",
        _ if std::str::from_utf8(content).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}

fn absent(kind: &str, uri: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no {kind} `{}`", shortened(uri)), None)
}
