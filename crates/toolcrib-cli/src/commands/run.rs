//! `toolcrib run`: one message, to the answer.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use toolcrib_agent::{Agent, AgentError, RunOptions};
use toolcrib_core::{CancellationToken, Event};
use toolcrib_project::{Mode, Project};

use super::{Problem, load, turn_options};
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
    let listener = args.events.as_deref().map(event_writer).transpose()?;
    let mode = Mode::Run { fresh: args.fresh };
    let project = load(global, mode, args.model.clone(), &cancellation).await?;
    let agent = agent(&project)?;

    let mut options = RunOptions::from(turn_options(&project, &args.situation, cancellation)?);
    options.turn_timeout = args.timeout;

    let run = agent.run(args.message, options);
    if let Some(listener) = listener {
        run.on("*", listener);
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

/// Writes each event as one line, inline, so that none is lost, whatever happens next.
fn event_writer(path: &Path) -> Result<impl Fn(&Event) + Send + Sync + 'static, Problem> {
    let out: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stderr())
    } else {
        Box::new(File::create(path).map_err(|error| {
            Problem::usage(format!("`--events`: {} cannot be written: {error}", path.display()))
        })?)
    };
    let out = Mutex::new(out);
    Ok(move |event: &Event| {
        if let Ok(mut line) = serde_json::to_vec(event) {
            line.push(b'\n');
            // A full disk must not end the run.
            let _ = out.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
        }
    })
}
