//! The stored sessions, runs and approvals of a project.

use std::{
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use toolcrib_approvals::{ApprovalError, Approvals, Review};
use toolcrib_core::{
    ApprovalGrant, CancellationToken, Identity, SessionInfo, SessionOwner, SessionStoreError,
    StoredSession,
};
use toolcrib_project::Project;

use crate::{
    args::{GlobalArgs, IdentityArgs, OfflineArgs},
    problem::Problem,
    project::load::{ChosenModel, Purpose, blocking, load},
};

/// Creates a file that only its owner can read. An existing file is never replaced.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
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
pub(crate) async fn inspected(
    global: &GlobalArgs,
    cancellation: &CancellationToken,
) -> Result<Project, Problem> {
    let purpose = Purpose::Look(OfflineArgs { offline: true });
    load(global, purpose, ChosenModel::default(), cancellation).await
}

/// Reads a session, by its id or name.
pub(crate) async fn read(
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
pub(crate) async fn delete(
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

pub(crate) fn unknown(session: &str) -> SessionStoreError {
    SessionStoreError::Unknown { session: session.into() }
}

/// Runs a function on the store, off the async workers.
pub(crate) async fn on_store<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SessionStoreError> + Send + 'static,
) -> Result<T, Problem> {
    Ok(blocking(work).await??)
}

/// The calls that wait, or all of the last 30 days, and the grants.
pub(crate) async fn listed(
    project: &Project,
    all: bool,
) -> Result<(Vec<Review>, Vec<ApprovalGrant>), Problem> {
    let Some(approvals) = existing(project).await? else { return Ok((Vec::new(), Vec::new())) };
    on_approvals(move || Ok((approvals.list(all)?, approvals.grants()?))).await
}

/// The approvals, unless none are stored.
pub(crate) async fn existing(project: &Project) -> Result<Option<Approvals>, Problem> {
    let approvals = project.approvals().clone();
    on_store(move || approvals.open_existing()).await
}

/// Runs a function on approvals, off the async workers.
pub(crate) async fn on_approvals<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApprovalError> + Send + 'static,
) -> Result<T, Problem> {
    Ok(blocking(work).await??)
}
