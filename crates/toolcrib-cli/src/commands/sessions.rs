//! `toolcrib sessions`, `show` and `export`: the stored runs of a project.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use toolcrib_core::{
    CancellationToken, Identity, KvError, SessionInfo, SessionOwner, SessionStore as _,
    SessionStoreError, StoredSession,
};
use toolcrib_gateway::CallerRestrictions;
use toolcrib_project::Project;

use super::{ChosenModel, Problem, Purpose, blocking, load};
use crate::{
    args::{
        ExportArgs, ExportFormat, GlobalArgs, IdentityArgs, ListArgs, OfflineArgs, SessionsCommand,
        ShowArgs,
    },
    exit::{self, Exit},
    output::{self, SessionsJson},
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

/// Creates a file that only its owner can read. An existing file is never replaced.
pub(super) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let about = |error: io::Error| {
        let problem = match error.kind() {
            io::ErrorKind::AlreadyExists => "already exists; name a new file".to_owned(),
            _ => format!("cannot be written: {error}"),
        };
        io::Error::other(format!("{} {problem}", path.display()))
    };
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(about)?;
    file.write_all(text.as_bytes()).map_err(about)
}

/// The project, without starting any part of it.
pub(super) async fn inspected(
    global: &GlobalArgs,
    cancellation: &CancellationToken,
) -> Result<Project, Problem> {
    let purpose = Purpose::Look(OfflineArgs { offline: true });
    load(global, purpose, ChosenModel::default(), cancellation).await
}

/// Reads a session, by its id or name.
pub(super) async fn read(
    project: &Project,
    whom: &IdentityArgs,
    session: String,
) -> Result<StoredSession, Problem> {
    let (sessions, owner) = (project.sessions().clone(), whom.owner());
    let read = on_store(move || {
        let store = sessions.open_existing()?.ok_or_else(|| unknown(&session))?;
        let id = store.find(&owner, &session)?.id;
        store.read(&owner, &id)
    });
    read.await
}

/// Deletes a session and its artifacts.
pub(super) async fn delete(
    project: &Project,
    whom: &IdentityArgs,
    session: String,
) -> Result<SessionInfo, Problem> {
    let (sessions, owner) = (project.sessions().clone(), whom.owner());
    let artifacts = project.artifacts().cloned();
    let deleted = on_store(move || {
        let store = sessions.open_existing()?.ok_or_else(|| unknown(&session))?;
        let info = store.find(&owner, &session)?;
        store.remove(&owner, &info.id)?;
        if let Some(artifacts) = artifacts {
            let SessionOwner { tenant, principal } = owner;
            let conversation = info.conversation().clone();
            let forgotten = artifacts.forget(&Identity { tenant, principal, conversation });
            forgotten.map_err(|error| SessionStoreError::Io {
                store: format!("the artifacts of `{session}`"),
                doing: "removed",
                source: error.into(),
            })?;
        }
        Ok(info)
    });
    deleted.await
}

pub(super) fn unknown(session: &str) -> SessionStoreError {
    SessionStoreError::Unknown { session: session.into() }
}

/// Runs a function on the store, off the async workers.
pub(super) async fn on_store<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionStoreError> + Send + 'static,
) -> Result<T, Problem> {
    Ok(blocking(work).await??)
}
