//! `toolcrib find`: the tools that a model's search finds, and the reason why one is missing.

use toolcrib_core::CancellationToken;
use toolcrib_engine::{FOUND_PER_NEED, Iteration};
use toolcrib_search::Index;

use crate::{
    args::{FindArgs, GlobalArgs},
    exit::{self, Exit},
    host::iteration::{unknown, why, with_iteration},
    output::{self, ExpectedTool, FindJson, FoundTool},
    problem::Problem,
};

pub(super) async fn find(
    global: &GlobalArgs,
    args: FindArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    with_iteration(global, args.look, &args.situation, cancellation, async |_, _, iteration| {
        show(global, &args, iteration)
    })
    .await
}

fn show(global: &GlobalArgs, args: &FindArgs, iteration: &Iteration) -> Result<Exit, Problem> {
    let (deferred, offered) = (iteration.menu().deferred(), iteration.menu().tools());
    let tools = if deferred.is_empty() { offered } else { deferred };
    let index = Index::new(tools);
    let hits = index.search(&args.need, FOUND_PER_NEED);
    let found = hits.iter().enumerate().map(|(place, hit)| {
        let matched = index.ranking(&args.need, &hit.tool).map(|ranking| ranking.matched);
        FoundTool { rank: place + 1, tool: hit.tool.clone(), matched: matched.unwrap_or_default() }
    });
    let expected = match &args.expect {
        Some(name) => Some(expected(iteration, &index, &args.need, name)?),
        None => None,
    };
    let is_found = expected.as_ref().is_none_or(ExpectedTool::is_found);
    let result = FindJson {
        need: &args.need,
        deferred: !deferred.is_empty(),
        among: tools.len(),
        found: found.collect(),
        expected,
    };
    if global.json {
        output::json(&result);
    } else {
        output::found(&result);
    }
    Ok(if is_found { exit::FINE } else { exit::FAILED })
}

/// Where the expected tool is.
fn expected(
    iteration: &Iteration,
    index: &Index,
    need: &str,
    name: &str,
) -> Result<ExpectedTool, Problem> {
    let Some(tool) = iteration.menu().get(name) else {
        let why = why(iteration, name).ok_or_else(|| unknown(iteration, name))?;
        return Ok(ExpectedTool::Withheld { why });
    };
    Ok(match index.ranking(need, tool) {
        Some(ranking) => ExpectedTool::Ranked {
            rank: ranking.rank,
            is_found: ranking.rank.is_some_and(|rank| rank <= FOUND_PER_NEED),
            matched: ranking.matched,
            missing: ranking.missing,
        },
        None => ExpectedTool::Defined,
    })
}
