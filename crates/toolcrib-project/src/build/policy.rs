//! Roles and rules.

use std::{collections::HashMap, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems};
use toolcrib_core::{Effect, Glob, Policy, Roles, Rule, RuleConditions, SkillId, ToolMatch};

use crate::{
    bind::{
        alternatives::{is_of_source, is_of_tools, warn_of_unnamed},
        located::{is_declared, values},
        names::Names,
    },
    file::{PolicySection, RoleSection, RuleSection},
};

pub(crate) fn build_policy(section: &PolicySection, names: &Names, problems: &Problems) -> Policy {
    let rules = section.rules.iter().enumerate();
    Policy {
        rules: rules
            .filter_map(|(position, rule)| build_rule(position + 1, rule, names, problems))
            .collect(),
        default: section.default,
        roles: build_roles(&section.roles, problems),
    }
}

fn build_roles(sections: &[RoleSection], problems: &Problems) -> Roles {
    let mut roles = Roles::default();
    let mut places = HashMap::new();
    for role in sections {
        let Some(name) = &role.name else { continue };
        if let Some(first) = places.get(&*name.value) {
            let message =
                format!("role `{}` is declared twice; the first is at {first}", name.value);
            let help = "put all its principals into one list";
            problems.push(Diagnostic::error(&name.at, message).help(help));
        } else {
            places.insert(&*name.value, &name.at);
        }
        let declared = roles.holders_mut(Arc::clone(&name.value));
        declared.principals.extend(role.principals.iter().cloned());
        declared.tenants.extend(role.tenants.iter().cloned());
        declared.claims.extend(role.claims.iter().cloned());
    }
    roles
}

/// `None` only if the effect is unknown, which is recorded; a rule with other problems is still
/// built, and the project does not load.
fn build_rule(
    number: usize,
    section: &RuleSection,
    names: &Names,
    problems: &Problems,
) -> Option<Rule> {
    check_tools(&section.tools, names, problems);
    for pattern in &section.toolsets {
        check_pattern(pattern, "toolset", &names.toolsets, false, problems);
    }
    for pattern in &section.mcp_servers {
        if !names.has_server(&pattern.value) {
            check_pattern(pattern, "MCP server", &names.servers, false, problems);
        }
    }
    for pattern in &section.origins {
        check_origin(pattern, names, problems);
    }
    warn_of_alternatives(section, names, problems);
    for pattern in &section.plugins {
        check_pattern(pattern, "plugin", &names.plugins, false, problems);
    }
    for personality in &section.personalities {
        is_declared(personality, "personality", &names.personalities, problems);
    }
    let personalities = personalities(section, names, problems);
    check_arguments(section, names, problems);
    check_words(section, problems);
    for role in &section.roles {
        is_declared(role, "role", &names.roles, problems);
    }
    for skill in &section.skills {
        is_declared(skill, "skill", &names.skills, problems);
    }
    let globs = |texts: &[_]| values(texts).into_iter().map(Glob::new).collect();
    Some(Rule {
        label: format!("policy rule {number} ({})", section.at).into(),
        effect: section.effect?,
        reason: section.reason.clone(),
        model_message: section.model_message.as_ref().map(|text| Arc::clone(&text.value)),
        tools: ToolMatch {
            names: globs(&section.tools),
            toolsets: globs(&section.toolsets),
            origins: globs(&section.origins),
            mcp_servers: globs(&section.mcp_servers),
            plugins: globs(&section.plugins),
            annotations: section.annotations,
        },
        when: RuleConditions {
            skills: values(&section.skills).into_iter().flat_map(SkillId::new).collect(),
            listed_by_active_skill: section.listed_by_active_skill,
            roles: values(&section.roles),
            tenants: section.tenants.clone(),
            principals: section.principals.clone(),
            personalities,
            iteration: section.iteration,
            tainted: section.tainted,
            arguments: section.arguments.iter().map(|one| one.condition.clone()).collect(),
        },
    })
}

/// The personalities that a rule applies to: the members of its teams, of those that it names; all if
/// it names neither.
fn personalities(section: &RuleSection, names: &Names, problems: &Problems) -> Vec<Arc<str>> {
    let named = values(&section.personalities);
    if section.teams.is_empty() {
        return named;
    }
    let known: Vec<_> = names.teams.iter().map(|(team, _)| Arc::clone(team)).collect();
    let mut members = Vec::new();
    for team in &section.teams {
        is_declared(team, "team", &known, problems);
        let of_team = names.teams.iter().filter(|(name, _)| *name == team.value);
        members.extend(of_team.flat_map(|(_, members)| members.iter().cloned()));
    }
    members.retain(|member| named.is_empty() || named.contains(member));
    if members.is_empty() {
        let message =
            "the rule applies to no personality: no member of its teams is in `personality`";
        problems.push(Diagnostic::error(&section.at, message));
    }
    members
}

/// Checks that each pattern may match a tool.
pub(crate) fn check_tools(patterns: &[Located<Arc<str>>], names: &Names, problems: &Problems) {
    for pattern in patterns {
        if !names.is_remote(pattern, problems) {
            let is_known = names.may_be_remote(&pattern.value);
            check_pattern(pattern, "tool", &names.all_tools(), is_known, problems);
        }
    }
}

/// A rule that matches a source does not match its alternatives.
fn warn_of_alternatives(section: &RuleSection, names: &Names, problems: &Problems) {
    let of_scheme = |scheme: &str| -> Vec<_> {
        let named = section.origins.iter().filter_map(|pattern| {
            let name = pattern.value.strip_prefix(scheme)?;
            Some(Located { value: name.into(), at: pattern.at.clone() })
        });
        named.collect()
    };
    let (servers, hubs) = (&names.alternatives.servers, &names.alternatives.hubs);
    warn_of_unnamed(&section.tools, servers.iter().chain(hubs), is_of_tools, problems);
    warn_of_unnamed(&section.mcp_servers, servers, is_of_source, problems);
    warn_of_unnamed(&of_scheme("mcp:"), servers, is_of_source, problems);
    warn_of_unnamed(&section.toolsets, hubs, is_of_source, problems);
    warn_of_unnamed(&of_scheme("hub:"), hubs, is_of_source, problems);
}

/// An origin with the name of an MCP server or hub must match an existing one.
fn check_origin(pattern: &Located<Arc<str>>, names: &Names, problems: &Problems) {
    let kinds = [("mcp:", "MCP server", &names.servers), ("hub:", "hub", &names.hubs)];
    for (scheme, kind, declared) in kinds {
        if let Some(name) = pattern.value.strip_prefix(scheme)
            && !(scheme == "mcp:" && names.has_server(name))
        {
            let name = Located { value: name.into(), at: pattern.at.clone() };
            check_pattern(&name, kind, declared, false, problems);
        }
    }
}

/// A condition on an argument that no tool of the rule has is a mistake. Checked for tools of this
/// file that the rule names in full.
fn check_arguments(section: &RuleSection, names: &Names, problems: &Problems) {
    let taken: Option<Vec<_>> =
        section.tools.iter().map(|tool| names.parameters.get(&tool.value)).collect();
    let Some(taken) = taken.filter(|taken| !taken.is_empty()) else { return };
    let known: Vec<Arc<str>> = taken.into_iter().flatten().cloned().collect();
    for argument in &section.arguments {
        let Some(inside) = argument.pointer.value.strip_prefix('/') else { continue };
        let first = inside.split('/').next().unwrap_or_default();
        let name = first.replace("~1", "/").replace("~0", "~");
        let name = Located { value: name.into(), at: argument.pointer.at.clone() };
        is_declared(&name, "argument", &known, problems);
    }
}

/// Messages that no model ever receives.
fn check_words(section: &RuleSection, problems: &Problems) {
    let Some(told) = &section.model_message else { return };
    let why = match section.effect {
        Some(Effect::Deny) if section.arguments.is_empty() => {
            "the rule hides its tools, so the model cannot call them"
        }
        Some(Effect::Allow) => "the rule refuses nothing",
        _ => return,
    };
    let message = format!("no model ever receives this: {why}");
    problems.push(Diagnostic::warning(&told.at, message));
}

/// An unknown name is a mistake. A pattern without a match may be meant for future tools, and is
/// not reported if its candidates are unknown.
pub(crate) fn check_pattern(
    pattern: &Located<Arc<str>>,
    kind: &str,
    declared: &[Arc<str>],
    may_match_others: bool,
    problems: &Problems,
) {
    let glob = Glob::new(Arc::clone(&pattern.value));
    if glob.is_literal() {
        is_declared(pattern, kind, declared, problems);
    } else if !may_match_others && !declared.iter().any(|name| glob.matches(name)) {
        let message = format!("no {kind} matches `{}`", pattern.value);
        problems.push(Diagnostic::warning(&pattern.at, message));
    }
}
