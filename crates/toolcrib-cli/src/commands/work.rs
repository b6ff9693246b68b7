//! `toolcrib submit`, `follow` and `cancel`: runs that a worker makes.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use toolcrib_core::{CancellationToken, SessionInfo, StoredSession, TurnState};
use toolcrib_project::Project;

use crate::{
    args::{CancelArgs, FollowArgs, GlobalArgs, RunSession, Situation, SubmitArgs},
    exit::{self, Exit},
    host::{
        approver,
        run_session::ChosenSession,
        stored::{existing, inspected, on_approvals, on_store, unknown},
    },
    output,
    problem::Problem,
    project::{
        load::unless_cancelled,
        turn::{project_flags, whom_flags},
    },
};

/// The time between two looks at a session.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(super) async fn submit(
    global: &GlobalArgs,
    args: SubmitArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let SubmitArgs { words, session, personality, whom } = args;
    let whom_flags = whom_flags(whom.principal.as_deref(), whom.tenant.as_deref());
    let message = super::run::message(&words, &cancellation).await?;
    let project = inspected(global, &cancellation).await?;
    let mut situation = Situation { session, personality, whom, ..Situation::default() };
    let chosen = ChosenSession::find(&project, &situation, &RunSession::default()).await?;
    let Some(chosen) = chosen else {
        return Err(Problem::usage(
            "the project stores nothing: `[sessions]` has store = \"none\"; name a session with \
             `--session NAME`",
        ));
    };
    chosen.adapt(&mut situation)?;
    let message = project.redactor().text(&message).into_owned();
    let info = chosen.submit(&project, &situation, message).await?;
    if global.json {
        output::json(&info);
    } else {
        output::submitted(&info, &(project_flags(global) + &whom_flags), global.quiet);
    }
    Ok(exit::FINE)
}

pub(super) async fn cancel(
    global: &GlobalArgs,
    args: CancelArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let CancelArgs { session, whom } = args;
    let project = inspected(global, &cancellation).await?;
    let (sessions, owner) = (project.sessions().clone(), whom.owner());
    let cancelled = on_store(move || {
        let store = sessions.open_existing()?.ok_or_else(|| unknown(&session))?;
        let id = store.find(&owner, &session)?.id;
        Ok((store.cancel(&owner, &id)?, id))
    });
    let (is_cancelled, id) = cancelled.await?;
    if is_cancelled && let Some(approvals) = existing(&project).await? {
        let id = Arc::clone(&id);
        on_approvals(move || approvals.withdraw(&id)).await?;
    }
    if global.json {
        output::json(&serde_json::json!({ "session": &*id, "cancelled": is_cancelled }));
    } else {
        output::session_cancelled(&id, is_cancelled, global.quiet);
    }
    Ok(exit::FINE)
}

pub(super) async fn follow(
    global: &GlobalArgs,
    args: FollowArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = inspected(global, &cancellation).await?;
    unless_cancelled(follow_session(global, args, &project), &cancellation).await?
}

async fn follow_session(
    global: &GlobalArgs,
    args: FollowArgs,
    project: &Project,
) -> Result<Exit, Problem> {
    let FollowArgs { session, whom } = args;
    let (sessions, owner) = (project.sessions().clone(), whom.owner());
    let opening = on_store(move || {
        let store = sessions.open_existing()?.ok_or_else(|| unknown(&session))?;
        let info = store.find(&owner, &session)?;
        Ok((store, info))
    });
    let (store, info) = opening.await?;
    let waits_for_turn = info.submitted > 0 && info.last_turn != Some(TurnState::Running);
    let mut shown = output::Follower::new(info.turns + u32::from(waits_for_turn), global);
    let mut last: Option<SessionInfo> = None;
    loop {
        let (store, of, known) = (Arc::clone(&store), info.clone(), last.clone());
        let looked = on_store(move || {
            let now = store.find(&of.owner, &of.id)?;
            let has_changed = known.as_ref() != Some(&now);
            let session = has_changed.then(|| store.read(&of.owner, &of.id)).transpose()?;
            Ok((now, session))
        });
        let (now, session) = looked.await?;
        if let Some(session) = session {
            shown.show(&session);
            if let Some(exit) = ended(&session, &shown) {
                return Ok(exit);
            }
            let last = session.turns.last();
            if last.is_some_and(|turn| turn.state == TurnState::Running) {
                tell_waiting(global, project, &mut shown, &session).await?;
            }
        }
        last = Some(now);
        sleep(LOOK_EVERY).await;
    }
}

/// The exit code of a session that has no more to do; `None` while it has.
fn ended(session: &StoredSession, shown: &output::Follower) -> Option<Exit> {
    let last = session.turns.last().filter(|turn| shown.has_shown(turn.number));
    match last.map(|turn| &turn.state) {
        _ if session.info.submitted > 0 => None,
        Some(TurnState::Ended { stopped, .. }) => Some(Exit::of_stopped(stopped)),
        Some(TurnState::Running) => None,
        // The message was cancelled before its turn.
        None => Some(exit::CANCELLED),
    }
}

/// Says which calls wait for approval.
async fn tell_waiting(
    global: &GlobalArgs,
    project: &Project,
    shown: &mut output::Follower,
    session: &StoredSession,
) -> Result<(), Problem> {
    if global.json || global.quiet {
        return Ok(());
    }
    let mut waiting = approver::waiting(project, &session.info.id).await?;
    waiting.retain(|review| shown.is_new(&review.stored.id));
    output::waiting(&waiting, &session.info.id, &project_flags(global), "");
    Ok(())
}
