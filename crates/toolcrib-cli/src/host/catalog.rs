//! All tools of a project, regardless of who may see them.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use toolcrib_core::{
    CancellationToken, Catalog, DiscoveryError, Identity, ListContext, Reason, SessionOwner, Tool,
    ToolProvider as _, Ttl,
};
use toolcrib_engine::OnFailure;
use toolcrib_lint::SourceFacts;
use toolcrib_project::{DeclaredHub, McpServer, Project};

use crate::{
    args::IdentityArgs,
    output::{KnownSource, KnownTool, KnownTools},
    problem::Problem,
    project::load::unless_cancelled,
};

/// Queries all sources concurrently for their tools for `whom`. Policy and skills are not applied.
pub(crate) async fn known_tools(
    project: &Project,
    whom: &IdentityArgs,
    cancellation: &CancellationToken,
) -> Result<KnownTools, Problem> {
    let identity = Arc::new(identity(whom));
    let servers = project.mcp_servers().iter().map(|server| ask(project, server, &identity));
    let servers = join_all(servers);
    let hubs = project.hubs().iter().map(|hub| ask_hub(project, hub, &identity, cancellation));
    let hubs = join_all(hubs);
    let (servers, hubs) = unless_cancelled(join(servers, hubs), cancellation).await?;
    let redactor = project.redactor();
    let mut known = KnownTools { tools: Vec::new(), refused: Vec::new(), sources: Vec::new() };
    let declared = redactor.catalog(project.tools().iter().cloned().collect());
    known.add(&declared, |tool| KnownTool { tool: tool.clone(), source: None });
    let plugins = project.mcp_servers().iter().map(McpServer::plugin);
    let plugins = plugins.chain(project.hubs().iter().map(DeclaredHub::plugin));
    for ((source, catalog), plugin) in servers.into_iter().chain(hubs).zip(plugins) {
        let name = source.facts.name.clone();
        let plugin: Option<Arc<str>> = plugin.map(Arc::from);
        let listed = |tool: &Tool| {
            let tool = plugin.as_ref().map_or_else(|| tool.clone(), |id| tool.with_plugin(id));
            KnownTool { tool, source: Some(name.clone()) }
        };
        known.add(&redactor.catalog(catalog), listed);
        known.sources.push(source);
    }
    Ok(known)
}

impl KnownTools {
    /// Adds the tools of a list: those that are offered, and those withheld for their definition.
    fn add(&mut self, catalog: &Catalog, listed: impl Fn(&Tool) -> KnownTool) {
        self.tools.extend(catalog.offered().iter().map(&listed));
        let refused = catalog.withheld_by_provider().iter();
        let refused = refused
            .filter(|held| matches!(held.reason, Reason::Definition(of, _) if of.is_of_content()));
        self.refused.extend(refused.map(|held| listed(&held.tool)));
    }
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
            // A server is queried again when it reports a changed list.
            ttl_forever: false,
            failure: listed.as_ref().err().map(|error| redactor.text(error).into_owned()),
        },
        may_fail: server.on_failure() != OnFailure::Fail,
        withheld_count: listed.as_ref().map_or(0, |catalog| catalog.withheld_by_provider().len()),
    };
    (source, listed.unwrap_or_default())
}

/// The identity of the command line.
pub(crate) fn identity(whom: &IdentityArgs) -> Identity {
    let SessionOwner { tenant, principal } = whom.owner();
    let mut identity = Identity::conversation("catalog");
    (identity.tenant, identity.principal) = (tenant, principal);
    identity
}

/// A hub whose catalog depends on the tenant reports a missing tenant itself.
async fn ask_hub(
    project: &Project,
    hub: &DeclaredHub,
    identity: &Arc<Identity>,
    cancellation: &CancellationToken,
) -> (KnownSource, Catalog) {
    let cx = ListContext::new(Arc::clone(identity), cancellation.clone());
    let listed = Arc::clone(hub.provider()).list(&cx).wait().await;
    let redactor = project.redactor();
    let failure = listed.as_ref().err().map(DiscoveryError::message);
    let source = KnownSource {
        facts: SourceFacts {
            name: format!("hub:{}", hub.name()),
            remote: true,
            ttl_forever: hub.ttl() == Ttl::forever(),
            failure: failure.map(|error| redactor.text(error).into_owned()),
        },
        may_fail: hub.on_failure() != OnFailure::Fail,
        withheld_count: listed.as_ref().map_or(0, |catalog| catalog.withheld_by_provider().len()),
    };
    (source, listed.unwrap_or_default())
}
