//! Who decides on calls that a rule asks about: the person at the terminal, otherwise one who settles
//! them from another process.

use std::sync::Arc;

use toolcrib_agent::Session;
use toolcrib_approvals::{Approvals, Review, TerminalApprover};
use toolcrib_core::Approver;
use toolcrib_project::Project;

use super::{Problem, approvals::on_approvals, sessions::on_store};
use crate::output;

/// The terminal of this process. Its clones ask one question at a time.
pub(super) fn terminal() -> TerminalApprover {
    TerminalApprover::pausing(output::pause)
}

/// The approver of a run. A new message closes what waited for the last turn of its session.
pub(super) async fn of_run(
    project: &Project,
    terminal: TerminalApprover,
    session: Option<&Session>,
    is_resumed: bool,
) -> Result<Arc<dyn Approver>, Problem> {
    let Some(session) = session else { return Ok(Arc::new(terminal)) };
    let Some(approvals) = existing(project).await? else { return Ok(Arc::new(terminal)) };
    let id = Arc::clone(session.id());
    if !is_resumed {
        let (approvals, id) = (approvals.clone(), Arc::clone(&id));
        on_approvals(move || approvals.withdraw(&id)).await?;
    }
    Ok(Arc::new(approvals.approver(Some(id)).asking(terminal)))
}

/// The approver of calls without a session, made by a person at the terminal.
pub(super) async fn of_call(project: &Project) -> Result<Arc<dyn Approver>, Problem> {
    let terminal = terminal();
    Ok(match of_calls(project).await? {
        Some(approvals) => Arc::new(approvals.approver(None).asking(terminal)),
        None => Arc::new(terminal),
    })
}

/// The approvals of calls without a session; `None` if none are needed or nothing is stored.
pub(super) async fn of_calls(project: &Project) -> Result<Option<Approvals>, Problem> {
    let approvals = project.approvals().clone();
    on_store(move || approvals.open()).await
}

/// The calls of a session that wait.
pub(super) async fn waiting(project: &Project, session: &str) -> Result<Vec<Review>, Problem> {
    let Some(approvals) = existing(project).await? else { return Ok(Vec::new()) };
    let listed = on_approvals(move || approvals.list(false)).await?;
    let of_session = |review: &Review| review.stored.call.session.as_deref() == Some(session);
    Ok(listed.into_iter().filter(|review| &*review.state == "open" && of_session(review)).collect())
}

async fn existing(project: &Project) -> Result<Option<Approvals>, Problem> {
    let approvals = project.approvals().clone();
    on_store(move || approvals.open_existing()).await
}
