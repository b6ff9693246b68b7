//! `toolcrib worker`: runs the sessions that have work.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{
    task::{Id, JoinSet},
    time::{Instant, sleep, sleep_until},
};
use toolcrib_agent::{Agent, EndReason, RunOptions, RunOutcome, Session};
use toolcrib_core::{CancellationToken, SessionOwner, SessionStore, Store};
use toolcrib_project::Project;

use crate::{
    args::{FreshArgs, GlobalArgs, IdentityArgs, Situation, WorkerArgs},
    exit::{self, Exit},
    host::{agent::agent, approver, stored::on_store},
    output::{self, RunJson},
    problem::Problem,
    project::{
        load::{ChosenModel, Purpose, unless_cancelled, with_project},
        turn::{export_spans, turn_options},
    },
};

/// The time between two looks for work, if there was none.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The time after which a segment that could not begin, or not be stored, is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(10);

pub(super) async fn worker(
    global: &GlobalArgs,
    args: WorkerArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let (purpose, model) = (Purpose::Run(FreshArgs::default()), ChosenModel::from(&args.model));
    let token = cancellation.clone();
    with_project(global, purpose, model, &token, async |project| {
        let tells = !global.quiet && !global.json;
        let situation = Situation::default();
        let agent = unless_cancelled(agent(project, &situation, tells), &cancellation).await??;
        export_spans(agent.engine())?;
        let sessions = project.sessions().clone();
        let store = on_store(move || sessions.open()).await?;
        let IdentityArgs { principal, tenant } = &args.whom;
        let owner = (principal.is_some() || tenant.is_some()).then(|| args.whom.owner());
        if tells {
            output::worker_begins(args.concurrency.get());
        }
        let (running, sessions) = (JoinSet::new(), HashMap::new());
        let problem = None;
        let worker = Worker { global, project, agent, store, owner, running, sessions, problem };
        worker.work(args.concurrency.get(), args.grace, &cancellation).await
    })
    .await
}

struct Worker<'a> {
    global: &'a GlobalArgs,
    project: &'a Project,
    agent: Agent,
    store: Arc<dyn Store>,
    /// Only sessions of this owner.
    owner: Option<SessionOwner>,
    /// The segments.
    running: JoinSet<RunOutcome>,
    /// The sessions of `running`, by the tasks.
    sessions: HashMap<Id, Session>,
    /// The last problem of claims, which is printed once.
    problem: Option<String>,
}

impl Worker<'_> {
    /// Works until it is cancelled, and then until no segment runs, for a time.
    async fn work(
        mut self,
        concurrency: usize,
        grace: Duration,
        cancellation: &CancellationToken,
    ) -> Result<Exit, Problem> {
        let mut end = None;
        while end.is_none() || !self.running.is_empty() {
            while !cancellation.is_cancelled() && self.running.len() < concurrency {
                if !self.claim().await {
                    break;
                }
            }
            tokio::select! {
                () = cancellation.cancelled(), if end.is_none() => end = Some(Instant::now() + grace),
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => break,
                Some(ended) = self.running.join_next_with_id() => match ended {
                    Ok((task, outcome)) => self.ended(task, &outcome).await,
                    Err(panic) => self.leave(panic.id(), RETRY_AFTER).await,
                },
                () = sleep(LOOK_EVERY), if end.is_none() => {}
            }
        }
        self.running.shutdown().await;
        for task in self.sessions.keys().copied().collect::<Vec<_>>() {
            self.leave(task, Duration::ZERO).await;
        }
        Ok(exit::FINE)
    }

    /// Leaves the session of a segment that has not ended to other workers.
    async fn leave(&mut self, task: Id, after: Duration) {
        if let Some(session) = self.sessions.remove(&task) {
            let id = Arc::clone(session.id());
            // Without the store, the lease expires by itself.
            let _ = session.leave(after).await;
            output::segment_left(&id);
        }
    }

    /// Begins the segment of a session that has work; false if there is none.
    async fn claim(&mut self) -> bool {
        let store: Arc<dyn SessionStore> = self.store.clone();
        match Session::claim(&store, self.owner.as_ref()).await {
            Ok(Some(session)) => {
                self.problem = None;
                if let Err(problem) = self.begin(&session).await {
                    output::segment_failed(session.id(), problem.message());
                    let _ = session.leave(RETRY_AFTER).await;
                }
                true
            }
            Ok(None) => {
                self.problem = None;
                false
            }
            Err(error) => {
                let problem = error.to_string();
                if self.problem.as_ref() != Some(&problem) {
                    output::claim_failed(&error);
                }
                self.problem = Some(problem);
                false
            }
        }
    }

    async fn begin(&mut self, session: &Session) -> Result<(), Problem> {
        let SessionOwner { tenant, principal } = session.owner();
        let text = |value: &Option<Arc<str>>| value.as_deref().map(str::to_owned);
        let situation = Situation {
            whom: IdentityArgs { principal: text(principal), tenant: text(tenant) },
            session: Some(session.conversation().to_string()),
            ..Situation::default()
        };
        // A separate token, because a signal leaves the session to other workers and does not cancel its run.
        let mut turn = turn_options(self.project, &situation, CancellationToken::new())?;
        // It has the conversation.
        turn.conversation = None;
        let is_resumed = session.submitted().is_none();
        let approver = approver::of_run(self.project, None, Some(session), is_resumed).await?;
        turn.approver = Some(approver);
        let mut options = RunOptions::from(turn).session(session);
        options.usage_store = Some(self.store.clone());
        let agent = self.agent.clone();
        let segment = self.running.spawn(async move { agent.segment(options).await });
        self.sessions.insert(segment.id(), session.clone());
        Ok(())
    }

    async fn ended(&mut self, task: Id, outcome: &RunOutcome) {
        let Some(session) = self.sessions.remove(&task) else { return };
        let id = Arc::clone(session.id());
        // Without the store, the lease expires by itself.
        let _ = session.end_segment(outcome, RETRY_AFTER).await;
        if !self.global.json {
            return output::segment_ended(&id, outcome);
        }
        let waiting = match outcome.end_reason {
            EndReason::AwaitingApproval => approver::waiting(self.project, &id).await,
            _ => Ok(Vec::new()),
        };
        let waiting = waiting.unwrap_or_else(|problem| {
            output::segment_failed(&id, problem.message());
            Vec::new()
        });
        let model = self.agent.model().name();
        let json = RunJson::new(model, Some(&id), outcome);
        output::json_line(&json.waiting(&waiting));
    }
}
