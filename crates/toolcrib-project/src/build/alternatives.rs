//! MCP servers and hubs that are asked only in place of others.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems};
use toolcrib_core::ToolProvider;
use toolcrib_engine::OnFailure;

use super::{mcp::McpFiles, names::is_declared, part::Part};

/// Who is asked in place of one that fails, where a rule says so: names, in order.
pub(crate) type AskedInstead = Vec<Arc<str>>;

/// An MCP server or a hub, of which a part of a project has several.
pub(crate) trait Remote {
    fn name(&self) -> &str;
    fn asked_instead(&self) -> &[Arc<str>];
    fn provider(&self) -> Arc<dyn ToolProvider>;
    fn on_failure(&self) -> OnFailure;
}

/// What an engine takes as one source: who is asked, who is asked instead, and what happens when all
/// fail.
type Source = (Arc<dyn ToolProvider>, Vec<Arc<dyn ToolProvider>>, OnFailure);

/// The sources among the servers, or among the hubs, of a part. Who is asked in place of another is
/// no source of its own.
pub(crate) fn sources<'a, R: Remote + 'a>(
    of_part: impl Iterator<Item = &'a R> + Clone,
) -> Vec<Source> {
    let is_instead = |one: &&R| {
        of_part.clone().any(|other| other.asked_instead().iter().any(|name| **name == *one.name()))
    };
    let named = |name: &Arc<str>| of_part.clone().find(|one| *one.name() == **name);
    let own = of_part.clone().filter(|one| !is_instead(one));
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

/// Records alternatives that there are not, and those that have alternatives themselves. They are of
/// the same part and kind.
pub(crate) fn check_alternatives(part: &Part, files: &McpFiles, problems: &Problems) {
    let servers = part.declared.mcp.iter();
    let servers: Vec<_> =
        servers.map(|server| (&server.name.value, &server.settings.alternatives)).collect();
    let declared = servers.iter().map(|(name, _)| Arc::clone(name));
    let mut declared: Vec<_> = match &part.grant {
        None => declared.chain(files.names()).collect(),
        Some(_) => declared.collect(),
    };
    declared.sort();
    declared.dedup();
    check("MCP server", &servers, &declared, problems);
    let hubs = part.declared.hubs.iter().map(|hub| (&hub.name.value, &hub.alternatives));
    let hubs: Vec<_> = hubs.collect();
    let declared: Vec<_> = hubs.iter().map(|(name, _)| Arc::clone(name)).collect();
    check("hub", &hubs, &declared, problems);
}

fn check(
    kind: &str,
    sections: &[(&Arc<str>, &Vec<Located<Arc<str>>>)],
    declared: &[Arc<str>],
    problems: &Problems,
) {
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
