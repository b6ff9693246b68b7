//! Who decides on calls that a rule asks about: the person at the terminal, otherwise one who settles
//! them from another process.

use std::sync::Arc;

use toolcrib_agent::Session;
use toolcrib_approvals::{Approvals, ParkingApprover, Review, TerminalApprover};
use toolcrib_core::Approver;
use toolcrib_engine::TurnOptions;
use toolcrib_project::Project;

use super::{
    questions,
    stored::{existing, on_approvals, on_store},
};
use crate::{output, problem::Problem};

/// The terminal of this process. Its clones ask one question at a time.
pub(crate) fn terminal() -> TerminalApprover {
    TerminalApprover::pausing(output::pause)
}

/// The person at the terminal, if there is one.
fn person(terminal: TerminalApprover) -> Option<Arc<dyn Approver>> {
    TerminalApprover::is_available().then(|| Arc::new(terminal) as Arc<dyn Approver>)
}

/// Lets the person at the terminal answer the questions of a run's turn, and decide on its calls.
pub(crate) async fn attend(
    turn: &mut TurnOptions,
    project: &Project,
    session: Option<&Session>,
    is_resumed: bool,
    terminal: TerminalApprover,
) -> Result<(), Problem> {
    questions::ask_at(&terminal, turn)?;
    turn.approver = Some(of_run(project, person(terminal), session, is_resumed).await?);
    Ok(())
}

/// The approver of a run. A new message closes what waited for the last turn of its session.
pub(crate) async fn of_run(
    project: &Project,
    person: Option<Arc<dyn Approver>>,
    session: Option<&Session>,
    is_resumed: bool,
) -> Result<Arc<dyn Approver>, Problem> {
    let approvals = match session {
        Some(_) => existing(project).await?,
        None => None,
    };
    let (Some(session), Some(approvals)) = (session, approvals) else {
        // Without a person, it refuses and says why.
        return Ok(person.unwrap_or_else(|| Arc::new(terminal())));
    };
    let id = Arc::clone(session.id());
    if !is_resumed {
        let (approvals, id) = (approvals.clone(), Arc::clone(&id));
        on_approvals(move || approvals.withdraw(&id)).await?;
    }
    Ok(parking_after(person, approvals.approver(Some(id))))
}

/// The approver of calls without a session, made by a person at the terminal.
pub(crate) async fn of_call(project: &Project) -> Result<Arc<dyn Approver>, Problem> {
    let terminal = terminal();
    Ok(match of_calls(project).await? {
        Some(approvals) => parking_after(person(terminal), approvals.approver(None)),
        None => Arc::new(terminal),
    })
}

fn parking_after(person: Option<Arc<dyn Approver>>, parking: ParkingApprover) -> Arc<dyn Approver> {
    Arc::new(match person {
        Some(person) => parking.asking(person),
        None => parking,
    })
}

/// The approvals of calls without a session; `None` if none are needed or nothing is stored.
pub(crate) async fn of_calls(project: &Project) -> Result<Option<Approvals>, Problem> {
    let approvals = project.approvals().clone();
    on_store(move || approvals.open()).await
}

/// The calls of a session that wait.
pub(crate) async fn waiting(project: &Project, session: &str) -> Result<Vec<Review>, Problem> {
    let Some(approvals) = existing(project).await? else { return Ok(Vec::new()) };
    let listed = on_approvals(move || approvals.list(false)).await?;
    let of_session = |review: &Review| review.stored.call.session.as_deref() == Some(session);
    Ok(listed.into_iter().filter(|review| &*review.state == "open" && of_session(review)).collect())
}
