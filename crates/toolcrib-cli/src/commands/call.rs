//! `toolcrib call`: one call through the whole pipe.

use std::{
    error::Error,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::BoxFuture;
use toolcrib_config::suggest;
use toolcrib_core::{
    Approval, Approver, CancellationToken, ErrorCode, Journal, PendingCall, ToolCall, ToolResult,
    WithheldBy, WithheldTool, call_approver,
};
use toolcrib_engine::Engine;
use toolcrib_project::Project;

use crate::{
    args::{CallArgs, GlobalArgs, OfflineArgs, Situation},
    exit::{self, Exit},
    host::{
        approver,
        call_arguments::{self, RawArguments},
        default_answers::DefaultAnswers,
        iteration::withheld_name,
        questions,
    },
    output::{self, CallJson, shell_word},
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, load, with_fresh_project},
        turn::{engine, project_flags, turn_options, whom_flags},
    },
};

pub(super) async fn call(
    global: &GlobalArgs,
    args: CallArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    through_pipe(global, args, cancellation, |_, args| Ok(args)).await
}

/// Calls the tool that `named` finds in the project, and prints the result.
pub(super) async fn through_pipe(
    global: &GlobalArgs,
    args: CallArgs,
    cancellation: CancellationToken,
    named: impl Fn(&Project, CallArgs) -> Result<CallArgs, Problem>,
) -> Result<Exit, Problem> {
    let parameters = match call_arguments::has_bare_word(&args.arguments) {
        true => parameters(global, &args.tool, &cancellation).await,
        false => Vec::new(),
    };
    let given = call_arguments::read(&args.arguments, &parameters, &cancellation).await?;
    let (fresh, token) = (args.fresh, cancellation.clone());
    let judge = async |project: &Project| {
        let args = named(project, args.clone())?;
        judge_call(global, args, given.clone(), project, token.clone()).await
    };
    let make = async |project: &Project| {
        let args = named(project, args.clone())?;
        let engine = engine(project)?;
        let approver = approver::of_call(project).await?;
        let given = given.clone();
        let made = attempt(args, given, project, &engine, Some(approver), cancellation).await?;
        Ok(made.tell(global, project))
    };
    let tells = !global.quiet && !global.json;
    with_fresh_project(global, tells, fresh, ChosenModel::default(), &token, (judge, make)).await
}

/// The parameters of a declared tool, for an error: loads the project, and starts nothing.
async fn parameters(
    global: &GlobalArgs,
    tool: &str,
    cancellation: &CancellationToken,
) -> Vec<String> {
    let global = GlobalArgs { quiet: true, verbose: false, ..global.clone() };
    let purpose = Purpose::Look(OfflineArgs { offline: true });
    let Ok(project) = load(&global, purpose, ChosenModel::default(), cancellation).await else {
        return Vec::new();
    };
    let tool = project.tools().iter().find(|known| known.name().as_str() == tool);
    let properties = tool.and_then(|tool| tool.input_schema()["properties"].as_object());
    let parameters = properties.map(|all| all.keys().cloned().collect()).unwrap_or_default();
    project.close().await;
    parameters
}

/// A call that was executed or refused.
struct CallAttempt {
    result: ToolResult,
    /// Why the tool is withheld, if it is.
    why: Option<WithheldTool>,
    situation: Situation,
    /// The likely intended name, if there is no such tool.
    meant: Option<String>,
    is_cancelled: bool,
}

/// Makes one call.
async fn attempt(
    args: CallArgs,
    given: RawArguments,
    project: &Project,
    engine: &Engine,
    approver: Option<Arc<dyn Approver>>,
    cancellation: CancellationToken,
) -> Result<CallAttempt, Problem> {
    let mut options = turn_options(project, &args.situation, cancellation)?;
    if args.accept_defaults {
        options = options.client(Arc::new(DefaultAnswers));
    } else if approver.is_some() {
        questions::ask_at(&approver::terminal(), &mut options)?;
    }
    options.approver = approver;
    options.dry_run = args.dry_run;
    let mut turn = engine.turn(options)?;
    // Starts only servers that may have the tool.
    let mut iteration = turn.iteration_for(&args.tool).await?;

    let schema = iteration.menu().get(&args.tool).map(|tool| tool.input_schema().clone());
    let arguments = given.typed(schema.as_ref());
    let call = ToolCall { id: "call_1".into(), name: args.tool.into(), arguments };
    let Some(result) = iteration.execute(vec![call]).await.pop() else {
        return Err(Problem::failed("internal", "the call gave no result"));
    };
    let why = (result.code == Some(ErrorCode::NotAvailable))
        .then(|| withheld_name(iteration.withheld(), &result.name))
        .flatten()
        .and_then(|name| iteration.withheld().tool(name));
    let meant = (schema.is_none() && why.is_none()).then(|| {
        let menu = iteration.menu().tools().iter().map(|tool| tool.name().as_str());
        // An unavailable server appears as a pattern, which is not callable.
        let withheld = iteration.withheld().names().filter(|name| !name.contains('*'));
        let meant = suggest::nearest(&result.name, menu.chain(withheld));
        // The result names near tools that are offered.
        meant.filter(|name| !result.value.contains(*name)).map(str::to_owned)
    });
    let (situation, is_cancelled) = (args.situation, turn.cancellation().is_cancelled());
    Ok(CallAttempt { why, situation, meant: meant.flatten(), is_cancelled, result })
}

impl CallAttempt {
    /// Prints the result.
    fn tell(&self, global: &GlobalArgs, project: &Project) -> Exit {
        let Self { result, why, .. } = self;
        let read_on = match &*result.artifacts {
            [id, ..] if project.keeps_artifacts() => Some(read_on(id, global, &self.situation)),
            _ => None,
        };
        if global.json {
            output::json(&CallJson::with_reason(result, why.as_ref(), read_on.as_deref()));
        } else {
            output::call(result, why.as_ref(), global.verbose);
            if let Some(read_on) = &read_on {
                output::read_on(read_on);
            }
            output::meant(self.meant.as_deref());
            let flags = project_flags(global);
            if result.code == Some(ErrorCode::AwaitingApproval) && !flags.is_empty() {
                output::flags_of_approval(&flags);
            }
        }
        match result.code {
            None => exit::FINE,
            Some(ErrorCode::Cancelled) => exit::CANCELLED,
            Some(ErrorCode::AwaitingApproval) => exit::WAITING,
            // Cancelled by Ctrl-C; the effect may have happened.
            Some(ErrorCode::OutcomeUnknown) if self.is_cancelled => exit::CANCELLED,
            Some(_) => exit::FAILED,
        }
    }
}

/// Evaluates a call up to its effect. Returns the exit code of a refusal, after printing it.
async fn judge_call(
    global: &GlobalArgs,
    args: CallArgs,
    given: RawArguments,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Option<Exit>, Problem> {
    let before_effect = EvaluationJournal::default();
    // A person is asked when the call is made.
    let approves = call_approver(|_| async { Approval::Approved });
    let builder = project.engine_builder().journal(before_effect.clone()).approver(approves);
    let engine = builder.build().map_err(|error| Problem::invalid(error.to_string()))?;
    let made = attempt(args, given, project, &engine, None, cancellation).await?;
    let was_let_through = made.result.is_ok() || before_effect.0.load(Ordering::Relaxed);
    Ok((!was_let_through && !is_of_a_source(&made)).then(|| made.tell(global, project)))
}

/// Whether the tool belongs to a source. Sources are not queried before the databases are replaced.
fn is_of_a_source(made: &CallAttempt) -> bool {
    made.why.as_ref().is_some_and(|why| why.by == WithheldBy::Discovery)
}

/// Refuses each call right before its effect, and records that it got this far.
#[derive(Clone, Default)]
struct EvaluationJournal(Arc<AtomicBool>);

impl Journal for EvaluationJournal {
    fn intent<'a>(
        &'a self,
        _: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<(), Box<dyn Error + Send + Sync>>> {
        self.0.store(true, Ordering::Relaxed);
        Box::pin(async { Err("it is only evaluated".into()) })
    }

    fn outcome<'a>(
        &'a self,
        _: PendingCall<'a>,
        _: Option<ErrorCode>,
        _: Option<&'a ToolResult>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// The command that reads the rest of an artifact. The artifact is deleted with the call unless the
/// session has a name.
fn read_on(artifact: &str, global: &GlobalArgs, situation: &Situation) -> String {
    let whom = &situation.whom;
    let name = situation.session.as_deref();
    let call = format!(
        "toolcrib call artifact_read id={artifact}{}{} --session {}",
        project_flags(global),
        whom_flags(whom.principal.as_deref(), whom.tenant.as_deref()),
        shell_word(Path::new(name.unwrap_or("NAME")))
    );
    match name {
        Some(_) => format!("read the rest with `{call}`"),
        None => {
            format!("to read the rest, make the call with `--session NAME`, then run `{call}`")
        }
    }
}
