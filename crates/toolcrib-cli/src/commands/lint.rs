//! `toolcrib lint`: finds tools that a model may misread, that cost too many tokens, or that try to
//! manipulate it.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{self, Read},
    path::Path,
};

use toolcrib_core::{__internal::PlainJson, CancellationToken, Tool};
use toolcrib_engine::{Engine, Redactor, TurnOptions};
use toolcrib_lint::{LintTool, Linter, Rule, parse};
use toolcrib_project::Project;

use crate::{
    args::{GlobalArgs, LintArgs},
    exit::{self, Exit},
    host::{call_arguments::read_text, catalog::known_tools},
    output,
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, with_project},
        turn::{project_flags, whom_flags},
    },
};

pub(super) async fn lint(
    global: &GlobalArgs,
    args: LintArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let linter = linter(args.max_tokens, &args.allow)?;
    let report = match &args.file {
        Some(file) => {
            let options = [
                ("--project", global.project.is_some()),
                ("--state", global.state.is_some()),
                ("--import", !global.imports.is_empty()),
                ("--locked", global.locked),
            ];
            if let Some((flag, _)) = options.into_iter().find(|(_, is_given)| *is_given) {
                return Err(Problem::usage(format!(
                    "a catalog in a file belongs to no project; leave out the file, or `{flag}`"
                )));
            }
            if args.whom.principal.is_some() || args.whom.tenant.is_some() {
                return Err(Problem::usage(
                    "a catalog in a file has no principal; leave out the file, or `--as` and \
                     `--tenant`",
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

/// A linter with a limit of tokens, without the allowed rules.
pub(super) fn linter(max_tokens: Option<usize>, allow: &[String]) -> Result<Linter, Problem> {
    let mut linter = Linter::new();
    if let Some(tokens) = max_tokens {
        linter = linter.max_tokens(tokens);
    }
    let all = linter.clone();
    // Repeating a rule is allowed.
    for rule in allow.iter().collect::<BTreeSet<_>>() {
        let known = || all.rules().iter().map(Rule::id);
        linter = linter.allow(rule).map_err(|_| Problem::unknown("rule", rule, known()))?;
    }
    Ok(linter)
}

/// Reads a catalog from a file or from standard input.
async fn read(
    global: &GlobalArgs,
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
    // Some editors write a byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    // Of a key that occurs twice, a client may read the other value.
    let PlainJson(value) = serde_json::from_str(text)
        .map_err(|error| Problem::usage(format!("{what} is not valid JSON: {error}")))?;
    let value = Redactor::from_environment().description(value);
    let parsed = parse(&value).map_err(|error| Problem::usage(format!("{what}: {error}")))?;
    if parsed.tools.is_empty() {
        return Err(Problem::usage(format!("{what} contains no tools to check")));
    }
    if !global.quiet && !global.json {
        output::parsed(&parsed);
    }
    Ok(parsed.tools)
}

async fn of_project(
    global: &GlobalArgs,
    linter: Linter,
    args: &LintArgs,
    cancellation: &CancellationToken,
) -> Result<toolcrib_lint::Report, Problem> {
    let purpose = Purpose::Look(args.look);
    with_project(global, purpose, ChosenModel::default(), cancellation, async |project| {
        let mut known = known_tools(project, &args.whom, cancellation).await?;
        if !global.quiet && !global.json {
            let whom = whom_flags(args.whom.principal.as_deref(), args.whom.tenant.as_deref());
            output::withheld(&known.sources, &(project_flags(global) + &whom));
            output::unanswered(project.approvals().unanswered());
        }
        if project.held().is_some() {
            // A source that was not queried is not a finding.
            known.sources.clear();
        }
        let mut undeferred = known.tools.iter().map(|known| known.tool.clone()).collect();
        let deferred = project.deferral().take(&mut undeferred, |_| false);
        let listed = known.tools.iter().chain(&known.refused).map(|known| LintTool {
            source: known.source.clone(),
            deferred: deferred.iter().any(|tool| tool.same(&known.tool)),
            ..LintTool::from(known.tool.definition())
        });
        let of_skills = of_skills(project).await?;
        let tools: Vec<LintTool> =
            listed.chain(of_skills.iter().map(|tool| tool.definition().into())).collect();
        Ok(linter.sources(known.sources.into_iter().map(|source| source.facts)).lint(&tools))
    })
    .await
}

/// The descriptions of skills, which are part of every request in the tool that loads them.
pub(super) async fn of_skills(project: &Project) -> Result<Vec<Tool>, Problem> {
    let failed = |error: String| Problem::failed("discovery_failed", error);
    let builder = Engine::builder().redactor(project.redactor());
    let engine = builder.skills(project.skills().clone()).build();
    let mut turn = engine
        .map_err(|error| failed(error.to_string()))?
        .turn(TurnOptions::default())
        .map_err(|error| failed(error.to_string()))?;
    let iteration = turn.iteration().await.map_err(|error| failed(error.to_string()))?;
    Ok(iteration.menu().tools().to_vec())
}
