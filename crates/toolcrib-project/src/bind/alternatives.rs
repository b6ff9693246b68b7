//! `alternatives`: MCP servers and hubs that are queried only instead of others.

use std::{collections::HashMap, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::{Glob, Stage, ToolProvider};
use toolcrib_engine::OnFailure;

use super::{
    located::is_declared,
    mcp_files::McpFiles,
    part::Part,
    remote::{may_begin, remote_prefix},
};
use crate::file::{HubSection, ReliabilityRuleSection, Verb};

/// An MCP server or a hub of a part of a project.
pub(crate) trait Remote {
    fn name(&self) -> &str;
    /// The names of its alternatives for rules, in order.
    fn alternatives(&self) -> &[Arc<str>];
    fn provider(&self) -> Arc<dyn ToolProvider>;
    fn on_failure(&self) -> OnFailure;
}

/// One source of an engine.
pub(crate) struct EngineSource {
    pub(crate) provider: Arc<dyn ToolProvider>,
    pub(crate) alternatives: Vec<Arc<dyn ToolProvider>>,
    /// The effect of a failure of all.
    pub(crate) on_failure: OnFailure,
}

/// The sources among the servers, or among the hubs, of a part. An alternative is not a separate
/// source.
pub(crate) fn sources<'a, R: Remote + 'a>(
    of_part: &(impl Iterator<Item = &'a R> + Clone),
) -> Vec<EngineSource> {
    let is_alternative = |one: &&R| {
        of_part.clone().any(|other| other.alternatives().iter().any(|name| **name == *one.name()))
    };
    let named = |name: &Arc<str>| of_part.clone().find(|one| *one.name() == **name);
    let own = of_part.clone().filter(|one| !is_alternative(one));
    own.map(|one| EngineSource {
        provider: one.provider(),
        alternatives: one.alternatives().iter().filter_map(named).map(Remote::provider).collect(),
        on_failure: one.on_failure(),
    })
    .collect()
}

/// The alternatives that a project declares, each with the source that it replaces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alternatives {
    pub(crate) servers: Vec<(SourceName, SourceName)>,
    pub(crate) hubs: Vec<(SourceName, SourceName)>,
}

/// A source, by the ways in which other sections name it.
#[derive(Debug, Clone)]
pub(crate) struct SourceName {
    name: Arc<str>,
    /// The prefix of its tools' names; empty for an unknown hub.
    prefix: Arc<str>,
}

impl Alternatives {
    pub(crate) fn of(parts: &[Part]) -> Self {
        let of_server = |name: &Arc<str>| remote_prefix(name).into();
        let of_hub = |part: &Part, name: &Arc<str>| {
            let hub = part.declared.hubs.iter().find(|hub| hub.name.value == *name);
            hub.map(HubSection::prefix).unwrap_or_default()
        };
        let of_hubs = |part| pairs(hubs(part), move |name| of_hub(part, name));
        Self {
            servers: parts.iter().flat_map(|part| pairs(servers(part), of_server)).collect(),
            hubs: parts.iter().flat_map(of_hubs).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.hubs.is_empty()
    }
}

/// Pairs of a source and one alternative.
fn pairs(
    sections: Vec<Section<'_>>,
    prefix: impl Fn(&Arc<str>) -> Arc<str>,
) -> Vec<(SourceName, SourceName)> {
    let named = |name: &Arc<str>| SourceName { name: Arc::clone(name), prefix: prefix(name) };
    let pairs = sections.into_iter().flat_map(|(name, alternatives)| {
        alternatives.iter().map(|one| (named(name), named(&one.value)))
    });
    pairs.collect()
}

/// A source's name and its alternatives.
type Section<'a> = (&'a Arc<str>, &'a [Located<Arc<str>>]);

fn servers(part: &Part) -> Vec<Section<'_>> {
    let sections = part.declared.mcp.iter();
    sections.map(|server| (&server.name.value, &*server.settings.alternatives)).collect()
}

fn hubs(part: &Part) -> Vec<Section<'_>> {
    part.declared.hubs.iter().map(|hub| (&hub.name.value, &*hub.alternatives)).collect()
}

/// Whether a rule can query an alternative.
fn asks_alternatives(rule: &ReliabilityRuleSection) -> bool {
    rule.then.as_ref().is_some_and(|then| then.value == Verb::RetryOther)
        && rule.when.stage.is_none_or(|stage| stage == Stage::Discover)
}

/// Records alternatives that do not exist, that have alternatives themselves, or that are named
/// more than once. They must be of the same part and kind.
pub(crate) fn check_alternatives(
    part: &Part,
    files: &McpFiles,
    rules: &[ReliabilityRuleSection],
    problems: &Problems,
) {
    let (servers, hubs) = (servers(part), hubs(part));
    let declared = servers.iter().map(|(name, _)| Arc::clone(name));
    let mut declared: Vec<_> = match &part.grant {
        None => declared.chain(files.names()).collect(),
        Some(_) => declared.collect(),
    };
    declared.sort();
    declared.dedup();
    check("MCP server", &servers, &declared, problems);
    let declared: Vec<_> = hubs.iter().map(|(name, _)| Arc::clone(name)).collect();
    check("hub", &hubs, &declared, problems);
    if !rules.iter().any(asks_alternatives) {
        for (name, alternatives) in servers.iter().chain(&hubs) {
            let Some(first) = alternatives.first() else { continue };
            // A program that embeds the project may add rules, so this is not an error.
            let message = format!(
                "the alternatives of `{name}` are never queried, and their tools never offered: \
                 no rule has `retry_other` at the stage `discover`"
            );
            let help = "write a [[reliability]] with when = { stage = \"discover\" } and then = \
                        \"retry_other\"";
            problems.push(Diagnostic::warning(&first.at, message).help(help));
        }
    }
}

fn check(kind: &str, sections: &[Section<'_>], declared: &[Arc<str>], problems: &Problems) {
    let mut taken: HashMap<&Arc<str>, &Spot> = HashMap::new();
    for (name, alternatives) in sections {
        for one in *alternatives {
            if !is_declared(one, kind, declared, problems) {
                continue;
            }
            let of_one = sections.iter().find(|(name, _)| **name == one.value);
            let (problem, help) = if one.value == **name {
                (format!("the {kind} `{name}` cannot be its own alternative"), NAME_ALL)
            } else if of_one.is_some_and(|(_, alternatives)| !alternatives.is_empty()) {
                let problem = format!(
                    "the {kind} `{}` is an alternative of `{name}`, and cannot have alternatives",
                    one.value
                );
                (problem, NAME_ALL)
            } else if let Some(first) = taken.get(&one.value) {
                let problem =
                    format!("the {kind} `{}` is an alternative already, at {first}", one.value);
                (problem, "an alternative belongs to one source: name it only there")
            } else {
                taken.insert(&one.value, &one.at);
                continue;
            };
            problems.push(Diagnostic::error(&one.at, problem).help(help));
        }
    }
}

const NAME_ALL: &str = "name all alternatives, in order, at the source that they replace";

/// Whether a name or pattern matches a source, or several.
pub(crate) fn is_of_source(pattern: &str, source: &SourceName) -> bool {
    Glob::new(pattern).matches(&source.name)
}

/// Whether a name or pattern may match tools of a source.
pub(crate) fn is_of_tools(pattern: &str, source: &SourceName) -> bool {
    may_begin(pattern, &source.prefix)
}

/// Warns if names or patterns match a source and not its alternatives: the rule does not apply to
/// tools that come from them.
pub(crate) fn warn_of_unnamed<'a>(
    named: &[Located<Arc<str>>],
    alternatives: impl IntoIterator<Item = &'a (SourceName, SourceName)>,
    means: impl Fn(&str, &SourceName) -> bool,
    problems: &Problems,
) {
    let meaning = |source| named.iter().find(|pattern| means(&pattern.value, source));
    for (source, alternative) in alternatives {
        if let Some(pattern) = meaning(source)
            && meaning(alternative).is_none()
        {
            let message = format!(
                "`{}` is matched here, and its alternative `{}` is not: this does not apply to \
                 the tools of the alternative",
                source.name, alternative.name
            );
            problems.push(Diagnostic::warning(&pattern.at, message).help("name both"));
        }
    }
}
