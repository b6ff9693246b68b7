//! `toolcrib explain`: why a tool is offered, or is not.

use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, Glob, ToolName};
use toolcrib_engine::{Iteration, Why};
use toolcrib_project::Project;

use super::{ChosenModel, Problem, Purpose, menu, with_project};
use crate::{
    args::{ExplainArgs, Global},
    exit::{self, Exit},
    output,
};

pub(super) async fn explain(
    global: &Global,
    args: ExplainArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let model = ChosenModel::default();
    let token = cancellation.clone();
    with_project(global, Purpose::Look(args.look), model, &token, async |project| {
        show(global, &args, project, cancellation).await
    })
    .await
}

async fn show(
    global: &Global,
    args: &ExplainArgs,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let mut turn = menu::turn(project, &args.situation, cancellation)?;
    let iteration = menu::look(&mut turn).await?;
    let why = why(&iteration, &args.tool).ok_or_else(|| unknown(&iteration, &args.tool))?;
    if global.json {
        output::json(&why);
    } else {
        output::why(&why);
    }
    Ok(exit::FINE)
}

/// Of a name that no known tool has, why its source was left out, if one was that may have it.
fn why(iteration: &Iteration, tool: &str) -> Option<Why> {
    iteration.why(tool).or_else(|| {
        let left_out = iteration
            .withheld()
            .names()
            .find(|name| name.contains('*') && Glob::new(*name).matches(tool));
        left_out.and_then(|name| iteration.why(name))
    })
}

/// People may know what models may not: which names there are.
fn unknown(iteration: &Iteration, tool: &str) -> Problem {
    let offered = iteration.menu().names().map(ToolName::as_str);
    let known = offered.chain(iteration.withheld().names());
    let help = suggest::help(tool, "tools", known);
    Problem::usage(format!("there is no tool {}; {help}", suggest::quoted([tool])))
}
