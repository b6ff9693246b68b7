//! `toolcrib call`: one call through the whole pipe.

use std::{ffi::OsStr, fmt::Write as _, path::Path};

use toolcrib_config::suggest;
use toolcrib_core::{CancellationToken, ErrorCode, Glob, ToolCall};
use toolcrib_engine::WithheldTool;
use toolcrib_project::Project;

use super::{
    ChosenModel, Problem, Purpose,
    call_arguments::{self, Given},
    menu, with_project,
};
use crate::{
    args::{CallArgs, Global, Situation},
    exit::{self, Exit},
    output::{self, CallJson, shell_word},
};

pub(super) async fn call(
    global: &Global,
    args: CallArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let given = call_arguments::read(&args.arguments, &cancellation).await?;
    let (purpose, model) = (Purpose::Run(args.fresh), ChosenModel::default());
    let token = cancellation.clone();
    with_project(global, purpose, model, &token, async |project| {
        make(global, args, given, project, cancellation).await
    })
    .await
}

/// Makes the call, and tells what it came to.
pub(super) async fn make(
    global: &Global,
    args: CallArgs,
    given: Given,
    project: &Project,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let mut turn = menu::turn(project, &args.situation, cancellation)?;
    // Servers that cannot have the tool are not started for it.
    let mut iteration = turn.iteration_for(&args.tool).await.map_err(menu::not_begun)?;

    let schema = iteration.menu().get(&args.tool).map(|tool| tool.input_schema().clone());
    let is_offered = schema.is_some();
    let arguments = given.typed(schema.as_ref());
    let call = ToolCall { id: "call_1".into(), name: args.tool.into(), arguments };
    let Some(result) = iteration.execute(vec![call]).await.pop() else {
        return Err(Problem::failed("internal", "the call gave no result"));
    };
    let why = (result.code == Some(ErrorCode::NotAvailable))
        .then(|| withheld(iteration.withheld().explain(), &result.name))
        .flatten();
    if global.json {
        output::json(&CallJson::with_reason(&result, why.as_ref()));
    } else {
        output::call(&result, why.as_ref(), global.verbose);
        if let [id, ..] = &*result.artifacts
            && project.artifacts_outlive_it()
        {
            output::read_on(&read_on(id, global, &args.situation));
        }
        if !is_offered && why.is_none() {
            let menu = iteration.menu().tools().iter().map(|tool| tool.name().as_str());
            // A server that was left out stands there by a pattern, which nobody can call.
            let withheld = iteration.withheld().names().filter(|name| !name.contains('*'));
            output::meant(suggest::nearest(&result.name, menu.chain(withheld)));
        }
    }
    Ok(match result.code {
        None => exit::FINE,
        Some(ErrorCode::Cancelled) => exit::CANCELLED,
        // Cut off by Ctrl-C, and its effect may have come about.
        Some(ErrorCode::OutcomeUnknown) if turn.cancellation().is_cancelled() => exit::CANCELLED,
        Some(_) => exit::FAILED,
    })
}

/// How to read on in what was kept. It goes with the call unless the conversation has a name.
fn read_on(artifact: &str, global: &Global, situation: &Situation) -> String {
    let mut call = format!("toolcrib call artifact_read id={artifact}");
    let mut push = |flag: &str, value: Option<&OsStr>| {
        if let Some(value) = value {
            let _ = write!(call, " {flag} {}", shell_word(Path::new(value)));
        }
    };
    push("--project", global.project.as_deref().map(Path::as_os_str));
    push("--state", global.state.as_deref().map(Path::as_os_str));
    for file in &global.imports {
        push("--import", Some(file.as_os_str()));
    }
    push("--as", situation.whom.principal.as_deref().map(OsStr::new));
    push("--tenant", situation.whom.tenant.as_deref().map(OsStr::new));
    let name = situation.conversation.as_deref();
    push("--conversation", Some(OsStr::new(name.unwrap_or("NAME"))));
    match name {
        Some(_) => format!("read on with `{call}`"),
        None => {
            format!("to read on, make the call with `--conversation NAME`, and then `{call}`")
        }
    }
}

/// Why a tool is withheld: as itself, else because its server was left out.
fn withheld(all: impl Iterator<Item = WithheldTool>, name: &str) -> Option<WithheldTool> {
    let mut of_server = None;
    for tool in all {
        if *tool.name == *name {
            return Some(tool);
        }
        if tool.name.contains('*') && Glob::new(&*tool.name).matches(name) {
            of_server.get_or_insert(tool);
        }
    }
    of_server
}
