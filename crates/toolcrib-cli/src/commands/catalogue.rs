//! All tools of a project, whoever may see them.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use toolcrib_core::{
    CancellationToken, Catalog, Identity, ListContext, Reason, Tool, ToolProvider as _, Ttl,
};
use toolcrib_engine::OnFailure;
use toolcrib_lint::SourceFacts;
use toolcrib_project::{DeclaredHub, McpServer, Project};

use super::{Problem, mcp::unless_cancelled};
use crate::args::Whom;

/// What a project has of tools, declared and listed by others.
pub(crate) struct KnownTools {
    pub(crate) tools: Vec<KnownTool>,
    /// Those that their sources list and whose definitions keep them from being offered.
    pub(crate) refused: Vec<KnownTool>,
    pub(crate) sources: Vec<KnownSource>,
}

/// A tool, and the source that lists it; none where the project declares it.
pub(crate) struct KnownTool {
    pub(crate) tool: Tool,
    pub(crate) source: Option<String>,
}

/// A source that was asked for its tools.
pub(crate) struct KnownSource {
    pub(crate) facts: SourceFacts,
    /// Whether an iteration can do without it.
    pub(crate) may_fail: bool,
    /// How many tools it lists that are never offered.
    pub(crate) held_back: usize,
}

impl KnownSource {
    /// Whether it failed and an iteration would fail with it.
    pub(crate) fn is_missing(&self) -> bool {
        self.facts.failure.is_some() && !self.may_fail
    }
}

/// Asks all sources at the same time, for what they list to `whom`. Policy and skills are not
/// asked.
pub(super) async fn known_tools(
    project: &Project,
    whom: &Whom,
    cancellation: &CancellationToken,
) -> Result<KnownTools, Problem> {
    let identity = Arc::new(identity(whom));
    let servers = project.mcp_servers().iter().map(|server| ask(project, server, &identity));
    let servers = join_all(servers);
    let hubs = project.hubs().iter().map(|hub| ask_hub(project, hub, &identity, cancellation));
    let hubs = join_all(hubs);
    let (servers, hubs) = unless_cancelled(join(servers, hubs), cancellation).await?;
    let declared = project.tools().iter().cloned();
    let mut known = KnownTools {
        tools: declared.map(|tool| KnownTool { tool, source: None }).collect(),
        refused: Vec::new(),
        sources: Vec::new(),
    };
    let plugins = project.mcp_servers().iter().map(McpServer::plugin);
    let plugins = plugins.chain(project.hubs().iter().map(DeclaredHub::plugin));
    for ((source, catalog), plugin) in servers.into_iter().chain(hubs).zip(plugins) {
        let name = source.facts.name.clone();
        let plugin: Option<Arc<str>> = plugin.map(Arc::from);
        let listed = |tool: &Tool| {
            let tool = plugin.as_ref().map_or_else(|| tool.clone(), |id| tool.with_plugin(id));
            KnownTool { tool, source: Some(name.clone()) }
        };
        known.tools.extend(catalog.offered().iter().map(listed));
        let refused = catalog.held_back().iter();
        let refused = refused.filter(|held| matches!(held.reason, Reason::Definition(_)));
        known.refused.extend(refused.map(|held| listed(&held.tool)));
        known.sources.push(source);
    }
    Ok(known)
}

async fn ask(project: &Project, server: &McpServer, identity: &Identity) -> (KnownSource, Catalog) {
    let listed = match server.client() {
        Ok(client) => {
            client.on_behalf_of(identity).catalog().await.map_err(|error| error.to_string())
        }
        Err(reason) => Err(reason.to_owned()),
    };
    let redactor = project.redactor();
    let source = KnownSource {
        facts: SourceFacts {
            name: format!("mcp:{}", server.name()),
            remote: true,
            // A server is asked again when it says that its list changed.
            ttl_forever: false,
            failure: listed.as_ref().err().map(|error| redactor.text(error).into_owned()),
        },
        may_fail: server.on_failure() != OnFailure::Fail,
        held_back: listed.as_ref().map_or(0, |catalog| catalog.held_back().len()),
    };
    (source, listed.unwrap_or_default())
}

/// Those named on the command line.
pub(super) fn identity(whom: &Whom) -> Identity {
    let text = |value: &Option<String>| value.as_deref().map(Arc::from);
    let mut identity = Identity::conversation("catalogue");
    identity.principal = text(&whom.principal);
    identity.tenant = text(&whom.tenant);
    identity
}

/// A hub whose catalogue is a tenant's, and that is not told which, says that it needs to know.
async fn ask_hub(
    project: &Project,
    hub: &DeclaredHub,
    identity: &Arc<Identity>,
    cancellation: &CancellationToken,
) -> (KnownSource, Catalog) {
    let cx = ListContext::new(Arc::clone(identity), cancellation.clone());
    let listed = Arc::clone(hub.provider()).list(&cx, Catalog::new()).wait().await;
    let redactor = project.redactor();
    let failure = listed.as_ref().err().map(|failed| failed.error.message());
    let source = KnownSource {
        facts: SourceFacts {
            name: format!("hub:{}", hub.name()),
            remote: true,
            ttl_forever: hub.ttl() == Ttl::forever(),
            failure: failure.map(|error| redactor.text(error).into_owned()),
        },
        may_fail: hub.on_failure() != OnFailure::Fail,
        held_back: listed.as_ref().map_or(0, |catalog| catalog.held_back().len()),
    };
    (source, listed.unwrap_or_default())
}
