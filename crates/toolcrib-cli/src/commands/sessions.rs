//! `toolcrib sessions`, `show` and `export`: the stored runs of a project.

use toolcrib_core::{CancellationToken, KvError, SessionOwner};
use toolcrib_gateway::CallerRestrictions;
use toolcrib_project::Project;

use crate::{
    args::{ExportArgs, ExportFormat, GlobalArgs, ListArgs, SessionsCommand, ShowArgs},
    exit::{self, Exit},
    host::stored::{delete, inspected, on_store, read, write_new},
    output::{self, SessionsJson},
    problem::Problem,
    project::load::blocking,
};

pub(super) async fn sessions(
    global: &GlobalArgs,
    list: ListArgs,
    command: Option<SessionsCommand>,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = inspected(global, &cancellation).await?;
    match command.unwrap_or(SessionsCommand::List(list)) {
        SessionsCommand::List(ListArgs { limit, whom }) => {
            let (sessions, owner) = (project.sessions().clone(), whom.owner());
            let listed = on_store(move || match sessions.open_existing()? {
                Some(store) => store.list(&owner, limit),
                None => Ok(Vec::new()),
            });
            let listed = listed.await?;
            if global.json {
                output::json(&SessionsJson { sessions: &listed });
            } else {
                output::sessions(&listed, limit, global.quiet);
            }
        }
        SessionsCommand::Delete { sessions, whom } => {
            for session in sessions {
                let deleted = delete(&project, &whom, session).await?;
                if global.json {
                    output::json(&deleted);
                } else {
                    output::session_deleted(&deleted, global.quiet);
                }
            }
        }
        SessionsCommand::Restrictions { lift, whom } => {
            let restrictions = restrictions(&project, whom.owner(), lift).await?;
            if global.json {
                output::json(&restrictions);
            } else if !global.quiet {
                output::restrictions(&restrictions, lift);
            }
        }
    }
    Ok(exit::FINE)
}

/// The restrictions of a caller of a gateway, before they are lifted.
async fn restrictions(
    project: &Project,
    caller: SessionOwner,
    lift: bool,
) -> Result<CallerRestrictions, Problem> {
    let Some(store) = project.key_values() else {
        return Err(Problem::usage(
            "the project stores nothing: `[sessions]` has store = \"none\"; a gateway then forgets \
             what restricts its callers when it ends",
        ));
    };
    let found = blocking(move || {
        let found = CallerRestrictions::read(&*store, &caller)?;
        if lift && !found.is_empty() {
            CallerRestrictions::lift(&*store, &caller)?;
        }
        Ok::<_, KvError>(found)
    });
    found.await?.map_err(|error| Problem::failed("store_failed", error.to_string()))
}

pub(super) async fn show(
    global: &GlobalArgs,
    args: ShowArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = inspected(global, &cancellation).await?;
    let session = read(&project, &args.whom, args.session).await?;
    if global.json {
        output::json(&session);
    } else {
        output::session(&session, global.verbose);
    }
    Ok(exit::FINE)
}

pub(super) async fn export(
    global: &GlobalArgs,
    args: ExportArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let ExportArgs { show, format, output } = args;
    let project = inspected(global, &cancellation).await?;
    let session = read(&project, &show.whom, show.session).await?;
    let format = if global.json { ExportFormat::Json } else { format };
    let text = match format {
        ExportFormat::Json => output::session_json(&session)
            .map_err(|error| Problem::failed("internal", error.to_string()))?,
        ExportFormat::Md => output::session_markdown(&session),
    };
    match output {
        None => output::exported(&text),
        Some(path) => {
            write_new(&path, &text)
                .map_err(|error| Problem::usage(format!("`--output`: {error}")))?;
            output::exported_to(&path, global.quiet);
        }
    }
    Ok(exit::FINE)
}
