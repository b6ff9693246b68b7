//! Declared tools: what does not depend on their kind, and one file for each kind.

mod command;
mod documents;
mod hook;
mod http;
mod openapi;
mod schema;
mod shell;

use std::collections::HashMap;

use toolcrib_artifacts::{ARTIFACT_TOOLS, Artifacts};
use toolcrib_config::{Diagnostic, Help, Problems, Spot, suggest};
use toolcrib_core::{ArtifactPolicy, Tool};
use toolcrib_engine::SKILL_TOOLS;
use toolcrib_tools::{
    Declaration, DeclaredKind, ExternalAccess, ToolErrors, clarify, sql::SqlDatabase,
};

pub(crate) use self::{
    documents::ThirdParties, hook::build_hooks, http::private_addresses, openapi::read_documents,
};
use super::{databases::Databases, files::Folders, own::ProjectStorage};
use crate::{
    bind::{located::is_declared, names::Names, part::Part},
    file::{Input, Kind, ToolSection},
    read::{root::Root, text_file::MAX_TEXT},
    user::secrets::ProjectSecrets,
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

/// The inputs of a tool, besides those of its kind.
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

/// Reads the schemas in files, so that they are among what was read before anything is
/// built. Errors in one are recorded when its tool is built.
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
pub(crate) fn build_tools<'a>(
    parts: &'a [Part],
    (databases, folders, own): (&Databases, &Folders, &ProjectStorage),
    artifacts: Option<&Artifacts>,
    (names, secrets): (&Names, &ProjectSecrets),
    third_parties: ThirdParties<'_>,
    problems: &Problems,
) -> Vec<Tool> {
    for section in Part::tools(parts) {
        report_artifacts_of(section, artifacts, problems);
    }
    let mut clients = http::Clients::default();
    let mut tools = Vec::new();
    for part in parts {
        let names = names.seen_by(part);
        let mut of_part = Vec::new();
        let source = |section| Source::new(section, &part.root, &names, problems);
        let mut built = |section: &'a ToolSection| match &section.kind {
            Kind::Sql(sql) => {
                let source = source(section);
                let database = source.database(sql, databases)?;
                source.built(sql.build(source.declaration.clone(), database)?)
            }
            Kind::SqlExplore(explore) => {
                let source = source(section);
                let database = source.database(explore, databases)?;
                source.built(explore.build(source.declaration.clone(), database))
            }
            Kind::Files(files) => {
                let source = source(section);
                let Source { names, problems, .. } = &source;
                let used = folders.of_tool(files, &section.at, names.grant.as_deref(), problems)?;
                source.built(files.build(source.declaration.clone(), &used))
            }
            Kind::Command(command) => {
                let source = source(section);
                let mut command = command.clone();
                command.default_stray_children(names.sandboxes.allows_stray_children());
                command::build(&command, &source, |folders, sandbox| {
                    let (base, working_dir) = folders;
                    command.build(source.declaration.clone(), base, working_dir, sandbox)
                })
            }
            Kind::Terminal(terminal) => {
                shell::build(terminal.shell(), &source(section), |spec| terminal.build(spec))
            }
            Kind::Code(code) => {
                shell::build(code.shell(), &source(section), |spec| code.build(spec))
            }
            Kind::Http(http) => {
                let keys = ("/url", "allow_addresses");
                let build = |base, client: &_| http.build(base, client);
                http::build(http, keys, &source(section), &mut clients, build)
            }
            Kind::Todo(todo) => {
                let source = source(section);
                source.built(todo.build(source.declaration.clone()))
            }
            Kind::Memory(memory) => {
                let source = source(section);
                if source.names.grant.is_some() {
                    let message = "a plugin cannot reach the memory of the agent and its sessions";
                    let help = "declare the tool in the project's own file";
                    source.refuse(&section.at, message, help);
                    return None;
                }
                let used = own.memory(memory.scope());
                source.built(memory.build(source.declaration.clone(), &used))
            }
            Kind::Clarify(_) => {
                let source = source(section);
                source.built(clarify::build(source.declaration.clone()))
            }
            Kind::Web(web) => {
                let keys = ("/search_url", "search_addresses");
                let build = |base, client: &_| web.build(base, client);
                http::build(web, keys, &source(section), &mut clients, build)
            }
            Kind::Operation(one) => {
                let keys = ("/url", "allow_addresses");
                let has_secret = |name: &str| secrets.check(name).is_ok();
                let build = |base, client: &_| one.build(base, client, has_secret);
                http::build(&**one, keys, &source(section), &mut clients, build)
            }
            Kind::Task(task) => {
                let source = source(section);
                if source.names.grant.is_some() {
                    let message = "a plugin cannot give tasks to agents of the project";
                    let help = "declare the tool in the project's own file";
                    source.refuse(&section.at, message, help);
                    return None;
                }
                for agent in task.agents() {
                    is_declared(agent, "personality", &source.names.personalities, problems);
                }
                source.built(task.build(source.declaration.clone()))
            }
            Kind::OpenApi(_) | Kind::Unknown => None,
        };
        let is_of_document = |a: &ToolSection, b: &ToolSection| match (&a.kind, &b.kind) {
            (Kind::Operation(a), Kind::Operation(b)) => a.is_of_document(b),
            _ => false,
        };
        for sections in part.declared.tools.chunk_by(is_of_document) {
            let mut operations = Vec::new();
            for section in sections {
                match (&section.kind, built(section)) {
                    (Kind::Operation(one), Some(tool)) => operations.push((&**one, tool)),
                    (_, built) => of_part.extend(built),
                }
            }
            if let Some(first) = sections.first() {
                of_part.extend(third_parties.tools(operations, &first.at, problems));
            }
        }
        match part.plugin_id() {
            Some(plugin) => tools.extend(of_part.iter().map(|tool| tool.with_plugin(plugin))),
            None => tools.append(&mut of_part),
        }
    }
    tools
}

/// Reports what a tool says of artifacts that cannot be.
fn report_artifacts_of(tool: &ToolSection, artifacts: Option<&Artifacts>, problems: &Problems) {
    let Declaration { artifact_policy, artifact_kind, source, .. } = &tool.declaration;
    let kind_at = source.value("/artifact_kind").unwrap_or(&tool.at);
    let Some(artifacts) = artifacts else {
        let policy_at = source.value("/artifact_policy");
        let asks = policy_at.filter(|_| *artifact_policy != ArtifactPolicy::Never);
        for at in asks.into_iter().chain(artifact_kind.as_ref().map(|_| kind_at)) {
            let help = "add a section `[artifacts]`, which may be empty, or take this out";
            problems.push(Diagnostic::error(at, "this project keeps no artifacts").help(help));
        }
        return;
    };
    if let Some(kind) = artifact_kind
        && !artifacts.kinds().any(|known| *known == **kind)
    {
        let message = format!("there is no kind of artifact {}", suggest::quoted([&**kind]));
        let help = suggest::help(kind, "kinds", artifacts.kinds());
        problems.push(Diagnostic::error(kind_at, message).help(help));
    }
}

impl<'a> Source<'a> {
    fn new(
        section: &'a ToolSection,
        root: &'a Root,
        names: &'a Names,
        problems: &'a Problems,
    ) -> Self {
        let schema = schema::input_schema(section, root, problems);
        let mut declaration = section.declaration.clone();
        declaration.source = declaration.source.with_secrets(&names.secrets);
        match &schema {
            Some(schema) => declaration.input_schema = schema.clone(),
            None => declaration.source = declaration.source.without_schema(),
        }
        Self { section, declaration, schema_is_sound: schema.is_some(), root, names, problems }
    }

    /// The database of a kind that needs one; `None` where it cannot be used, which is recorded.
    fn database<'d>(
        &self,
        kind: &dyn DeclaredKind,
        databases: &'d Databases,
    ) -> Option<&'d SqlDatabase> {
        let named = kind.external_access().into_iter().find_map(|access| match access {
            ExternalAccess::Database(named) => Some(named),
            _ => None,
        })?;
        databases.of_tool(named, &self.section.at, self.names.grant.as_deref(), self.problems)
    }

    /// The tool; its errors are recorded, except those that the reader of its table recorded.
    fn built<T>(&self, built: Result<T, ToolErrors>) -> Option<T> {
        let record = |found: ToolErrors| {
            let is_complete = self.section.is_complete && self.schema_is_sound;
            let errors = found.errors.into_iter();
            for error in errors.filter(|error| is_complete || !error.field.is_empty()) {
                let at = error.at.as_ref().unwrap_or(&self.section.at);
                self.refuse(at, error.message, error.help);
            }
        };
        built.map_err(record).ok()
    }

    /// Records an error.
    fn refuse(&self, at: &Spot, message: impl Into<String>, help: impl Into<Help>) {
        self.problems.push(Diagnostic::error(at, message).help(help));
    }
}
