//! `toolcrib explain`: why a tool is offered or withheld, or a prompt or the resources of a server.

use toolcrib_core::{CancellationToken, Glob, Identity, ToolName};
use toolcrib_engine::{Explanation, Iteration, Withheld};
use toolcrib_gateway::judged_offer;
use toolcrib_project::Project;

use super::{Problem, menu::with_iteration};
use crate::{
    args::{ExplainArgs, GlobalArgs},
    exit::{self, Exit},
    output,
};

pub(super) async fn explain(
    global: &GlobalArgs,
    args: ExplainArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    with_iteration(
        global,
        args.look,
        &args.situation,
        cancellation,
        async |project, identity, iteration| {
            let why = match why(iteration, &args.tool) {
                Some(why) => why,
                None => of_server(project, identity, iteration, &args.tool)
                    .await
                    .ok_or_else(|| unknown(iteration, &args.tool))?,
            };
            if global.json {
                output::json(&why);
            } else {
                output::why(&why);
            }
            Ok(exit::FINE)
        },
    )
    .await
}

/// The same for a prompt of a server, or its resources, by the name that rules have for it.
async fn of_server(
    project: &Project,
    identity: &Identity,
    iteration: &Iteration,
    name: &str,
) -> Option<Explanation> {
    for client in project.mcp_servers().iter().filter_map(|server| server.client().ok()) {
        if let Some(offer) = judged_offer(&client.on_behalf_of(identity), name).await {
            return Some(iteration.why_apart(&offer));
        }
    }
    None
}

/// For an unknown name: why the source is unavailable that may have the tool.
pub(super) fn why(iteration: &Iteration, tool: &str) -> Option<Explanation> {
    iteration.why(tool).or_else(|| iteration.why(withheld_name(iteration.withheld(), tool)?))
}

/// The name under which a tool is withheld: its own, else its omitted source's.
pub(super) fn withheld_name<'a>(withheld: &'a Withheld, tool: &str) -> Option<&'a str> {
    let is_source = |name: &&str| name.contains('*') && Glob::new(*name).matches(tool);
    withheld.names().find(|name| *name == tool).or_else(|| withheld.names().find(is_source))
}

/// An operator may see all known names, unlike a model.
pub(super) fn unknown(iteration: &Iteration, tool: &str) -> Problem {
    let menu = iteration.menu();
    let offered = menu.names().chain(menu.deferred().iter().map(|tool| tool.name()));
    let known = offered.map(ToolName::as_str).chain(iteration.withheld().names());
    Problem::unknown("tool", tool, known)
}
