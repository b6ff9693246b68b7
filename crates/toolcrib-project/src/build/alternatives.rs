//! MCP servers and hubs that are asked only in place of others.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems};
use toolcrib_core::{Effect, Glob, ToolProvider};
use toolcrib_engine::OnFailure;

use super::{
    mcp::McpFiles,
    names::{BETWEEN, REMOTE, is_declared},
    part::Part,
};
use crate::config::{HubSection, PersonalitySection, RuleSection};

/// Who is asked in place of one that fails, where a rule says so: names, in order.
pub(crate) type AskedInstead = Vec<Arc<str>>;

/// An MCP server or a hub, of which a part of a project has several.
pub(crate) trait Remote {
    fn name(&self) -> &str;
    fn plugin(&self) -> Option<&str>;
    fn asked_instead(&self) -> &[Arc<str>];
    fn provider(&self) -> Arc<dyn ToolProvider>;
    fn on_failure(&self) -> OnFailure;
}

/// What an engine takes as one source: who is asked, who is asked instead, and what happens when all
/// fail.
type Source = (Arc<dyn ToolProvider>, Vec<Arc<dyn ToolProvider>>, OnFailure);

/// The sources among all servers, or among all hubs: those of a plugin, or the project's own. Who is
/// asked in place of another is no source of its own.
pub(crate) fn sources<R: Remote>(all: &[R], plugin: Option<&str>) -> Vec<Source> {
    let of_part = || all.iter().filter(|one| one.plugin() == plugin);
    let is_instead = |one: &&R| {
        of_part().any(|other| other.asked_instead().iter().any(|name| **name == *one.name()))
    };
    let named = |name: &Arc<str>| of_part().find(|one| *one.name() == **name);
    let own = of_part().filter(|one| !is_instead(one));
    own.map(|one| {
        let others = one.asked_instead().iter().filter_map(named).map(Remote::provider).collect();
        (one.provider(), others, one.on_failure())
    })
    .collect()
}

/// Whether any server or hub names another.
pub(super) fn has_alternatives(parts: &[Part]) -> bool {
    let of_part = |part: &Part| {
        let servers = part.declared.mcp.iter().map(|server| &server.settings.alternatives);
        let mut all = servers.chain(part.declared.hubs.iter().map(|hub| &hub.alternatives));
        all.any(|alternatives| !alternatives.is_empty())
    };
    parts.iter().any(of_part)
}

/// Warns of each rule and each exclusion that keeps back tools of one source by name, and not those
/// that are offered in their place when it fails.
pub(crate) fn warn_of_gaps(
    rules: &[RuleSection],
    personalities: &[PersonalitySection],
    parts: &[Part],
    problems: &Problems,
) {
    let pairs: Vec<_> = parts.iter().flat_map(pairs).collect();
    let keeps_back = |rule: &&RuleSection| rule.effect.is_some_and(|it| it != Effect::Allow);
    for rule in rules.iter().filter(keeps_back) {
        for patterns in [&rule.tools, &rule.mcp_servers, &rule.toolsets, &rule.origins] {
            warn_of_gap(patterns, &pairs, problems);
        }
    }
    for personality in personalities {
        warn_of_gap(&personality.exclude, &pairs, problems);
    }
}

fn warn_of_gap(patterns: &[Located<Arc<str>>], pairs: &[(Speaks, Speaks)], problems: &Problems) {
    for pattern in patterns {
        for (of_one, of_other) in pairs {
            let Some(meant) = of_one.put_in_place(of_other, &pattern.value) else { continue };
            let is_met = |other: &Located<Arc<str>>| {
                *other.value == *meant || Glob::new(Arc::clone(&other.value)).matches(&meant)
            };
            if !patterns.iter().any(is_met) {
                let message = format!(
                    "`{}` says nothing of `{meant}`, which may be offered in its place",
                    pattern.value
                );
                let help = format!("name both: [\"{}\", \"{meant}\"]", pattern.value);
                problems.push(Diagnostic::warning(&pattern.at, message).help(help));
            }
        }
    }
}

/// What patterns speak of a source's tools by.
struct Speaks {
    /// How the names of its tools begin.
    prefix: String,
    /// Its own name, and its origin.
    exactly: [String; 2],
}

impl Speaks {
    fn of_server(name: &str) -> Self {
        Self {
            prefix: format!("{REMOTE}{name}{BETWEEN}"),
            exactly: [name.to_owned(), format!("mcp:{name}")],
        }
    }

    fn of_hub(hub: &HubSection) -> Self {
        let name = &hub.name.value;
        Self {
            prefix: hub.prefix().to_string(),
            exactly: [name.to_string(), format!("hub:{name}")],
        }
    }

    /// The pattern that speaks of another as this one speaks of it, where the two differ.
    fn put_in_place(&self, other: &Self, pattern: &str) -> Option<String> {
        let by_prefix = || Some(format!("{}{}", other.prefix, pattern.strip_prefix(&self.prefix)?));
        let exactly = self.exactly.iter().position(|known| *known == pattern);
        let meant = exactly.and_then(|at| other.exactly.get(at).cloned()).or_else(by_prefix)?;
        (meant != pattern).then_some(meant)
    }
}

/// Each source of a part that has alternatives, with each of these.
fn pairs(part: &Part) -> Vec<(Speaks, Speaks)> {
    let (servers, hubs) = (&part.declared.mcp, &part.declared.hubs);
    let of_servers = servers.iter().flat_map(|server| {
        let others = server.settings.alternatives.iter();
        others.map(|other| (Speaks::of_server(&server.name.value), Speaks::of_server(&other.value)))
    });
    let of_hubs = hubs.iter().flat_map(|hub| {
        let others = hub.alternatives.iter();
        let others = others.filter_map(|other| hubs.iter().find(|h| h.name.value == other.value));
        others.map(|other| (Speaks::of_hub(hub), Speaks::of_hub(other)))
    });
    of_servers.chain(of_hubs).collect()
}

/// Records alternatives that there are not, and those that have alternatives themselves. They are of
/// the same part and kind.
pub(crate) fn check_alternatives(part: &Part, files: &McpFiles, problems: &Problems) {
    let servers = part.declared.mcp.iter();
    let servers: Vec<_> =
        servers.map(|server| (&server.name.value, &*server.settings.alternatives)).collect();
    let declared = servers.iter().map(|(name, _)| Arc::clone(name));
    let mut declared: Vec<_> = match &part.grant {
        None => declared.chain(files.names()).collect(),
        Some(_) => declared.collect(),
    };
    declared.sort();
    declared.dedup();
    check("MCP server", &servers, &declared, problems);
    let hubs = part.declared.hubs.iter().map(|hub| (&hub.name.value, &*hub.alternatives));
    let hubs: Vec<_> = hubs.collect();
    let declared: Vec<_> = hubs.iter().map(|(name, _)| Arc::clone(name)).collect();
    check("hub", &hubs, &declared, problems);
}

/// A source, and whom it names.
type Named<'a> = (&'a Arc<str>, &'a [Located<Arc<str>>]);

fn check(kind: &str, sections: &[Named<'_>], declared: &[Arc<str>], problems: &Problems) {
    for (name, alternatives) in sections {
        for other in *alternatives {
            if !is_declared(other, kind, declared, problems) {
                continue;
            }
            let of_other = sections.iter().find(|(name, _)| **name == other.value);
            let problem = if other.value == **name {
                format!("the {kind} `{name}` is no alternative to itself")
            } else if of_other.is_some_and(|(_, others)| !others.is_empty()) {
                format!(
                    "the {kind} `{}` is only asked in place of `{name}`, and names alternatives of \
                     its own",
                    other.value
                )
            } else {
                continue;
            };
            let help = "name all that may be asked, in order, where it is that others stand in for";
            problems.push(Diagnostic::error(&other.at, problem).help(help));
        }
    }
}
