//! Builds personalities: resolves names, reads texts and models.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;
use toolcrib_capabilities::http::{HostPattern, may_reach};
use toolcrib_config::{Diagnostic, Located, Problems, Spot, suggest};
use toolcrib_core::{Glob, Model, NetworkRules, Tool, ToolContext};
use toolcrib_engine::Personality;
use toolcrib_tools::ExternalAccess;

use super::{model::ModelSources, policy::check_pattern};
use crate::{
    bind::{
        addresses::host_of,
        alternatives::{SourceName, is_of_source, is_of_tools, warn_of_unnamed},
        located::{is_declared, values},
        names::Names,
        part::Part,
    },
    file::{NetworkSection, PersonalitySection, TeamSection},
    read::{root::Root, system::system_text},
};

/// A declared personality, and its own model, if any.
#[derive(Clone)]
pub(crate) struct DeclaredPersonality {
    pub(crate) personality: Personality,
    pub(crate) model: Option<Arc<dyn Model>>,
    /// The position of its network rules; the section's if there are none.
    network_at: Spot,
}

/// The inputs to build declared personalities. Problems are recorded.
pub(crate) struct PersonalitySources<'a> {
    pub(crate) root: &'a Root,
    pub(crate) names: &'a Names,
    /// The sources of models; `None` if another model replaces all that the project names.
    pub(crate) models: Option<&'a ModelSources<'a>>,
    pub(crate) problems: &'a Problems,
}

impl PersonalitySources<'_> {
    pub(crate) fn build(
        &self,
        sections: &[PersonalitySection],
        teams: &[TeamSection],
    ) -> Vec<DeclaredPersonality> {
        report_duplicates(sections, self.problems);
        let mut built = sections.iter().filter_map(|section| self.one(section)).collect();
        for team in teams {
            self.join(team, &mut built);
        }
        built
    }

    /// Makes personalities members of a team.
    fn join(&self, team: &TeamSection, built: &mut Vec<DeclaredPersonality>) {
        for member in &team.members {
            if !is_declared(member, "personality", &self.names.personalities, self.problems) {
                continue;
            }
            let known = built.iter().position(|one| one.personality.id == member.value);
            // The default one need not be declared.
            let at = known.unwrap_or_else(|| {
                built.push(DeclaredPersonality {
                    personality: Personality::new(Arc::clone(&member.value)),
                    model: None,
                    network_at: member.at.clone(),
                });
                built.len() - 1
            });
            let Some(DeclaredPersonality { personality, .. }) = built.get_mut(at) else { continue };
            match personality.team.replace(Arc::clone(&team.name.value)) {
                Some(other) if other != team.name.value => {
                    let message = format!("`{}` is a member of the team `{other}`", member.value);
                    let help =
                        "a personality is a member of one team; declare a second personality";
                    self.problems.push(Diagnostic::error(&member.at, message).help(help));
                }
                _ => {}
            }
        }
    }

    fn one(&self, section: &PersonalitySection) -> Option<DeclaredPersonality> {
        let Self { names, problems, .. } = *self;
        let known = |listed: &Option<Vec<_>>, kind, declared: &[_]| {
            listed.iter().flatten().for_each(|name| {
                is_declared(name, kind, declared, problems);
            });
            listed.as_deref().map(values)
        };
        let own = section.toolset.iter().flatten();
        own.for_each(|name| self.check_own(name));
        for pattern in &section.exclude {
            if !names.is_remote(pattern, problems) {
                let is_known = names.may_be_remote(&pattern.value);
                check_pattern(pattern, "tool", &names.all_tools(), is_known, problems);
            }
        }
        let (servers, hubs) = (&names.alternatives.servers, &names.alternatives.hubs);
        let reached = section.mcp_servers.as_deref().unwrap_or_default();
        warn_of_unnamed(reached, servers, is_of_source, problems);
        let reached = section.toolset.as_deref().unwrap_or_default();
        let is_of_either =
            |name: &str, hub: &SourceName| is_of_source(name, hub) || is_of_tools(name, hub);
        warn_of_unnamed(reached, hubs, is_of_either, problems);
        warn_of_unnamed(&section.exclude, servers.iter().chain(hubs), is_of_tools, problems);
        // One without a name, which is recorded, is still checked.
        let name = section.name.as_ref().map(|name| Arc::clone(&name.value));
        let mut personality = Personality::new(name.clone().unwrap_or_default());
        personality.exclude = values(&section.exclude).into_iter().map(Glob::new).collect();
        personality.toolset = section.toolset.as_deref().map(values);
        for server in section.mcp_servers.iter().flatten() {
            if !names.has_server(&server.value) {
                is_declared(server, "MCP server", &names.servers, problems);
            }
        }
        personality.mcp_servers = section.mcp_servers.as_deref().map(values);
        personality.plugins = known(&section.plugins, "plugin", &names.plugins);
        personality.network = Arc::new(network_rules(&section.network, problems));
        personality.files = known(&section.files, "folder", &names.folders).map(Into::into);
        personality.system =
            section.system.as_ref().and_then(|text| system_text(text, self.root, problems));
        let named = section.model.as_ref().zip(self.models);
        let model = named.and_then(|(model, models)| {
            personality.model = Some(Arc::clone(&model.value));
            models.load(model)
        });
        let network_at = section.network.at.clone().unwrap_or_else(|| section.at.clone());
        name.map(|_| DeclaredPersonality { personality, model, network_at })
    }

    /// Checks a name in `toolset`: a tool or toolset of the project. MCP servers have a separate
    /// key, and their names here would have no effect.
    fn check_own(&self, name: &Located<Arc<str>>) {
        let Self { names, problems, .. } = *self;
        let known = || names.own_tools().map(|name| &**name);
        let plugin = names.plugin_of(&name.value);
        // A hub's tools are unknown before it is queried; their prefix is known.
        let is_of_a_hub = || names.is_of_a_server(&name.value) && !names.is_of_servers(&name.value);
        let is_own = known().any(|known| *known == *name.value);
        if is_own || plugin.is_none() && is_of_a_hub() {
            return;
        }
        let (message, help) = if let Some(plugin) = plugin {
            (
                format!("`{}` belongs to a plugin, to which `toolset` does not apply", name.value),
                format!("name the plugin in `plugins`: [\"{plugin}\"]"),
            )
        } else if names.is_of_servers(&name.value) {
            (
                format!(
                    "`{}` belongs to MCP servers, to which `toolset` does not apply",
                    name.value
                ),
                "name the servers in `mcp_servers`".to_owned(),
            )
        } else {
            (
                format!("unknown tool or toolset `{}`", name.value),
                suggest::help(&name.value, "tools and toolsets", known()),
            )
        };
        problems.push(Diagnostic::error(&name.at, message).help(help));
    }
}

fn report_duplicates(sections: &[PersonalitySection], problems: &Problems) {
    let mut places = HashMap::new();
    for name in sections.iter().filter_map(|section| section.name.as_ref()) {
        if let Some(first) = places.get(&name.value) {
            let message =
                format!("two personalities are named `{}`; the first is at {first}", name.value);
            problems.push(Diagnostic::error(&name.at, message).help("rename one of them"));
        } else {
            places.insert(&name.value, &name.at);
        }
    }
}

/// Invalid hosts are recorded.
fn network_rules(section: &NetworkSection, problems: &Problems) -> NetworkRules {
    for text in section.allow.iter().flatten().chain(&section.deny) {
        if let Err(error) = text.value.parse::<HostPattern>() {
            problems.push(Diagnostic::error(&text.at, error.to_string()));
        }
    }
    NetworkRules { allow: section.allow.as_deref().map(values), deny: values(&section.deny) }
}

/// Reports each hub with tools that a personality reaches although its network rules deny the hub's
/// host. A hub's tools are unknown, so one example name is used.
pub(crate) fn report_unreachable_hubs(
    personalities: &[DeclaredPersonality],
    parts: &[Part],
    problems: &Problems,
) {
    for (plugin, hub) in Part::hubs(parts) {
        let (prefix, hub_name) = (hub.prefix(), &hub.name.value);
        let Some(host) = hub.hub.call_url().and_then(host_of) else { continue };
        let Ok(parsed) = host.parse() else { continue };
        let tool = |name: &str| {
            let tool =
                Tool::builder(name).description("An example tool.").toolset(Arc::clone(hub_name));
            let tool = tool.handler(|_: Value, _: ToolContext| async { "" }).ok()?;
            Some(plugin.map_or_else(|| tool.clone(), |plugin| tool.with_plugin(plugin)))
        };
        for DeclaredPersonality { personality, network_at, .. } in personalities {
            if may_reach(&personality.network, &parsed).ok() != Some(false) {
                continue;
            }
            let listed = personality.toolset.iter().flatten().map(|name| &**name);
            let mut names = listed
                .filter(|name| name.starts_with(&*prefix))
                .map(str::to_owned)
                .collect::<Vec<_>>();
            names.push(format!("{prefix}x"));
            let mut tools = names.iter().filter_map(|name| tool(name));
            if tools.any(|tool| personality.reaches(&tool)) {
                let message = format!(
                    "personality `{}` reaches tools of the hub `{hub_name}`, but its `network` \
                     denies them `{host}`",
                    personality.id,
                );
                let help = format!(
                    "permit the host with network.allow and network.deny, or exclude the tools: \
                     exclude = [\"{prefix}*\"]"
                );
                problems.push(Diagnostic::error(network_at, message).help(help));
            }
        }
    }
}

/// Reports each tool that a personality reaches although its network rules deny the tool's host: it
/// would be offered, and every call refused.
pub(crate) fn report_unreachable_hosts(
    personalities: &[DeclaredPersonality],
    tools: &[Tool],
    parts: &[Part],
    problems: &Problems,
) {
    let hosts: Vec<_> = Part::tools(parts)
        .filter_map(|section| {
            let accesses = section.kind.as_ref()?.external_access();
            let host = accesses.into_iter().find_map(|access| match access {
                ExternalAccess::Host { url, .. } => host_of(url),
                _ => None,
            });
            Some((section.name.as_ref()?, host?))
        })
        .collect();
    for DeclaredPersonality { personality, network_at, .. } in personalities {
        for (name, host) in &hosts {
            let reached = tools.iter().any(|tool| {
                tool.name().as_str() == name.value.as_str() && personality.reaches(tool)
            });
            let may_ask =
                host.parse().ok().and_then(|host| may_reach(&personality.network, &host).ok());
            if reached && may_ask == Some(false) {
                let message = format!(
                    "personality `{}` reaches the tool `{}`, but its `network` denies it `{host}`",
                    personality.id, name.value
                );
                let help = format!(
                    "permit the host with network.allow and network.deny, or exclude the tool: \
                     exclude = [\"{}\"]",
                    name.value
                );
                problems.push(Diagnostic::error(network_at, message).help(help));
            }
        }
    }
}
