//! `toolcrib replay`: repeats a stored run with a side of it from its journal, and names the first
//! difference.

mod compare;
mod sides;

use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_agent::{Agent, Budget, RunOptions};
use toolcrib_core::{CancellationToken, EventKind, Message, Model, StoredSession};
use toolcrib_engine::DEFAULT_PERSONALITY;
use toolcrib_project::Project;

use self::sides::{RecordedApprovals, RecordedModel, RecordedTools, SharedTools};
use crate::{
    args::{FreshArgs, GlobalArgs, IdentityArgs, ReplayArgs, Situation},
    exit::{self, Exit},
    host::{
        budget,
        candidate::first_configured,
        stored::inspected,
        stored_trace::{StoredTrace, find},
    },
    output::{self, ReplayJson},
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, with_project},
        turn::turn_options,
    },
    trace::Trace,
};

/// The sides that the journal answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sides {
    model: bool,
    tools: bool,
}

pub(super) async fn replay(
    global: &GlobalArgs,
    args: ReplayArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let stored = {
        let project = inspected(global, &cancellation).await?;
        find(&project, false, args.run.clone(), &args.whom).await?
    };
    if stored.trace.is_partial {
        return Err(Problem::usage(format!(
            "the run `{}` cannot be replayed: events of it are missing",
            stored.trace.run
        )));
    }
    let both = args.model == args.tools;
    let sides = Sides { model: both || args.model, tools: both || args.tools };
    let purpose = Purpose::Run(FreshArgs { fresh: false, yes: false });
    let model = ChosenModel { name: args.with.clone(), base_url: None };
    let token = cancellation.clone();
    with_project(global, purpose, model, &token, async |project| {
        repeat(global, &args, sides, &stored, project, cancellation).await
    })
    .await
}

async fn repeat(
    global: &GlobalArgs,
    args: &ReplayArgs,
    sides: Sides,
    stored: &StoredTrace,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let StoredTrace { session, trace } = stored;
    let tools = Arc::new(RecordedTools::new(session, trace, sides.tools));
    let model = model(sides, stored, project).await?;
    let model_name = model.name().to_owned();
    let agent = agent(sides, trace, project, model, Arc::clone(&tools))?;
    let situation = situation(args, trace);
    let turn = turn_options(project, &situation, cancellation)?;
    let turn = turn.approver(Arc::new(RecordedApprovals));
    let mut options = RunOptions::from(turn);
    options.history = history(session, trace.turn);
    options.tool_choices = compare::tool_choices(trace);
    if !sides.model {
        options.usage_store = budget::store_without_session(project).await?;
    }
    let run = agent.run(Arc::clone(&trace.message), options);
    let menus = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&menus);
    run.on("tools.offered", move |event| {
        if let EventKind::ToolsOffered { tools, fingerprint, .. } = &event.kind {
            let tools = tools.iter().map(ToString::to_string).collect::<Vec<_>>();
            heard.lock().push((event.iteration, fingerprint.to_string(), tools));
        }
    })?;
    let decided = Arc::clone(&tools);
    run.on("policy.checked", move |event| {
        if let EventKind::PolicyChecked { call_id, effect, .. } = &event.kind {
            decided.decided(call_id, *effect);
        }
    })?;
    let outcome = run.await;
    let menus = std::mem::take(&mut *menus.lock());
    let difference = compare::first_difference(trace, &outcome, &menus, &tools);
    let replayed = ReplayJson {
        run: &trace.run,
        model: if sides.model { "journal" } else { &model_name },
        tools: if sides.tools { "journal" } else { "read-only tools run" },
        iterations: outcome.iterations,
        calls: outcome.tool_calls.len(),
        from_journal: tools.answered(),
        difference,
    };
    let exit = if replayed.difference.is_none() { exit::FINE } else { exit::FAILED };
    if global.json {
        output::json(&replayed);
    } else {
        output::replayed(&replayed);
    }
    Ok(exit)
}

/// The agent of the run, with the sides that the journal answers.
fn agent(
    sides: Sides,
    trace: &Trace,
    project: &Project,
    model: Arc<dyn Model>,
    tools: Arc<RecordedTools>,
) -> Result<Agent, Problem> {
    let mut builder = project.agent_builder().model(Arc::clone(&model));
    if let Some(declared) = project.personalities().find(|own| own.id == trace.personality)
        && project.personality_model(&declared.id).is_some()
    {
        builder = builder.personality_model(Arc::clone(&trace.personality), model);
    }
    if sides.model {
        // A recorded answer costs nothing.
        builder = builder.budget(Budget::default());
    }
    let builder = builder.engine(|engine| engine.middleware(SharedTools(tools)));
    builder.build().map_err(|error| Problem::usage(error.to_string()))
}

/// The journal's model, or the one that runs now.
async fn model(
    sides: Sides,
    stored: &StoredTrace,
    project: &Project,
) -> Result<Arc<dyn Model>, Problem> {
    if sides.model {
        let model = RecordedModel::new(&stored.session, &stored.trace);
        return Ok(Arc::new(model));
    }
    if let Some(own) = project.personality_model(&stored.trace.personality) {
        return Ok(Arc::clone(own));
    }
    match project.model() {
        Some(model) => Ok(Arc::clone(model)),
        None => Ok(project.prices().of(first_configured(project).await?.model)),
    }
}

/// The situation of the run. Claims are not stored.
fn situation(args: &ReplayArgs, trace: &Trace) -> Situation {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    let is_default = *trace.personality == *DEFAULT_PERSONALITY;
    let conversation = trace.session_name.as_ref().unwrap_or(&trace.session);
    Situation {
        skills: compare::first_skills(trace),
        whom: IdentityArgs {
            principal: text(&trace.owner.principal),
            tenant: text(&trace.owner.tenant),
        },
        claims: args.claims.clone(),
        personality: (!is_default).then(|| trace.personality.to_string()),
        session: Some(conversation.to_string()),
    }
}

/// The messages before the turn.
fn history(session: &StoredSession, turn: u32) -> Vec<Message> {
    let before = session.messages.iter().filter(|stored| stored.turn < turn);
    before.map(|stored| stored.message.clone()).collect()
}
