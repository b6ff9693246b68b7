//! The tables of a project that decide on calls, as the user consents to them.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde_json::{Map, Value as Json, json};
use toolcrib_config::{Document, Located, Problems, Value};
use toolcrib_core::{Digest, ToolName};
use toolcrib_engine::Skill;

use crate::{
    bind::part::Part,
    file::{Input, PLUGIN_FILE, PROJECT_FILE, ToolSection},
    read::text_file::MAX_TEXT,
    user::trust::{
        facts::{Facts, segment},
        power::Power,
        rules::normalized,
    },
};

/// Tables whose values may be secrets. Their digests are compared instead.
const MASKED: [&str; 4] = ["auth", "caller", "env", "headers"];

/// The facts that the user consents to: the actions, and the tables of all parts. A text that decides nothing is
/// left out by its path; every other key counts, also one that is added to the file's format later.
pub(crate) fn facts(parts: &[Part], skills: &[Vec<Arc<Skill>>], powers: &[Power]) -> Facts {
    let mut facts =
        Facts { actions: powers.iter().map(Power::without_place).collect(), ..Facts::default() };
    let Some(own) = parts.first() else { return facts };
    for part in parts {
        let is_own = part.plugin_id().is_none();
        let file = part.root.shown(if is_own { PROJECT_FILE } else { PLUGIN_FILE });
        let file = file_name(&file);
        let mut table = table_of(part, if is_own { PROJECT_FILE } else { PLUGIN_FILE });
        if is_own {
            facts.default = take_default(&mut table);
            facts.rules = take_list(&mut table, "policy").iter().map(normalized).collect();
        }
        facts.schemas.extend(schemas(part, &file));
        strip_texts(&mut table, &part.declared.tools);
        mask(&mut table);
        facts.tables.insert(file, table);
    }
    facts.tables.extend(skills.iter().flatten().map(|skill| {
        let file = skill.origin.as_deref().unwrap_or_default();
        (file_name(file), skill_table(skill))
    }));
    let digests = own.root.reads().digests_below(own.root.path());
    let name = |path: PathBuf| file_name(&path.to_string_lossy());
    facts.files = digests.into_iter().map(|(path, digest)| (name(path), digest)).collect();
    facts
}

/// The name of a file as the start of a line.
fn file_name(file: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    match file.chars().all(is_plain) {
        true => file.to_owned(),
        false => segment(file),
    }
}

/// The content of a part's file, as it was read.
fn table_of(part: &Part, name: &str) -> Json {
    let Ok(text) = part.root.by_values().text(name, MAX_TEXT) else { return Json::Null };
    let document = Document::new(name, &*text);
    let entries = document.read(&Problems::new(name), |file| {
        let entry = |(key, value): (Located<Arc<str>>, Value<'_>)| {
            Some((key.value.to_string(), value.json()?))
        };
        let entries: Option<Map<_, _>> = file.rest().map(entry).collect();
        entries
    });
    // A value without an equivalent in JSON: the file is compared as a whole.
    entries.flatten().map_or_else(|| Digest::of(text).to_string().into(), Json::Object)
}

fn take_default(table: &mut Json) -> String {
    let stated = table.as_object_mut().and_then(|table| table.shift_remove("policy_default"));
    stated.as_ref().and_then(Json::as_str).unwrap_or("allow").to_owned()
}

fn take_list(table: &mut Json, key: &str) -> Vec<Json> {
    match table.as_object_mut().and_then(|table| table.shift_remove(key)) {
        Some(Json::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The schemas of the tools that declare their arguments.
fn schemas(part: &Part, file: &str) -> BTreeMap<String, Json> {
    let schema = |tool: &ToolSection| {
        let name = &tool.name.as_ref()?.value;
        let schema = match &tool.input {
            Input::Params(schema) => schema.clone(),
            Input::File(file) => {
                let text = part.root.by_values().text(&file.value, MAX_TEXT).ok()?;
                serde_json::from_str(&text).ok()?
            }
            Input::None | Input::OfKind | Input::Broken => return None,
        };
        Some((format!("{file}: arguments of {}", name.as_str()), schema))
    };
    part.declared.tools.iter().filter_map(schema).collect()
}

/// Removes the texts for models, and the parameters, which are compared as schemas. Tools and roles are
/// found by name: their order decides nothing.
fn strip_texts(table: &mut Json, tools: &[ToolSection]) {
    remove_text(table.get_mut("agent"), "system");
    each(table.get_mut("personality"), |personality| remove_text(Some(personality), "system"));
    each(table.get_mut("tool"), |tool| {
        remove_text(Some(tool), "description");
        let name = tool.get("name").and_then(Json::as_str);
        let is_compared = tools.iter().any(|one| {
            matches!(one.input, Input::Params(_))
                && one.name.as_ref().is_some_and(|own| Some(own.value.as_str()) == name)
        });
        if is_compared && let Some(tool) = tool.as_object_mut() {
            tool.shift_remove("params");
        }
    });
    let servers = table.get_mut("mcp").and_then(Json::as_object_mut);
    for server in servers.into_iter().flat_map(|servers| servers.values_mut()) {
        let tools = server.get_mut("tool").and_then(Json::as_object_mut);
        for tool in tools.into_iter().flat_map(|tools| tools.values_mut()) {
            remove_text(Some(tool), "description");
        }
    }
    for key in ["tool", "role"] {
        if let Some(list) = table.get_mut(key) {
            by_name(list);
        }
    }
}

fn each(list: Option<&mut Json>, work: impl FnMut(&mut Json)) {
    list.and_then(Json::as_array_mut).into_iter().flatten().for_each(work);
}

fn remove_text(table: Option<&mut Json>, key: &str) {
    if let Some(table) = table.and_then(Json::as_object_mut)
        && table.get(key).is_some_and(Json::is_string)
    {
        table.shift_remove(key);
    }
}

/// A list of tables as a table of them, by name, else by kind. A list without distinct names remains.
fn by_name(list: &mut Json) {
    let Json::Array(items) = &*list else { return };
    let name = |item: &Json| {
        let name = item.get("name").or_else(|| item.get("kind"))?;
        Some((name.as_str()?.to_owned(), item.clone()))
    };
    let named: Option<Map<_, _>> = items.iter().map(name).collect();
    if let Some(named) = named.filter(|named| named.len() == items.len()) {
        *list = Json::Object(named);
    }
}

/// Replaces the values in [`MASKED`] tables by their digests.
fn mask(value: &mut Json) {
    fn digests(value: &mut Json) {
        match value {
            Json::Object(entries) => entries.values_mut().for_each(digests),
            Json::Array(items) => items.iter_mut().for_each(digests),
            value => *value = Digest::of(value.to_string()).to_string().into(),
        }
    }
    match value {
        Json::Object(entries) => {
            for (key, value) in entries {
                let may_be_secret = MASKED.contains(&key.as_str()) && !value.is_string();
                if may_be_secret { digests(value) } else { mask(value) }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

/// A skill without its texts for models.
fn skill_table(skill: &Skill) -> Json {
    let steps: Vec<_> = skill.all_steps().iter().map(|step| step.tool.as_str()).collect();
    json!({
        "tools": skill.tools.iter().map(ToolName::as_str).collect::<Vec<_>>(),
        "tools_mode": skill.tools_mode.map(|mode| format!("{mode:?}")),
        "steps": steps,
        "on_skip": skill.on_skip().map(|on_skip| format!("{on_skip:?}")),
    })
}
