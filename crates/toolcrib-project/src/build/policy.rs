//! Roles and rules.

use std::{collections::HashMap, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems};
use toolcrib_core::{Glob, Policy, Roles, Rule, SkillId, ToolMatch, When};

use super::names::{Names, is_declared};
use crate::config::{PolicySection, RoleSection, RuleSection};

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
        for principal in &role.principals {
            roles.grant(Arc::clone(&principal.value), Arc::clone(&name.value));
        }
    }
    roles
}

/// `None` only when the effect is unknown, which is recorded; a rule with other problems is made
/// all the same, and the project does not load.
fn build_rule(
    number: usize,
    section: &RuleSection,
    names: &Names,
    problems: &Problems,
) -> Option<Rule> {
    for pattern in &section.tools {
        if !names.is_remote(pattern, problems) {
            let is_known = names.may_be_remote(&pattern.value);
            check_pattern(pattern, "tool", &names.tools_and_read_skill(), is_known, problems);
        }
    }
    for pattern in &section.toolsets {
        check_pattern(pattern, "toolset", &names.toolsets, false, problems);
    }
    for role in &section.roles {
        is_declared(role, "role", &names.roles, problems);
    }
    for skill in &section.skills {
        is_declared(skill, "skill", &names.skills, problems);
    }
    let values = |texts: &[Located<Arc<str>>]| -> Vec<Arc<str>> {
        texts.iter().map(|text| Arc::clone(&text.value)).collect()
    };
    let globs = |texts| values(texts).into_iter().map(Glob::new).collect();
    Some(Rule {
        label: format!("policy rule {number} ({})", section.at).into(),
        effect: section.effect?,
        reason: section.reason.clone(),
        tools: ToolMatch {
            names: globs(&section.tools),
            toolsets: globs(&section.toolsets),
            annotations: section.annotations,
        },
        when: When {
            skills: values(&section.skills).into_iter().flat_map(SkillId::new).collect(),
            listed_by_active_skill: section.listed_by_active_skill,
            roles: values(&section.roles),
            tenants: section.tenants.clone(),
        },
    })
}

/// A name that nothing has is a slip; a pattern that nothing matches may be there for tools to
/// come, and is fine where what it may match is not known.
fn check_pattern(
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
