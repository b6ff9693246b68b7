//! `alternatives`: MCP servers and hubs that are asked only in place of others.

use std::{collections::HashMap, sync::Arc};

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::{Glob, Stage, ToolProvider};
use toolcrib_engine::OnFailure;

use super::{
    mcp::McpFiles,
    names::{is_declared, may_begin, remote_prefix},
    part::Part,
};
use crate::config::{HubSection, ReliabilityRuleSection, Verb};

/// An MCP server or a hub, of which a part of a project has several.
pub(crate) trait Remote {
    fn name(&self) -> &str;
    /// The names of those that a rule may have asked in its place, in order.
    fn alternatives(&self) -> &[Arc<str>];
    fn provider(&self) -> Arc<dyn ToolProvider>;
    fn on_failure(&self) -> OnFailure;
}

/// What an engine takes as one source.
pub(crate) struct WithAlternatives {
    pub(crate) provider: Arc<dyn ToolProvider>,
    pub(crate) alternatives: Vec<Arc<dyn ToolProvider>>,
    /// What happens when all fail.
    pub(crate) on_failure: OnFailure,
}

/// The sources among the servers, or among the hubs, of a part. An alternative is no source of its
/// own.
pub(crate) fn sources<'a, R: Remote + 'a>(
    of_part: &(impl Iterator<Item = &'a R> + Clone),
) -> Vec<WithAlternatives> {
    let is_alternative = |one: &&R| {
        of_part.clone().any(|other| other.alternatives().iter().any(|name| **name == *one.name()))
    };
    let named = |name: &Arc<str>| of_part.clone().find(|one| *one.name() == **name);
    let own = of_part.clone().filter(|one| !is_alternative(one));
    own.map(|one| WithAlternatives {
        provider: one.provider(),
        alternatives: one.alternatives().iter().filter_map(named).map(Remote::provider).collect(),
        on_failure: one.on_failure(),
    })
    .collect()
}

/// The alternatives that a project declares, each behind the source that it is asked in place of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alternatives {
    pub(super) servers: Vec<(Named, Named)>,
    pub(super) hubs: Vec<(Named, Named)>,
}

/// A source, as what names it does.
#[derive(Debug, Clone)]
pub(super) struct Named {
    name: Arc<str>,
    /// What the names of its tools begin with; empty for a hub that there is not.
    prefix: Arc<str>,
}

impl Alternatives {
    pub(super) fn of(parts: &[Part]) -> Self {
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

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.hubs.is_empty()
    }
}

/// Sources, each with one that is asked in its place.
fn pairs(
    sections: Vec<Section<'_>>,
    prefix: impl Fn(&Arc<str>) -> Arc<str>,
) -> Vec<(Named, Named)> {
    let named = |name: &Arc<str>| Named { name: Arc::clone(name), prefix: prefix(name) };
    let pairs = sections.into_iter().flat_map(|(name, alternatives)| {
        alternatives.iter().map(|one| (named(name), named(&one.value)))
    });
    pairs.collect()
}

/// A source by its name, and the alternatives that it names.
type Section<'a> = (&'a Arc<str>, &'a [Located<Arc<str>>]);

fn servers(part: &Part) -> Vec<Section<'_>> {
    let sections = part.declared.mcp.iter();
    sections.map(|server| (&server.name.value, &*server.settings.alternatives)).collect()
}

fn hubs(part: &Part) -> Vec<Section<'_>> {
    part.declared.hubs.iter().map(|hub| (&hub.name.value, &*hub.alternatives)).collect()
}

/// Whether a rule may have an alternative asked.
fn asks_alternatives(rule: &ReliabilityRuleSection) -> bool {
    rule.then.as_ref().is_some_and(|then| then.value == Verb::RetryOther)
        && rule.when.stage.is_none_or(|stage| stage == Stage::Discover)
}

/// Records alternatives that there are not, those that have alternatives themselves and those that
/// are named more than once. They are of the same part and kind.
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
            // A program that embeds the project may add rules, so this is no error.
            let message = format!(
                "nobody is asked in place of `{name}`, and tools of its alternatives are never \
                 offered: no rule says `retry_other` at the stage `discover`"
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
                (format!("the {kind} `{name}` is no alternative to itself"), NAME_ALL)
            } else if of_one.is_some_and(|(_, alternatives)| !alternatives.is_empty()) {
                let problem = format!(
                    "the {kind} `{}` is only asked in place of `{name}`, and names alternatives of \
                     its own",
                    one.value
                );
                (problem, NAME_ALL)
            } else if let Some(first) = taken.get(&one.value) {
                let problem =
                    format!("the {kind} `{}` is an alternative already, at {first}", one.value);
                (problem, "it is asked in place of one other, one time: name it there alone")
            } else {
                taken.insert(&one.value, &one.at);
                continue;
            };
            problems.push(Diagnostic::error(&one.at, problem).help(help));
        }
    }
}

const NAME_ALL: &str = "name all that may be asked, in order, where it is that others stand in for";

/// Whether a name or pattern is that of a source, or of more of them.
pub(super) fn is_of_source(pattern: &str, source: &Named) -> bool {
    Glob::new(pattern).matches(&source.name)
}

/// Whether a name or pattern may be that of tools of a source.
pub(super) fn is_of_tools(pattern: &str, source: &Named) -> bool {
    may_begin(pattern, &source.prefix)
}

/// Warns where names or patterns mean a source and not its alternatives: what is said there does not
/// hold for tools that come from these.
pub(super) fn warn_of_unnamed<'a>(
    named: &[Located<Arc<str>>],
    alternatives: impl IntoIterator<Item = &'a (Named, Named)>,
    means: impl Fn(&str, &Named) -> bool,
    problems: &Problems,
) {
    let meaning = |source| named.iter().find(|pattern| means(&pattern.value, source));
    for (source, alternative) in alternatives {
        if let Some(pattern) = meaning(source)
            && meaning(alternative).is_none()
        {
            let message = format!(
                "`{}` is meant here, and its alternative `{}` is not: this does not hold for the \
                 tools that come from there",
                source.name, alternative.name
            );
            problems.push(Diagnostic::warning(&pattern.at, message).help("name both"));
        }
    }
}
