//! `toolcrib run`: one message, until the answer; and `toolcrib resume`.

use std::{
    fs::File,
    io::{self, IsTerminal as _},
    path::Path,
    sync::Arc,
};

use rustix::io::ioctl_fionread;
use serde_json::Value;
use toolcrib_agent::{AnswerSchema, EndReason, RunOptions, RunOutcome};
use toolcrib_core::CancellationToken;
use toolcrib_project::Project;

use crate::{
    args::{GlobalArgs, ResumeArgs, RunArgs},
    exit::Exit,
    host::{
        agent::{agent, own_model, remote_tools},
        approver,
        attachments::{self, STDIN},
        budget,
        call_arguments::{read_stdin, read_text},
        iteration, json_lines,
        recording::Recording,
        run_session::ChosenSession,
    },
    output::{self, Narrator, RunJson},
    problem::Problem,
    project::{
        load::{ChosenModel, unless_cancelled, with_fresh_project},
        scratch::with_scratch,
        turn::{claim_flags, export_spans, model_flags, project_flags, turn_options},
    },
};

pub(super) async fn run(
    global: &GlobalArgs,
    args: RunArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let is_attached = args.attachments.iter().any(|source| source == Path::new(STDIN));
    let is_message = matches!(&*args.words, [] | [_]) && args.words.iter().all(|word| word == "-");
    if is_attached && is_message {
        return Err(Problem::usage(
            "standard input is attached, and cannot be the message too; write the message: \
             toolcrib run --attach - \"MESSAGE\"",
        ));
    }
    let (is_used, tells) = (is_attached || is_message, tells(global, &args));
    let message = message(&args.words, &cancellation).await?;
    let global = &with_scratch(global, &args.scratch.with, tells, &cancellation).await?;
    let outcome = begin(global, args, Some(message), cancellation).await;
    // At the end: text of a pipe may come late.
    if tells && !is_used && has_input() {
        output::unread_input();
    }
    outcome
}

/// Whether a person reads standard error.
fn tells(global: &GlobalArgs, args: &RunArgs) -> bool {
    let to_stderr = args.events.as_deref().is_some_and(|path| path == Path::new("-"));
    !(global.json || global.quiet || to_stderr)
}

/// Whether standard input has text for a program that reads it.
fn has_input() -> bool {
    let stdin = io::stdin();
    !stdin.is_terminal() && ioctl_fionread(&stdin).is_ok_and(|bytes| bytes > 0)
}

pub(super) async fn resume(
    global: &GlobalArgs,
    args: ResumeArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    begin(global, args.into_run(), None, cancellation).await
}

/// Runs a message, or without one continues an interrupted run.
async fn begin(
    global: &GlobalArgs,
    args: RunArgs,
    message: Option<String>,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let tells = tells(global, &args);
    let (fresh, model, token) = (args.fresh, ChosenModel::from(&args.model), cancellation.clone());
    let to_judge = args.clone();
    let judge = async |project: &Project| judge(&to_judge, project, token.clone()).await;
    let follow =
        async |project: &Project| follow(global, args, message, tells, project, cancellation).await;
    with_fresh_project(global, tells, fresh, model, &token, (judge, follow)).await
}

/// The words of the command line, a file, or standard input.
pub(super) async fn message(
    words: &[String],
    cancellation: &CancellationToken,
) -> Result<String, Problem> {
    let message = match words {
        [] if io::stdin().is_terminal() => String::new(),
        [] => read_stdin(cancellation).await?,
        [only] if only == "-" => read_stdin(cancellation).await?,
        [only] if only.starts_with('@') => {
            let path = only.trim_start_matches('@').to_owned();
            read_text(path.clone(), cancellation, || File::open(path)).await?
        }
        words => words.join(" "),
    };
    // The newline that ends a piped text is not part of the message.
    let message = message.trim_end();
    if message.is_empty() {
        let help = "say what the agent should do: toolcrib run \"MESSAGE\", or pipe it";
        return Err(Problem::usage(format!("the message is empty; {help}")));
    }
    Ok(message.to_owned())
}

/// Fails if the run cannot begin.
async fn judge(
    args: &RunArgs,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Option<Exit>, Problem> {
    let agent = agent(project, &args.situation, false).await?;
    iteration::turn_of(project, agent.engine(), &args.situation, cancellation)?;
    if let Some(path) = &args.events {
        json_lines::check_events(path, project)?;
    }
    args.record.as_deref().map_or(Ok(()), Recording::check)?;
    Ok(None)
}

/// Runs the agent and prints its progress.
async fn follow(
    global: &GlobalArgs,
    mut args: RunArgs,
    message: Option<String>,
    tells: bool,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let chosen = match message {
        Some(_) if args.dry_run => None,
        Some(_) => ChosenSession::find(project, &args.situation, &args.session).await?,
        None => Some(ChosenSession::interrupted(project, &args).await?),
    };
    if let Some(chosen) = &chosen {
        chosen.adapt(&mut args.situation)?;
    }
    let agent = agent(project, &args.situation, tells);
    let agent = unless_cancelled(agent, &cancellation).await??;

    export_spans(agent.engine())?;
    let own_model = own_model(project, &args.situation);
    let model = own_model.unwrap_or_else(|| agent.model()).name().to_owned();
    if let (None, None, Some(chosen)) = (&message, &args.model.model, &chosen) {
        chosen.check_model(&model).await?;
    }
    let mut turn = turn_options(project, &args.situation, cancellation.clone())?;
    if let Some(path) = &args.events {
        turn.events.on("*", json_lines::events(path, project)?.0)?;
    }
    let schema = schema(args.schema.as_deref(), &cancellation).await?;
    let recording = args.record.as_deref().map(Recording::begin).transpose()?;
    let usage_store = match &chosen {
        Some(chosen) => Some(chosen.usage_store()),
        None => budget::store_without_session(project).await?,
    };
    let session = match chosen {
        Some(chosen) => Some(chosen.open(&args.situation, tells, &cancellation).await?),
        None => None,
    };
    let (terminal, is_resumed) = (approver::terminal(), message.is_none());
    approver::attend(&mut turn, project, session.as_ref(), is_resumed, terminal).await?;
    if session.is_some() {
        // It has the conversation.
        turn.conversation = None;
    }
    turn.dry_run = args.dry_run;
    let reader = attachments::Reader {
        project,
        engine: agent.engine(),
        situation: &args.situation,
        cancellation: &cancellation,
    };
    turn.attachments = reader.read(&args.attachments).await?;
    let mut options = RunOptions::from(turn);
    options.tool_choices.clone_from(&args.tool_choices);
    options.turn_timeout = args.timeout;
    options.session.clone_from(&session);
    options.usage_store = usage_store;

    let narrator = tells.then(|| Arc::new(Narrator::new(global.verbose, schema.is_none())));
    if let Some(narrator) = narrator.clone() {
        options.turn.events.on("*", move |event| narrator.tell(event))?;
    }
    let (outcome, value) = match (message, &schema) {
        (None, _) => (agent.resume(options).await, None),
        (Some(message), None) => (agent.run(message, options).await, None),
        (Some(message), Some(schema)) => {
            let answer = agent.run_structured(message, options, schema).await;
            (answer.outcome, answer.value)
        }
    };
    let session_id = session.as_ref().map(|session| Arc::clone(session.id()));
    if let Some(session) = session {
        // Its failure is not one of the run: the lease expires.
        let _ = session.close().await;
    }
    let recorded = recording.map(|recording| recording.end(&outcome, agent.engine().redactor()));

    let ended = EndedRun { outcome, value, session: session_id, narrator, recorded };
    ended.print(global, &args, &model, project, tells).await
}

/// A run that ended.
struct EndedRun {
    outcome: RunOutcome,
    /// The structured answer.
    value: Option<Value>,
    /// The id of its session.
    session: Option<Arc<str>>,
    narrator: Option<Arc<Narrator>>,
    /// The command that replays its recording, if it has one.
    recorded: Option<Option<String>>,
}

impl EndedRun {
    async fn print(
        &self,
        global: &GlobalArgs,
        args: &RunArgs,
        model: &str,
        project: &Project,
        tells: bool,
    ) -> Result<Exit, Problem> {
        let Self { outcome, value, session, narrator, recorded } = self;
        let is_waiting = outcome.end_reason == EndReason::AwaitingApproval;
        let waiting = match session {
            Some(session) if is_waiting => approver::waiting(project, session).await?,
            _ => Vec::new(),
        };
        if global.json {
            let json = RunJson::new(model, session.as_deref(), outcome);
            output::json(&json.waiting(&waiting).with_value(value.as_ref()));
            return Ok(Exit::from(outcome));
        }
        match value {
            Some(value) => output::json(value),
            None if is_waiting => {}
            None => output::answer(outcome, narrator.as_deref()),
        }
        if tells {
            let tools = remote_tools(project, &args.situation).await;
            if args.dry_run {
                output::plan(&outcome.tool_calls);
            }
            output::summary(outcome, project, &tools);
            if let Some(play_back) = recorded {
                output::recorded(play_back.as_deref());
            }
        }
        if let Some(session) = session {
            let more = model_flags(&args.model) + &claim_flags(&args.situation.claims);
            output::waiting(&waiting, session, &project_flags(global), &more);
        }
        Ok(Exit::from(outcome))
    }
}

/// The schema of the answer, from a file.
async fn schema(
    path: Option<&Path>,
    cancellation: &CancellationToken,
) -> Result<Option<AnswerSchema>, Problem> {
    let Some(path) = path else { return Ok(None) };
    let shown = path.display();
    let invalid =
        |error: &dyn std::fmt::Display| Problem::usage(format!("`--schema`: {shown}: {error}"));
    let file = path.to_owned();
    let text = read_text(shown.to_string(), cancellation, || File::open(file)).await?;
    let schema = serde_json::from_str(&text).map_err(|error| invalid(&error))?;
    AnswerSchema::new(schema).map(Some).map_err(|error| invalid(&error))
}
