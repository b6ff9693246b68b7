//! Checks of names that the parts of a project have or refer to.

use std::{collections::HashMap, sync::Arc};

use toolcrib_artifacts::ARTIFACT_TOOLS;
use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_core::__internal::{is_mcp_name, is_mcp_toolset};
use toolcrib_engine::SKILL_TOOLS;

use super::{located::is_declared, mcp_files::McpFiles, names::Names, part::Part, remote::REMOTE};
use crate::file::{HubSection, McpSection, ProjectFile};

/// Records grants of unknown things, and duplicate ids.
pub(crate) fn check_plugins(
    file: &ProjectFile,
    of_code: &[Arc<str>],
    names: &Names,
    problems: &Problems,
) {
    let databases: Vec<_> =
        file.databases.iter().map(|database| Arc::clone(&database.name.value)).collect();
    for section in &file.plugins {
        for secret in &section.secrets {
            is_declared(secret, "secret", &names.secrets, problems);
        }
        for database in &section.databases {
            is_declared(database, "database", &databases, problems);
        }
        for folder in &section.files {
            is_declared(folder, "folder", &names.folders, problems);
        }
        if of_code.contains(&section.name.value) {
            let message = format!("a plugin `{}` is already added in code", section.name.value);
            problems.push(Diagnostic::error(&section.name.at, message).help("rename one of them"));
        }
    }
}

/// Records names that two parts share: of MCP servers, hubs and skills. Duplicates in one file are
/// recorded when it is read.
pub(crate) fn report_taken_names(parts: &[Part], mcp: &McpFiles, problems: &Problems) {
    let of_files = mcp.servers.iter().map(|declared| &declared.server);
    let mut servers: HashMap<_, _> =
        of_files.map(|server| (Arc::clone(&server.name), server.at.clone())).collect();
    let (mut hubs, mut skills) = (HashMap::new(), HashMap::new());
    for part in parts {
        let of_plugin = part.grant.is_some();
        let take =
            |taken: &mut HashMap<Arc<str>, Spot>, kind, name: &Arc<str>, at: Spot| match taken
                .get(name)
                .filter(|_| of_plugin)
            {
                Some(first) => {
                    let message = format!("{kind} `{name}` exists already, at {first}");
                    problems.push(Diagnostic::error(&at, message).help("rename one of them"));
                }
                None => drop(taken.insert(Arc::clone(name), at)),
            };
        for McpSection { name, .. } in &part.declared.mcp {
            take(&mut servers, "an MCP server", &name.value, name.at.clone());
        }
        for HubSection { name, .. } in &part.declared.hubs {
            take(&mut hubs, "a hub", &name.value, name.at.clone());
        }
        for (name, at) in part.skills.places(&part.root) {
            take(&mut skills, "a skill", name, at);
        }
    }
}

/// Records hubs of plugins whose prefix matches other names: the plugin of a hub's tool is derived
/// from the prefix of its name.
pub(crate) fn report_captured_names(parts: &[Part], problems: &Problems) {
    for (part, plugin) in parts.iter().filter_map(|part| Some((part, part.plugin_id()?))) {
        for hub in &part.declared.hubs {
            let prefix = hub.prefix();
            let others = parts.iter().filter(|other| other.plugin_id() != Some(plugin));
            let taken = others
                .flat_map(|other| {
                    let names = other.declared.tools.iter().filter_map(|tool| tool.name.as_ref());
                    let names = names.map(|name| Arc::from(name.value.as_str()));
                    names.chain(other.declared.hubs.iter().map(HubSection::prefix))
                })
                .chain(SKILL_TOOLS.into_iter().chain(ARTIFACT_TOOLS).chain([REMOTE]).map(Arc::from))
                .find(|name: &Arc<str>| name.starts_with(&*prefix));
            let Some(taken) = taken.filter(|_| !is_mcp_name(&prefix)) else { continue };
            let message = format!(
                "`{taken}` begins with the prefix `{prefix}` of the hub `{}` and does not belong \
                 to the plugin `{plugin}`",
                hub.name.value
            );
            let at = hub.prefix_place().unwrap_or(&hub.name.at);
            let help = format!("write another prefix, such as prefix = \"{plugin}_\"");
            problems.push(Diagnostic::error(at, message).help(help));
        }
    }
}

/// Records tools and hubs with names or toolsets of MCP servers: rules match servers by them.
pub(crate) fn report_false_origins(parts: &[Part], problems: &Problems) {
    let names = format!("the prefix `{REMOTE}` is reserved for tools of MCP servers");
    let toolset = |name: &str| format!("the toolset `{name}` is reserved for tools of MCP servers");
    for part in parts {
        for tool in &part.declared.tools {
            let Some(name) = &tool.name else { continue };
            if is_mcp_name(name.value.as_str()) {
                problems.push(Diagnostic::error(&name.at, &*names).help("rename the tool"));
            }
            let declared = tool.declaration.toolset.as_deref();
            if let Some(reserved) = declared.filter(|name| is_mcp_toolset(name)) {
                let help = format!("give `{}` another toolset", name.value);
                problems.push(Diagnostic::error(&name.at, toolset(reserved)).help(help));
            }
        }
        for hub in &part.declared.hubs {
            if is_mcp_name(&hub.prefix()) {
                let at = hub.prefix_place().unwrap_or(&hub.name.at);
                let help = part.plugin_id().map_or("hub", |plugin| plugin);
                let help = format!("write another prefix, such as prefix = \"{help}_\"");
                problems.push(Diagnostic::error(at, &*names).help(help));
            }
            if is_mcp_toolset(&hub.name.value) {
                let help = "rename the hub; its name is the toolset of its tools";
                problems.push(Diagnostic::error(&hub.name.at, toolset(&hub.name.value)).help(help));
            }
        }
    }
}
