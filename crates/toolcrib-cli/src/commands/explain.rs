//! `toolcrib explain`: why a tool is offered or withheld, or a prompt or the resources of a server.

use toolcrib_core::{CancellationToken, Identity};
use toolcrib_engine::{Explanation, Iteration};
use toolcrib_gateway::judged_offer;
use toolcrib_project::Project;

use crate::{
    args::{ExplainArgs, GlobalArgs},
    exit::{self, Exit},
    host::iteration::{self, with_iteration},
    output,
    problem::Problem,
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
            let why = match iteration::why(iteration, &args.tool) {
                Some(why) => why,
                None => of_server(project, identity, iteration, &args.tool)
                    .await
                    .ok_or_else(|| iteration::unknown(iteration, &args.tool))?,
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
