//! `toolcrib lint`: what a model would misunderstand, pay for, or be talked into.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde_json::Value;
use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, Tool};
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_lint::{LintTool, Linter, Rule, parse};
use toolcrib_project::Project;

use super::{
    ChosenModel, Problem, Purpose, call_arguments::read_text, catalogue::known_tools, with_project,
};
use crate::{
    args::{Global, LintArgs},
    exit::{self, Exit},
    output,
};

pub(super) async fn lint(
    global: &Global,
    args: LintArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let linter = linter(&args)?;
    let report = match &args.file {
        Some(file) => {
            if global.project.is_some() || !global.imports.is_empty() || global.no_project {
                return Err(Problem::usage(
                    "a catalogue in a file belongs to no project; leave out the file, or \
                     `--project`, `--import` and `--no-project`",
                ));
            }
            if args.whom.principal.is_some() || args.whom.tenant.is_some() {
                return Err(Problem::usage(
                    "a catalogue in a file is nobody's; leave out the file, or `--as` and `--tenant`",
                ));
            }
            let tools = read(global, file, &cancellation).await?;
            linter.lint(&tools)
        }
        None => of_project(global, linter, &args, &cancellation).await?,
    };
    if global.json {
        output::json(&report);
    } else {
        output::findings(&report, global.quiet, global.verbose);
    }
    Ok(if report.is_clean() { exit::FINE } else { exit::FAILED })
}

fn linter(args: &LintArgs) -> Result<Linter, Problem> {
    let mut linter = Linter::new();
    if let Some(tokens) = args.max_tokens {
        linter = linter.max_tokens(tokens);
    }
    let all = linter.clone();
    // Twice is no mistake.
    let allowed = args.allow.iter().collect::<std::collections::BTreeSet<_>>();
    for rule in allowed {
        linter = linter.allow(rule).map_err(|_| {
            let help = suggest::help(rule, "rules", all.rules().iter().map(Rule::id));
            Problem::usage(format!("there is no rule {}; {help}", suggest::quoted([&**rule])))
        })?;
    }
    Ok(linter)
}

/// Reads a catalogue of a file or of standard input.
async fn read(
    global: &Global,
    file: &Path,
    cancellation: &CancellationToken,
) -> Result<Vec<LintTool>, Problem> {
    let is_stdin = file.as_os_str() == "-";
    let what = if is_stdin { "standard input".to_owned() } else { file.display().to_string() };
    let path = file.to_owned();
    let open = move || -> io::Result<Box<dyn Read>> {
        if is_stdin { Ok(Box::new(io::stdin())) } else { Ok(Box::new(File::open(path)?)) }
    };
    let text = read_text(what.clone(), cancellation, open).await?;
    // Some editors begin a file with a mark of its encoding.
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Problem::usage(format!("{what} is no JSON: {error}")))?;
    let parsed = parse(&value).map_err(|error| Problem::usage(format!("{what}: {error}")))?;
    if parsed.tools.is_empty() {
        return Err(Problem::usage(format!("{what} has no tools: there is nothing to look over")));
    }
    if !global.quiet && !global.json {
        output::parsed(&parsed);
    }
    Ok(parsed.tools)
}

async fn of_project(
    global: &Global,
    linter: Linter,
    args: &LintArgs,
    cancellation: &CancellationToken,
) -> Result<toolcrib_lint::Report, Problem> {
    let purpose = Purpose::Look(args.look);
    with_project(global, purpose, ChosenModel::default(), cancellation, async |project| {
        let mut known = known_tools(project, &args.whom, cancellation).await?;
        if !global.quiet && !global.json {
            output::held_back(&known.sources);
        }
        if project.held().is_some() {
            // What was not asked is no finding.
            known.sources.clear();
        }
        let listed = known.tools.iter().chain(&known.refused).map(|known| {
            let tool = LintTool::from(known.tool.definition());
            LintTool { source: known.source.clone(), ..tool }
        });
        let of_skills = of_skills(project).await?;
        let tools: Vec<LintTool> =
            listed.chain(of_skills.iter().map(|tool| tool.definition().into())).collect();
        Ok(linter.sources(known.sources.into_iter().map(|source| source.facts)).lint(&tools))
    })
    .await
}

/// What skills add to every request: their descriptions are read in the tool that loads them.
async fn of_skills(project: &Project) -> Result<Vec<Tool>, Problem> {
    let failed = |error: String| Problem::failed("discovery_failed", error);
    let engine = Engine::builder().skills(project.skills().clone()).build();
    let mut turn = engine
        .map_err(|error| failed(error.to_string()))?
        .turn(TurnOptions::default())
        .map_err(|error| failed(error.to_string()))?;
    let iteration = turn.iteration().await.map_err(|error| failed(error.to_string()))?;
    Ok(iteration.menu().tools().to_vec())
}
