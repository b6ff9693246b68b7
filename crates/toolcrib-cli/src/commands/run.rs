//! `toolcrib run`: one message, to the answer.

use std::{path::Path, sync::Arc};

use toolcrib_agent::{Agent, RunOptions};
use toolcrib_core::{CancellationToken, Model, Tool};
use toolcrib_engine::DEFAULT_PERSONALITY;
use toolcrib_mcp::ServerState;
use toolcrib_project::Project;

use super::{
    ChosenModel, Problem, Purpose, catalogue::identity, json_lines, models::first_configured,
    recording::Recording, turn_options, with_project_told,
};
use crate::{
    args::{Global, RunArgs, Situation},
    exit::Exit,
    output::{self, Narrator, RunJson},
};

pub(super) async fn run(
    global: &Global,
    args: RunArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let to_stderr = args.events.as_deref().is_some_and(|path| path == Path::new("-"));
    let tells = !(global.json || global.quiet || to_stderr);
    let purpose = Purpose::Run(args.fresh);
    let model = ChosenModel { name: args.model.clone(), base_url: args.base_url.clone() };
    let token = cancellation.clone();
    let told = tells && !global.quiet;
    with_project_told(global, told, purpose, model, &token, async |project| {
        follow(global, args, tells, project, cancellation).await
    })
    .await
}

/// Runs the agent and tells what it does.
async fn follow(
    global: &Global,
    args: RunArgs,
    tells: bool,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let agent = tokio::select! {
        biased;
        agent = agent(project, &args.situation, tells) => agent?,
        () = cancellation.cancelled() => return Err(Problem::cancelled()),
    };

    let own_model = own_model(project, &args.situation);
    let model = own_model.unwrap_or_else(|| agent.model()).name().to_owned();
    let mut options = RunOptions::from(turn_options(project, &args.situation, cancellation)?);
    options.tool_choices = args.tool_choices;
    options.turn_timeout = args.timeout;

    let run = agent.run(args.message, options);
    if let Some(path) = &args.events {
        run.on("*", json_lines::events(path, project)?)?;
    }
    let recording = args.record.as_deref().map(Recording::begin).transpose()?;
    if tells {
        let narrator = Narrator::new(global.verbose);
        run.on("*", move |event| narrator.tell(event))?;
    }
    let outcome = run.await;
    let recorded = recording.map(|recording| recording.end(&outcome, agent.engine().redactor()));

    if global.json {
        output::json(&RunJson::new(&model, &outcome));
    } else {
        output::answer(&outcome);
        if tells {
            let tools = remote_tools(project, &args.situation).await;
            output::summary(&outcome, project, &tools);
            if let Some(play_back) = recorded {
                output::recorded(play_back.as_deref());
            }
        }
    }
    Ok(outcome.stopped.into())
}

/// The tools of the MCP servers that are connected.
async fn remote_tools(project: &Project, situation: &Situation) -> Vec<Tool> {
    let mut tools = Vec::new();
    let identity = identity(&situation.whom);
    for client in project.mcp_servers().iter().filter_map(|server| server.client().ok()) {
        let client = client.on_behalf_of(&identity);
        // One that is gone is not started again for a summary.
        if client.status().state == ServerState::Ready {
            tools.extend(client.tools().await.unwrap_or_default());
        }
    }
    tools
}

/// The model of the personality that acts, if it has one of its own.
fn own_model<'a>(project: &'a Project, situation: &Situation) -> Option<&'a Arc<dyn Model>> {
    project.personality_model(situation.personality.as_deref().unwrap_or(DEFAULT_PERSONALITY))
}

/// The project's agent; where no model is named, on the first that is configured.
async fn agent(project: &Project, situation: &Situation, tells: bool) -> Result<Agent, Problem> {
    let mut builder = project.agent_builder();
    if project.model().is_none()
        && let Some(own) = own_model(project, situation)
    {
        builder = builder.shared_model(Arc::clone(own));
    } else if project.model().is_none() {
        let first = first_configured(project).await?;
        if tells {
            output::chosen_model(first.model.name(), &first.origin);
        }
        builder = builder.shared_model(Arc::clone(&first.model) as Arc<dyn Model>);
    }
    builder.build().map_err(|error| Problem::usage(error.to_string()))
}
