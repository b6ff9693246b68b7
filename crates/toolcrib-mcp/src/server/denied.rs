//! Denials in an editor's settings next to a file's servers: `permissions` of Claude Code, and the
//! `projects` of its user file.

use std::{path::Path, sync::Arc};

use super::{
    json::{Object, Value, quoted},
    narrow::{FileTools, texts},
};

/// Rules on tools of MCP servers, as written: `mcp__SERVER`, `mcp__SERVER__TOOL`.
#[derive(Default)]
pub(super) struct DenyRules<'a>(Vec<&'a str>);

const PREFIX: &str = "mcp__";

/// The denials of a settings file for one server.
pub(super) enum Denial<'a> {
    Nothing,
    /// The whole server.
    Server,
    /// A pattern, which may match any of its tools.
    Pattern(&'a str),
    Tools(Vec<Arc<str>>),
}

impl<'a> DenyRules<'a> {
    /// Reads `permissions`. An unsupported rule about MCP is recorded.
    pub(super) fn read(file: &Object<'a>) -> Self {
        let mut denied = Self::default();
        let Some(permissions) = file.value("permissions") else { return denied };
        let Some(permissions) = permissions.object() else { return denied };
        // A call that requires a question is denied: no question is possible here.
        for key in ["deny", "ask"] {
            let Some(rules) = permissions.value(key) else { continue };
            for rule in rules.items().iter().flatten() {
                let Some(text) = rule.text() else { continue };
                if text.starts_with(PREFIX) || text.starts_with('*') {
                    denied.0.push(text);
                } else if text.to_ascii_lowercase().starts_with("mcp") {
                    let message = format!(
                        "{} in `permissions` may deny tools, and is not supported here",
                        quoted(text)
                    );
                    rule.refuse(message, "write it as `mcp__SERVER` or `mcp__SERVER__TOOL`");
                }
            }
        }
        denied
    }

    /// The denials for a server.
    pub(super) fn of(&self, server: &str) -> Denial<'a> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name: String = server.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let (server, tools) = (format!("{PREFIX}{name}"), format!("{PREFIX}{name}__"));
        let mut denied = Vec::new();
        for rule in &self.0 {
            // Arguments of a rule are ignored: the whole tool is denied.
            let rule = rule.split('(').next().unwrap_or_default();
            let before = rule.split('*').next().unwrap_or_default();
            let is_pattern = before.len() < rule.len();
            match rule.strip_prefix(&tools) {
                _ if rule == server || is_pattern && tools.starts_with(before) => {
                    return Denial::Server;
                }
                Some(_) if is_pattern => return Denial::Pattern(rule),
                Some(tool) => denied.push(tool.into()),
                None => {}
            }
        }
        if denied.is_empty() { Denial::Nothing } else { Denial::Tools(denied) }
    }
}

impl Denial<'_> {
    /// Applies them to the tools that the file allows. A pattern is recorded at its entry.
    pub(super) fn apply(self, tools: &mut FileTools, entry: &Value<'_>) {
        match self {
            Self::Nothing => {}
            Self::Server => tools.only = Some(Vec::new()),
            Self::Tools(denied) => tools.except.extend(denied),
            Self::Pattern(rule) => entry.refuse(
                format!(
                    "{} in `permissions` is a pattern, which is not supported here",
                    quoted(rule)
                ),
                "list the tools in `excludeTools` of the server",
            ),
        }
    }
}

/// The servers that the `projects` of a file disable for a folder, or for one above it.
pub(super) fn off_in_projects<'a>(file: &Object<'a>, folder: &Path) -> Vec<&'a str> {
    let Some(projects) = file.value("projects") else { return Vec::new() };
    let projects = projects.object();
    let here = projects.iter().flat_map(Object::entries);
    let here = here.filter(|(path, _)| folder.starts_with(path.value));
    let off = here.filter_map(|(_, project)| project.object()).flat_map(|project| {
        ["disabledMcpServers", "disabledMcpjsonServers"]
            .into_iter()
            .filter_map(|key| project.value(key))
            .flat_map(|list| texts(&list))
            .collect::<Vec<_>>()
    });
    off.collect()
}
