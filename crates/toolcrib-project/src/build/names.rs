//! The names that a project declares, broken parts included: a broken tool is reported once, and
//! not again by each section that names it.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, suggest};
use toolcrib_engine::READ_SKILL;

use super::mcp::McpFiles;
use crate::{config::ProjectFile, skills::SkillFolders};

/// What the names of all tools of MCP servers begin with.
const REMOTE: &str = "mcp__";
/// What stands between the name of a server and that of its tool; no server has it in its name.
const BETWEEN: &str = "__";
/// The toolset of all tools of MCP servers.
const REMOTE_TOOLSET: &str = "mcp";

/// The names that a project declares.
#[derive(Debug)]
pub(crate) struct Names {
    /// The tools, without `read_skill`.
    pub(crate) tools: Vec<Arc<str>>,
    pub(crate) toolsets: Vec<Arc<str>>,
    pub(crate) skills: Vec<Arc<str>>,
    pub(crate) roles: Vec<Arc<str>>,
    pub(crate) secrets: Vec<Arc<str>>,
    /// The MCP servers, of sections and of files.
    pub(crate) servers: Vec<Arc<str>>,
    /// The models that have a name of the project's own.
    pub(crate) models: Vec<Arc<str>>,
}

impl Names {
    pub(crate) fn of(file: &ProjectFile, skills: &SkillFolders, mcp: &McpFiles) -> Self {
        let sections = file.mcp.iter().map(|section| Arc::clone(&section.name.value));
        let mut servers: Vec<_> = sections.chain(mcp.names()).collect();
        servers.sort();
        servers.dedup();
        let mut toolsets: Vec<_> =
            file.tools.iter().filter_map(|tool| tool.toolset.clone()).collect();
        toolsets.extend((!servers.is_empty()).then(|| REMOTE_TOOLSET.into()));
        toolsets.sort();
        toolsets.dedup();
        Self {
            tools: file
                .tools
                .iter()
                .filter_map(|tool| tool.name.as_ref())
                .map(|name| name.value.as_str().into())
                .collect(),
            toolsets,
            skills: skills.names.clone(),
            roles: file
                .policy
                .roles
                .iter()
                .filter_map(|role| role.name.as_ref())
                .map(|name| Arc::clone(&name.value))
                .collect(),
            secrets: file.secrets.iter().map(|secret| Arc::clone(&secret.name.value)).collect(),
            servers,
            models: file.models.iter().map(|model| Arc::clone(&model.name.value)).collect(),
        }
    }

    /// The tools, with `read_skill` if it will be offered.
    pub(crate) fn tools_and_read_skill(&self) -> Vec<Arc<str>> {
        let read_skill = (!self.skills.is_empty()).then(|| READ_SKILL.into());
        self.tools.iter().cloned().chain(read_skill).collect()
    }

    /// Whether a name is that of a tool of an MCP server: which tools it has is not known before it
    /// is asked. Begins the name or pattern like one and no server is called so, that is recorded.
    pub(crate) fn is_remote(&self, name: &Located<Arc<str>>, problems: &Problems) -> bool {
        let Some((server, tool)) = parts_of_remote(&name.value) else { return false };
        if !self.has_server(server) {
            let message = format!("there is no MCP server {}", suggest::quoted([server]));
            let servers = || self.servers.iter().map(|server| &**server);
            let help = match suggest::nearest(server, servers()) {
                Some(near) => {
                    format!("did you mean `{REMOTE}{near}{BETWEEN}{}`?", tool.escape_debug())
                }
                None if self.servers.is_empty() => {
                    format!(
                        "write `[mcp.{}]`, and below it `command` or `url`",
                        server.escape_debug()
                    )
                }
                None => suggest::help(server, "MCP servers", servers()),
            };
            problems.push(Diagnostic::error(&name.at, message).help(help));
        }
        true
    }

    /// Whether a name is that of a tool of an MCP server of the project.
    pub(crate) fn is_of_a_server(&self, name: &str) -> bool {
        parts_of_remote(name).is_some_and(|(server, _)| self.has_server(server))
    }

    /// Whether some tool of some MCP server may match a pattern.
    pub(crate) fn may_be_remote(&self, pattern: &str) -> bool {
        let literal = pattern.split(['*', '?']).next().unwrap_or_default();
        self.servers.iter().any(|server| {
            let start = format!("{REMOTE}{server}{BETWEEN}");
            start.starts_with(literal) || literal.starts_with(&start)
        })
    }

    fn has_server(&self, name: &str) -> bool {
        self.servers.iter().any(|server| **server == *name)
    }
}

/// The server and its tool, of a name or pattern that says which server it is.
fn parts_of_remote(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.strip_prefix(REMOTE)?.split_once(BETWEEN)?;
    (!server.contains(['*', '?'])).then_some((server, tool))
}

/// Whether a name is among those declared; if not, that is recorded. `kind` says what it names,
/// in the singular.
pub(crate) fn is_declared(
    name: &Located<Arc<str>>,
    kind: &str,
    declared: &[Arc<str>],
    problems: &Problems,
) -> bool {
    let known = declared.contains(&name.value);
    if !known {
        let help = suggest::help(&name.value, &format!("{kind}s"), declared.iter().map(|n| &**n));
        problems.push(
            Diagnostic::error(&name.at, format!("there is no {kind} `{}`", name.value)).help(help),
        );
    }
    known
}
