//! Declared secrets, and the tools that refer to them.

use std::{collections::HashSet, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::Tool;
use toolcrib_tools::Source;

use crate::{
    bind::{located::is_declared, names::Names, part::Part},
    file::{
        DatabaseSource, McpSection, ProjectFile, SECRET, Text, ToolDeclarations, is_secret_name,
    },
    user::secrets::{self, ProjectSecrets},
};

/// The declared secrets. References of tools must be declared; declared secrets should be
/// referenced and available.
pub(crate) fn build_secrets(
    file: &ProjectFile,
    parts: &[Part],
    names: &Names,
    problems: &Problems,
) -> ProjectSecrets {
    let used = used_by_tools(parts, names, problems);
    let keys = used_elsewhere(file, parts);
    for section in &file.secrets {
        let Some(from) = &section.from else { continue };
        if used.contains(&section.name.value) {
            if let Err(problem) = secrets::check(&from.value) {
                let message = format!("{} {problem}", from.value);
                let help = format!(
                    "until this is changed, tools that need the secret `{}` are not offered",
                    section.name.value
                );
                problems.push(Diagnostic::warning(&from.at, message).help(help));
            }
        } else if !keys.contains(&section.name.value) {
            let message = format!("nothing refers to the secret `{}`", section.name.value);
            problems
                .push(Diagnostic::warning(&section.name.at, message).help("use it, or remove it"));
        }
    }
    ProjectSecrets::new(file.secrets.iter().filter_map(|section| {
        Some((Arc::clone(&section.name.value), section.from.as_ref()?.value.clone()))
    }))
}

/// The secrets that tools refer to; undeclared ones are recorded.
fn used_by_tools(parts: &[Part], names: &Names, problems: &Problems) -> HashSet<Arc<str>> {
    let mut used = HashSet::new();
    for part in parts {
        let names = names.seen_by(part);
        for tool in &part.declared.tools {
            for (field, text) in tool.kind.iter().flat_map(|kind| kind.secret_texts()) {
                for reference in located(&field, text, &tool.declaration.source, &tool.at) {
                    report_undeclared(&reference, &names, problems);
                    used.insert(reference.value);
                }
                // A slip that is reported where the tool is built.
                let is_named = |name: &&Arc<str>| text.contains(&format!("{{{name}}}"));
                used.extend(names.secrets.iter().filter(is_named).cloned());
            }
        }
    }
    used
}

/// The secrets of models, databases, stores, servers, hubs and the gateway, which report a missing
/// one themselves.
fn used_elsewhere(file: &ProjectFile, parts: &[Part]) -> HashSet<Arc<str>> {
    let of_models = file.models.iter().filter_map(|model| Some(Arc::clone(&model.secret()?.value)));
    let of_tokens = file
        .serve
        .tokens
        .iter()
        .filter_map(|token| Some(Arc::clone(&token.secret.as_ref()?.value)));
    let of_databases = file.databases.iter().filter_map(|database| match &database.source {
        Some(DatabaseSource::Server { secret, .. }) => Some(Arc::clone(&secret.value)),
        _ => None,
    });
    let of_approvals = file.approvals.shared.iter().flat_map(|(key, marks)| [key, marks]);
    let of_stores = file.sessions.secret().into_iter().chain(of_approvals);
    let of_stores = of_stores.map(|secret| Arc::clone(&secret.value));
    let all = of_models.chain(of_tokens).chain(of_databases).chain(of_stores);
    let mut keys: HashSet<_> = all.collect();
    for ToolDeclarations { mcp, hubs, .. } in parts.iter().map(|part| &part.declared) {
        let of_servers = mcp.iter().flat_map(McpSection::secret_texts);
        keys.extend(of_servers.flat_map(references).map(|reference| reference.value));
        for (_, text) in hubs.iter().flat_map(|hub| hub.hub.secret_texts()) {
            keys.extend(references_in(text).into_iter().map(|(_, secret)| Arc::from(secret)));
        }
    }
    keys
}

/// The tools, each offered only while its secrets are available: without its key it could only
/// fail.
pub(crate) fn offered_with_secrets(tools: Vec<Tool>, secrets: &ProjectSecrets) -> Vec<Tool> {
    let with_secrets = |tool: Tool| {
        if tool.capabilities().secrets.is_empty() {
            return tool;
        }
        let (needed, secrets) = (tool.capabilities().secrets.clone(), secrets.clone());
        tool.available_if(move || needed.iter().try_for_each(|name| secrets.check(name)))
    };
    tools.into_iter().map(with_secrets).collect()
}

/// Records an undeclared secret, or one that a plugin is not granted.
pub(crate) fn report_undeclared(name: &Located<Arc<str>>, names: &Names, problems: &Problems) {
    let declared = &names.secrets;
    if let Some(grant) = &names.grant {
        if !declared.contains(&name.value) {
            let does = format!("needs the secret `{}`", name.value);
            grant.refuse(&name.at, &does, &format!("secrets = [\"{}\"]", name.value), problems);
        }
    } else if declared.is_empty() {
        let message = format!("unknown secret `{}`", name.value);
        let help = format!("write below a [secrets]: {} = {{ env = \"VARIABLE\" }}", name.value);
        problems.push(Diagnostic::error(&name.at, message).help(help));
    } else {
        is_declared(name, "secret", declared, problems);
    }
}

/// The secrets that a text of an MCP server refers to, with the positions of their names.
pub(crate) fn references(text: &Text) -> Vec<Located<Arc<str>>> {
    let found = references_in(&text.value).into_iter();
    found.map(|(at, name)| Located { value: name.into(), at: text.place(Some(at)) }).collect()
}

/// The secrets that a field of a tool or hub refers to, with the positions of their names.
pub(crate) fn located(
    field: &str,
    text: &str,
    source: &Source,
    section: &Spot,
) -> Vec<Located<Arc<str>>> {
    let at = |offset| source.character(field, offset).unwrap_or_else(|| section.clone());
    let found = references_in(text).into_iter();
    found.map(|(offset, name)| Located { value: name.into(), at: at(offset) }).collect()
}

/// The secrets that a text refers to, with the offsets of their names: `{secret:NAME}`, or
/// `secret:NAME` alone. Similar spellings are refused when the tool is built.
pub(crate) fn references_in(text: &str) -> Vec<(usize, &str)> {
    text.match_indices(SECRET)
        .filter_map(|(at, _)| {
            let (before, rest) = (text.get(..at)?, text.get(at + SECRET.len()..)?);
            let name = if before.is_empty() {
                rest
            } else if before.ends_with('{') {
                rest.split_once('}')?.0
            } else {
                return None;
            };
            is_secret_name(name).then_some((at + SECRET.len(), name))
        })
        .collect()
}
