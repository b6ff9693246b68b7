//! Declared tools: what does not depend on their kind, and one file for each kind.

mod command;
mod http;
mod schema;
mod sql;

use std::{collections::HashMap, sync::Arc};

use serde_json::json;
use toolcrib_artifacts::{ARTIFACT_TOOLS, Artifacts};
use toolcrib_config::{Diagnostic, Help, Located, Problems, Spot, suggest};
use toolcrib_core::{Spooling, Tool};
use toolcrib_engine::SKILL_TOOLS;
use toolcrib_tools::Declaration;

pub(super) use self::http::{allowed_addresses, host_of, parse_address};
use super::{databases::Databases, names::Names, part::Part};
use crate::{
    config::{Input, Kind, ToolSection},
    root::{MAX_TEXT, Root},
};

/// Reports names that two tools have, and those that are taken while there are skills or artifacts.
pub(crate) fn report_duplicate_tools(
    parts: &[Part],
    has_skills: bool,
    has_artifacts: bool,
    problems: &Problems,
) {
    let mut places = HashMap::new();
    for name in Part::tools(parts).filter_map(|tool| tool.name.as_ref()) {
        if let Some(first) = places.get(&name.value) {
            let message = format!("two tools are called `{}`; the first is at {first}", name.value);
            problems.push(Diagnostic::error(&name.at, message).help("rename one of them"));
        } else {
            places.insert(&name.value, &name.at);
        }
        if has_skills && SKILL_TOOLS.contains(&&*name.value) {
            let message = format!("`{}` is a tool that Toolcrib has for skills", name.value);
            problems.push(Diagnostic::error(&name.at, message).help("give the tool another name"));
        }
        if has_artifacts && ARTIFACT_TOOLS.contains(&&*name.value) {
            let message = format!("`{}` is a tool that Toolcrib has for artifacts", name.value);
            problems.push(Diagnostic::error(&name.at, message).help("give the tool another name"));
        }
    }
}

/// What a tool is built from, beside what its kind says.
struct Source<'a> {
    section: &'a ToolSection,
    declaration: Declaration,
    /// Whether the schema of the arguments is known. If not, all else is checked all the same, and
    /// nothing is said of parameters.
    schema_is_sound: bool,
    root: &'a Root,
    names: &'a Names,
    problems: &'a Problems,
}

/// Reads the schemas that stand in files, so that they are among what was read before anything is
/// built. What is wrong with one is recorded when its tool is built.
pub(crate) fn read_schemas(parts: &[Part]) {
    for part in parts {
        for tool in &part.declared.tools {
            if let Input::File(file) = &tool.input {
                let _ = part.root.text(&file.value, MAX_TEXT);
            }
        }
    }
}

/// Builds the tools of all parts, and with them prepares every statement and finds every program;
/// every problem is recorded.
pub(crate) fn build_tools(
    parts: &[Part],
    databases: &Databases,
    artifacts: Option<&Artifacts>,
    names: &Names,
    problems: &Problems,
) -> Vec<Tool> {
    for section in Part::tools(parts) {
        report_artifacts_of(section, artifacts, problems);
    }
    let mut clients = http::Clients::default();
    let mut tools = Vec::new();
    for part in parts {
        let names = names.seen_by(part);
        let source = |section| Source::new(section, &part.root, &names, problems);
        let built = part.declared.tools.iter().filter_map(|section| match &section.kind {
            Kind::Sql(sql) => sql::build(sql, &source(section), databases),
            Kind::Command(command) => command::build(command, &source(section)),
            Kind::Http(http) => http::build(http, &source(section), &mut clients),
            Kind::Unknown => None,
        });
        match part.plugin_id() {
            Some(plugin) => tools.extend(built.map(|tool| tool.with_plugin(plugin))),
            None => tools.extend(built),
        }
    }
    tools
}

/// Reports what a tool says of artifacts that cannot be.
fn report_artifacts_of(tool: &ToolSection, artifacts: Option<&Artifacts>, problems: &Problems) {
    let Some(artifacts) = artifacts else {
        let asks = tool.spooling.as_ref().filter(|asked| asked.value != Spooling::Never);
        for at in asks
            .map(|asked| &asked.at)
            .into_iter()
            .chain(tool.artifact_kind.as_ref().map(|kind| &kind.at))
        {
            let help = "add a section `[artifacts]`, which may be empty, or take this out";
            problems.push(Diagnostic::error(at, "this project keeps no artifacts").help(help));
        }
        return;
    };
    if let Some(Located { value, at }) = &tool.artifact_kind
        && !artifacts.kinds().any(|kind| *kind == **value)
    {
        let message = format!("there is no kind of artifact {}", suggest::quoted([&**value]));
        let help = suggest::help(value, "kinds", artifacts.kinds());
        problems.push(Diagnostic::error(at, message).help(help));
    }
}

impl<'a> Source<'a> {
    fn new(
        section: &'a ToolSection,
        root: &'a Root,
        names: &'a Names,
        problems: &'a Problems,
    ) -> Self {
        let schema = schema::input_schema(&section.input, root, problems);
        let name = section.name.as_ref().map(|name| name.value.to_string()).unwrap_or_default();
        let description = section.description.as_deref().unwrap_or_default();
        let declaration = Declaration {
            toolset: section.toolset.clone(),
            annotations: section.annotations,
            input_schema: schema.clone().unwrap_or_else(|| json!({ "type": "object" })),
            max_result_chars: section.max_result_chars,
            timeout: section.timeout,
            always_include: section.always_include.unwrap_or_default(),
            untrusted: section.untrusted.unwrap_or(true),
            spooling: section.spooling.as_ref().map(|asked| asked.value).unwrap_or_default(),
            artifact_kind: section.artifact_kind.as_ref().map(|kind| Arc::clone(&kind.value)),
            origin: Some(section.at.to_string().into()),
            ..Declaration::new(name, description)
        };
        Self { section, declaration, schema_is_sound: schema.is_some(), root, names, problems }
    }

    /// Where it is said that the tool can be offered to no model, unless what is missing was
    /// recorded when the section was read.
    fn place_of_definition(&self) -> Option<Spot> {
        let section = self.section;
        let is_complete = section.name.is_some() && section.description.is_some();
        (is_complete && self.schema_is_sound).then(|| section.at.clone())
    }

    /// Whether a name that stands in a place and is no parameter is a declared secret.
    fn is_secret(&self, name: &str) -> bool {
        self.names.secrets.iter().any(|secret| **secret == *name)
    }

    /// Records an error.
    fn refuse(&self, at: &Spot, message: impl Into<String>, help: impl Into<Help>) {
        self.problems.push(Diagnostic::error(at, message).help(help));
    }
}
