//! Declared tools, whatever their kind is.

mod documents;
mod expand;
mod hook;
mod ports;
mod private_host;
mod schema;
mod unbuilt;

use std::collections::HashMap;

use toolcrib_artifacts::{ARTIFACT_TOOLS, Artifacts};
use toolcrib_config::{Diagnostic, Problems, suggest};
use toolcrib_core::{ArtifactPolicy, Tool};
use toolcrib_engine::SKILL_TOOLS;
use toolcrib_tools::{Declaration, DeclaredKind};

pub(crate) use self::{
    documents::ThirdParties, expand::read_documents, hook::build_hooks, ports::ProjectParts,
    private_host::private_addresses,
};
use self::{
    ports::ToolPorts,
    private_host::warn_of_private_host,
    unbuilt::{Surroundings, UnbuiltTool},
};
use crate::{
    bind::{names::Names, part::Part},
    file::{Input, ToolSection},
    read::text_file::MAX_TEXT,
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

/// Reads the schemas in files, so that they are among what was read before anything is
/// built. Errors in one are recorded when its tool is built.
pub(crate) fn read_schemas(parts: &[Part]) {
    for part in parts {
        for tool in &part.declared.tools {
            if let Input::File(file) = &tool.input {
                let _ = part.root.by_values().text(&file.value, MAX_TEXT);
            }
        }
    }
}

/// Builds the tools of all parts, and with them prepares every statement and finds every program;
/// every problem is recorded.
pub(crate) fn build_tools(
    parts: &[Part],
    used: &ProjectParts<'_>,
    artifacts: Option<&Artifacts>,
    names: &Names,
    third_parties: ThirdParties<'_>,
    problems: &Problems,
) -> Vec<Tool> {
    for section in Part::tools(parts) {
        report_artifacts_of(section, artifacts, problems);
    }
    let mut tools = Vec::new();
    for part in parts {
        let names = names.seen_by(part);
        let around = Surroundings { root: &part.root, names: &names, problems };
        let mut of_part = Vec::new();
        // One table after the other: a document is listed as a whole.
        for sections in part.declared.tools.chunk_by(|a, b| a.at == b.at) {
            let mut of_document = Vec::new();
            for section in sections {
                let Some(tool) = build_tool(section, used, around) else { continue };
                match section.kind.as_deref().and_then(DeclaredKind::third_party) {
                    Some(definition) => of_document.push((definition, tool)),
                    None => of_part.push(tool),
                }
            }
            if let Some(first) = sections.first() {
                of_part.extend(third_parties.tools(of_document, &first.at, problems));
            }
        }
        match part.plugin_id() {
            Some(plugin) => tools.extend(of_part.iter().map(|tool| tool.with_plugin(plugin))),
            None => tools.append(&mut of_part),
        }
    }
    tools
}

fn build_tool(
    section: &ToolSection,
    parts: &ProjectParts<'_>,
    around: Surroundings<'_>,
) -> Option<Tool> {
    let kind = section.kind.as_deref()?;
    let tool = UnbuiltTool::new(section, around);
    let built = kind.build(tool.declaration.clone(), &ToolPorts { tool: &tool, parts })?;
    let built = tool.built(built)?;
    for access in kind.external_access() {
        warn_of_private_host(&access, &tool, around.problems);
    }
    Some(built)
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
