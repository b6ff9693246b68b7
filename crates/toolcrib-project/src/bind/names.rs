//! The names that a project declares, including those of invalid parts: an invalid tool is reported
//! once, and not again by each section that names it.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value as Json;
use toolcrib_artifacts::ARTIFACT_TOOLS;
use toolcrib_config::{Diagnostic, Located, Problems, suggest};
use toolcrib_engine::{
    CALL_TOOL, DEACTIVATE_SKILL, DEFAULT_PERSONALITY, LIST_SKILLS, READ_SKILL, SEARCH_TOOLS,
    SKIP_STEP,
};

use super::{
    alternatives::Alternatives,
    grant::Grant,
    located::values,
    mcp_files::McpFiles,
    part::Part,
    remote::{BETWEEN, REMOTE, REMOTE_TOOLSETS, may_begin, parts_of_remote, remote_prefix},
    sandbox::SandboxDefaults,
};
use crate::{
    file::{Input, PersonalitySection, ProjectFile, ToolSection},
    user::state::StateFolder,
};

/// The names that a project and its plugins declare.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// The tools, without built-in ones such as `read_skill` and `artifact_read`.
    pub(crate) tools: Vec<Arc<str>>,
    /// The parameters of those tools whose schema is in the file.
    pub(crate) parameters: HashMap<Arc<str>, Vec<Arc<str>>>,
    pub(crate) toolsets: Vec<Arc<str>>,
    /// The tools and toolsets, each with its plugin, if any; the project's own first.
    of_parts: Vec<(Arc<str>, Option<Arc<str>>)>,
    pub(crate) skills: Vec<Arc<str>>,
    /// The built-in tools for skills, artifacts and deferred tools, if they may be offered.
    framework_tools: Vec<Arc<str>>,
    pub(crate) roles: Vec<Arc<str>>,
    pub(crate) secrets: Vec<Arc<str>>,
    /// The MCP servers, of sections and of files.
    pub(crate) servers: Vec<Arc<str>>,
    /// Whether a file of servers could not be read.
    may_lack_servers: bool,
    /// The hubs.
    pub(crate) hubs: Vec<Arc<str>>,
    /// The prefix of each hub's tool names, with the hub's plugin, if any.
    hub_prefixes: Vec<(Arc<str>, Option<Arc<str>>)>,
    /// The MCP servers and hubs that replace others on failure.
    pub(crate) alternatives: Alternatives,
    /// The declared folders.
    pub(crate) folders: Vec<Arc<str>>,
    /// The models with a project name.
    pub(crate) models: Vec<Arc<str>>,
    /// The plugins, including those added in code.
    pub(crate) plugins: Vec<Arc<str>>,
    /// The grant of the part that these names are for.
    pub(crate) grant: Option<Arc<Grant>>,
    /// The personalities, including the default one.
    pub(crate) personalities: Vec<Arc<str>>,
    /// The teams, each with its members.
    pub(crate) teams: Vec<(Arc<str>, Vec<Arc<str>>)>,
    /// The parts of every program's sandbox.
    pub(crate) sandboxes: SandboxDefaults,
}

impl Names {
    /// `of_code`: the plugins that are added in code.
    pub(crate) fn of(
        file: &ProjectFile,
        parts: &[Part],
        mcp: &McpFiles,
        of_code: &[Arc<str>],
        state: &StateFolder,
    ) -> Self {
        let sections = parts.iter().flat_map(|part| &part.declared.mcp);
        let sections = sections.map(|section| Arc::clone(&section.name.value));
        let mut servers: Vec<_> = sections.chain(mcp.names()).collect();
        servers.sort();
        servers.dedup();
        let mut toolsets: Vec<_> = parts.iter().flat_map(toolsets).collect();
        if !servers.is_empty() {
            toolsets.extend(REMOTE_TOOLSETS.map(Arc::from));
        }
        toolsets.sort();
        toolsets.dedup();
        let hubs = || Part::hubs(parts);
        let skills = parts.iter().flat_map(|part| part.skills.names.iter().cloned());
        Self {
            tools: parts.iter().flat_map(tools).collect(),
            parameters: parameters(parts),
            toolsets,
            of_parts: parts.iter().flat_map(of_part).collect(),
            framework_tools: framework_tools(file, parts),
            skills: skills.collect(),
            roles: file
                .policy
                .roles
                .iter()
                .filter_map(|role| role.name.as_ref())
                .map(|name| Arc::clone(&name.value))
                .collect(),
            secrets: file.secrets.iter().map(|secret| Arc::clone(&secret.name.value)).collect(),
            servers,
            may_lack_servers: mcp.is_incomplete,
            hubs: hubs().map(|(_, hub)| Arc::clone(&hub.name.value)).collect(),
            hub_prefixes: hubs().map(|(plugin, hub)| (hub.prefix(), plugin.cloned())).collect(),
            alternatives: Alternatives::of(parts),
            folders: file.files.iter().map(|files| Arc::clone(&files.name.value)).collect(),
            models: file.models.iter().map(|model| Arc::clone(&model.name.value)).collect(),
            plugins: parts.iter().filter_map(Part::plugin_id).chain(of_code).cloned().collect(),
            sandboxes: SandboxDefaults::new(&file.sandbox, state),
            grant: None,
            personalities: personalities(&file.personalities),
            teams: file
                .teams
                .iter()
                .map(|team| (Arc::clone(&team.name.value), values(&team.members)))
                .collect(),
        }
    }

    /// The same for one part: a plugin sees only the secrets that are granted to it.
    pub(crate) fn seen_by(&self, part: &Part) -> Self {
        let mut seen = Self { grant: part.grant.clone(), ..self.clone() };
        if let Some(grant) = &seen.grant {
            seen.secrets.retain(|secret| grant.secrets().contains(secret));
        }
        seen
    }

    /// The plugin of a tool or toolset. The project's own tools have none, whatever the prefixes of
    /// hubs are.
    pub(crate) fn plugin_of(&self, name: &str) -> Option<&Arc<str>> {
        if self.framework_tools.iter().any(|tool| **tool == *name) {
            return None;
        }
        let exactly = self.of_parts.iter().find(|(of_part, _)| **of_part == *name);
        let of_hub = || self.hub_prefixes.iter().find(|(prefix, _)| name.starts_with(&**prefix));
        exactly.or_else(of_hub)?.1.as_ref()
    }

    /// The tools, with the built-in ones that may be offered.
    pub(crate) fn all_tools(&self) -> Vec<Arc<str>> {
        self.tools.iter().chain(&self.framework_tools).cloned().collect()
    }

    /// Whether a name is that of a tool of an MCP server, whose tools are unknown before it is
    /// queried. A name or pattern with the prefix of an unknown server is recorded.
    pub(crate) fn is_remote(&self, name: &Located<Arc<str>>, problems: &Problems) -> bool {
        if self.is_of_a_hub(&name.value) {
            return true;
        }
        let Some((server, tool)) = parts_of_remote(&name.value) else { return false };
        if !self.has_server(server) {
            let message = format!("unknown MCP server {}", suggest::quoted([server]));
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
        self.is_of_a_hub(name)
            || parts_of_remote(name).is_some_and(|(server, _)| self.has_server(server))
    }

    /// Whether some tool of some MCP server may match a pattern.
    pub(crate) fn may_be_remote(&self, pattern: &str) -> bool {
        self.hub_prefixes.iter().any(|(prefix, _)| may_begin(pattern, prefix))
            || self.servers.iter().any(|server| may_begin(pattern, &remote_prefix(server)))
    }

    /// Whether a name is that of a tool of MCP servers, or one of their toolsets.
    pub(crate) fn is_of_servers(&self, name: &str) -> bool {
        REMOTE_TOOLSETS.contains(&name) || name.starts_with(REMOTE)
    }

    /// The tools and toolsets that the project itself declares.
    pub(crate) fn own_tools(&self) -> impl Iterator<Item = &Arc<str>> {
        let toolsets = self.toolsets.iter().filter(|name| !REMOTE_TOOLSETS.contains(&&***name));
        self.tools.iter().chain(toolsets).filter(|name| self.plugin_of(name).is_none())
    }

    /// Whether the personality exists; if not, that is recorded.
    pub(crate) fn is_personality(&self, name: &Located<Arc<str>>, problems: &Problems) -> bool {
        let known = self.personalities.contains(&name.value);
        if !known {
            let message = format!("unknown personality `{}`", name.value);
            let all = self.personalities.iter().map(|name| &**name);
            let help = suggest::help(&name.value, "personalities", all);
            problems.push(Diagnostic::error(&name.at, message).help(help));
        }
        known
    }

    fn is_of_a_hub(&self, name: &str) -> bool {
        self.hub_prefixes.iter().any(|(prefix, _)| name.starts_with(&**prefix))
    }

    /// Whether a server is declared, or may be by a file that could not be read. A name that is nearly
    /// that of a declared one is a mistake in any case.
    pub(crate) fn has_server(&self, name: &str) -> bool {
        let servers = || self.servers.iter().map(|server| &**server);
        servers().any(|server| server == name)
            || (self.may_lack_servers && suggest::nearest(name, servers()).is_none())
    }
}

fn personalities(sections: &[PersonalitySection]) -> Vec<Arc<str>> {
    let declared = sections.iter().filter_map(|section| section.name.as_ref());
    let mut all: Vec<_> = declared.map(|name| Arc::clone(&name.value)).collect();
    if !all.iter().any(|name| **name == *DEFAULT_PERSONALITY) {
        all.insert(0, DEFAULT_PERSONALITY.into());
    }
    all
}

fn tools(part: &Part) -> impl Iterator<Item = Arc<str>> {
    let names = part.declared.tools.iter().filter_map(|tool| tool.name.as_ref());
    names.map(|name| name.value.as_str().into())
}

fn toolsets(part: &Part) -> impl Iterator<Item = Arc<str>> {
    let hubs = part.declared.hubs.iter().map(|hub| Arc::clone(&hub.name.value));
    part.declared.tools.iter().filter_map(|tool| tool.declaration.toolset.clone()).chain(hubs)
}

/// The tools and toolsets of a part, each with the part's plugin.
fn of_part(part: &Part) -> impl Iterator<Item = (Arc<str>, Option<Arc<str>>)> {
    tools(part).chain(toolsets(part)).map(|name| (name, part.plugin_id().cloned()))
}

fn parameters(parts: &[Part]) -> HashMap<Arc<str>, Vec<Arc<str>>> {
    let of = |tool: &ToolSection| {
        let names = match &tool.input {
            Input::None => Vec::new(),
            Input::OfKind => properties(&tool.declaration.input_schema)?,
            Input::Params(schema) => properties(schema)?,
            Input::File(_) | Input::Broken => return None,
        };
        Some((tool.name.as_ref()?.value.as_str().into(), names))
    };
    Part::tools(parts).filter_map(of).collect()
}

fn properties(schema: &Json) -> Option<Vec<Arc<str>>> {
    let properties = schema.get("properties")?.as_object()?;
    Some(properties.keys().map(|name| name.as_str().into()).collect())
}

fn framework_tools(file: &ProjectFile, parts: &[Part]) -> Vec<Arc<str>> {
    let has_skills = parts.iter().any(|part| !part.skills.names.is_empty());
    let mut skills = parts.iter().flat_map(|part| &part.skills.skills);
    let has_steps = skills.any(|skill| !skill.steps.is_empty());
    let wanted = Option::unwrap_or_default;
    let of_skills = [
        (READ_SKILL, true),
        (LIST_SKILLS, wanted(file.skills.list_skills)),
        (DEACTIVATE_SKILL, wanted(file.skills.deactivate_skill)),
        (SKIP_STEP, has_steps),
    ];
    let of_skills = of_skills.into_iter().filter(|(_, is_there)| has_skills && *is_there);
    let of_artifacts = ARTIFACT_TOOLS.into_iter().filter(|_| file.artifacts.is_some());
    let may_defer = file.tool_search.may_defer(parts.iter().map(|part| &part.declared));
    let of_search = [SEARCH_TOOLS, CALL_TOOL].into_iter().filter(|_| may_defer);
    let of_skills = of_skills.map(|(name, _)| name);
    of_skills.chain(of_artifacts).chain(of_search).map(Arc::from).collect()
}
