//! `toolcrib tools`: all tools, regardless of who may see them.

use std::collections::BTreeSet;

use toolcrib_core::CancellationToken;

use crate::{
    args::{GlobalArgs, ToolsArgs},
    exit::{self, Exit},
    host::catalog::known_tools,
    output::{self, KnownSource},
    problem::Problem,
    project::load::{ChosenModel, Purpose, with_project},
};

pub(super) async fn tools(
    global: &GlobalArgs,
    args: ToolsArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let purpose = Purpose::Look(args.look);
    with_project(global, purpose, ChosenModel::default(), &cancellation, async |project| {
        let mut known = known_tools(project, &args.whom, &cancellation).await?;
        output::unmatched(project);
        output::unmatched_excludes(project, &known);
        if let Some(toolset) = &args.toolset {
            let all: BTreeSet<String> = known
                .tools
                .iter()
                .filter_map(|known| known.tool.toolset().map(str::to_owned))
                .collect();
            if !all.contains(toolset) {
                let all = all.iter().map(String::as_str);
                return Err(Problem::unknown("toolset", toolset, all));
            }
            known.tools.retain(|known| known.tool.toolset() == Some(toolset));
        }
        if global.json {
            output::json(&output::tools_json(&known, project));
        } else {
            output::tools(&known, global.quiet, global.verbose);
        }
        let missing = known.sources.iter().any(KnownSource::is_missing);
        Ok(if missing { exit::FAILED } else { exit::FINE })
    })
    .await
}
