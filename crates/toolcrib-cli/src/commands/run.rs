//! `toolcrib run`: one message, to the answer.

use std::path::Path;

use toolcrib_agent::{Agent, AgentError, RunOptions};
use toolcrib_core::CancellationToken;
use toolcrib_project::{Mode, Project};

use super::{Problem, events_file, load, turn_options};
use crate::{
    args::{Global, RunArgs},
    exit::Exit,
    output::{self, Narrator, RunJson},
};

pub(super) async fn run(
    global: &Global,
    args: RunArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let to_stderr = args.events.as_deref().is_some_and(|path| path == Path::new("-"));
    let mode = Mode::Run { fresh: args.fresh };
    let project = load(global, mode, args.model.clone(), &cancellation).await?;
    let agent = agent(&project)?;

    let mut options = RunOptions::from(turn_options(&project, &args.situation, cancellation)?);
    options.turn_timeout = args.timeout;

    let run = agent.run(args.message, options);
    if let Some(path) = &args.events {
        run.on("*", events_file::writer(path, &project)?);
    }
    if !(global.json || global.quiet || to_stderr) {
        let narrator = Narrator::new(global.verbose);
        run.on("*", move |event| narrator.tell(event));
    }
    let outcome = run.await;

    if global.json {
        output::json(&RunJson::from(&outcome));
    } else {
        output::answer(&outcome);
        if !(global.quiet || to_stderr) {
            output::summary(&outcome, &project);
        }
    }
    Ok(outcome.stopped.into())
}

fn agent(project: &Project) -> Result<Agent, Problem> {
    project.agent_builder().build().map_err(|error| match error {
        AgentError::NoModel => Problem::usage(
            "the project names no model; write `model = \"script:FILE\"` under [agent], \
             or give one with `--model script:FILE`",
        ),
        error => Problem::usage(error.to_string()),
    })
}
