//! The session of `toolcrib run`.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use toolcrib_agent::Session;
use toolcrib_core::{
    CancellationToken, NewSession, SessionInfo, SessionOwner, SessionStore, SessionStoreError,
    Store, TurnState, UsageStore, is_session_id,
};
use toolcrib_engine::DEFAULT_PERSONALITY;
use toolcrib_project::Project;

use super::stored::on_store;
use crate::{
    args::{RunArgs, RunSession, Situation},
    output,
    problem::Problem,
    project::turn::personality,
};

/// The time after which a person is told why the session is not open yet.
const SLOW: Duration = Duration::from_secs(1);

/// The session that a run continues or creates.
pub(crate) struct ChosenSession {
    store: Arc<dyn Store>,
    owner: SessionOwner,
    target: Target,
}

enum Target {
    /// An existing session, by its id.
    Existing { id: Arc<str>, personality: Arc<str> },
    /// A new session, with a name or without.
    New { name: Option<Arc<str>> },
}

impl ChosenSession {
    /// Finds the session of the command line; `None` if the run is not stored. Creates none yet: a
    /// run that cannot begin leaves nothing.
    pub(crate) async fn find(
        project: &Project,
        situation: &Situation,
        wanted: &RunSession,
    ) -> Result<Option<Self>, Problem> {
        let named = situation.session.as_deref();
        let is_wanted = wanted.last || named.is_some();
        if wanted.no_session || !(is_wanted || project.sessions().are_stored()) {
            return Ok(None);
        }
        let owner = situation.whom.owner();
        let sessions = project.sessions().clone();
        let store = on_store(move || sessions.open()).await?;
        let (of, session, last) = (owner.clone(), named.map(Arc::<str>::from), wanted.last);
        let searched = Arc::clone(&store);
        let target = on_store(move || target(&*searched, &of, session, last)).await?;
        let target = target.ok_or_else(|| {
            Problem::usage("there is no session to continue; leave out `-c` to begin one")
        })?;
        Ok(Some(Self { store, owner, target }))
    }

    /// Finds the interrupted session of the command line, or the last interrupted one.
    pub(crate) async fn interrupted(project: &Project, args: &RunArgs) -> Result<Self, Problem> {
        let owner = args.situation.whom.owner();
        let (sessions, of) = (project.sessions().clone(), owner.clone());
        let named = args.situation.session.as_deref().map(Arc::<str>::from);
        let searched = named.clone();
        let found = on_store(move || {
            let Some(store) = sessions.open_existing()? else { return Ok(None) };
            let info = match &searched {
                Some(session) => Some(store.find(&of, session)?),
                None => {
                    let mut listed = store.list(&of, usize::MAX)?.into_iter();
                    listed.find(|info| info.last_turn == Some(TurnState::Running))
                }
            };
            Ok(info.map(|info| (store, info)))
        });
        match (found.await?, named) {
            (
                Some((_, SessionInfo { last_turn: Some(TurnState::Ended { stopped, .. }), .. })),
                Some(session),
            ) => Err(Problem::usage(format!(
                "the last run of the session `{session}` has ended ({stopped}), so there is \
                     nothing to resume; `toolcrib run --session {session} MESSAGE` continues the \
                     conversation"
            ))),
            (Some((store, info)), _) => {
                let target = Target::Existing { id: info.id, personality: info.personality };
                Ok(Self { store, owner, target })
            }
            (None, Some(session)) => Err(SessionStoreError::Unknown { session }.into()),
            (None, None) => Err(Problem::usage(
                "there is no run to resume: none was interrupted; `toolcrib run -c MESSAGE` \
                 continues the last conversation",
            )),
        }
    }

    /// Refuses to continue the last turn with another model than it began with, which may be another vendor's.
    pub(crate) async fn check_model(&self, model: &str) -> Result<(), Problem> {
        let Target::Existing { id, .. } = &self.target else { return Ok(()) };
        let (store, owner, of) = (Arc::clone(&self.store), self.owner.clone(), Arc::clone(id));
        let last = on_store(move || store.history(&owner, &of)).await?.last_turn;
        match last.filter(|turn| *turn.model != *model) {
            Some(turn) => Err(Problem::usage(format!(
                "the run of session `{id}` began with the model {}, and would continue with {model}; \
                 name the model to continue with: `--model`",
                turn.model
            ))),
            None => Ok(()),
        }
    }

    /// The store that counts the usage of its runs.
    pub(crate) fn usage_store(&self) -> Arc<dyn UsageStore> {
        Arc::<dyn Store>::clone(&self.store)
    }

    /// Whether it begins with the first turn.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.target, Target::New { .. })
    }

    /// Gives the situation of the run the personality of the session.
    pub(crate) fn adapt(&self, situation: &mut Situation) -> Result<(), Problem> {
        let Target::Existing { id, personality } = &self.target else { return Ok(()) };
        match &situation.personality {
            Some(other) if **other != **personality => Err(Problem::usage(format!(
                "the session `{id}` has the personality `{personality}`, and cannot continue as \
                 `{other}`; begin another session"
            ))),
            None if **personality != *DEFAULT_PERSONALITY => {
                situation.personality = Some(personality.to_string());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Submits a message to the session, which is created if it is new.
    pub(crate) async fn submit(
        self,
        project: &Project,
        situation: &Situation,
        message: String,
    ) -> Result<SessionInfo, Problem> {
        let Self { store, owner, target } = self;
        let of_project = personality(project, situation.personality.as_deref())?;
        let submitting = on_store(move || {
            let id = match target {
                Target::Existing { id, .. } => id,
                Target::New { name } => {
                    let personality = of_project.unwrap_or_else(|| DEFAULT_PERSONALITY.into());
                    let new = NewSession { owner: owner.clone(), name, personality };
                    store.create(&new)?.id
                }
            };
            store.submit(&owner, &id, &message)?;
            store.find(&owner, &id)
        });
        submitting.await
    }

    /// Opens or creates the session. Waits for a killed run's lease to expire.
    pub(crate) async fn open(
        self,
        situation: &Situation,
        tells: bool,
        cancellation: &CancellationToken,
    ) -> Result<Session, Problem> {
        let Self { store, owner, target } = self;
        let opening = async {
            match target {
                Target::Existing { id, .. } => Session::open(store, &owner, &id).await,
                Target::New { name } => {
                    let personality = situation.personality.as_deref();
                    let personality = personality.unwrap_or(DEFAULT_PERSONALITY).into();
                    Session::create(store, NewSession { owner, name, personality }).await
                }
            }
        };
        let telling = async {
            sleep(SLOW).await;
            if tells {
                output::session_waits();
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(Problem::cancelled()),
            session = opening => Ok(session?),
            never = telling => never,
        }
    }
}

/// Searches for the session; `None` if none is the last. Blocking.
fn target(
    store: &dyn SessionStore,
    owner: &SessionOwner,
    session: Option<Arc<str>>,
    last: bool,
) -> Result<Option<Target>, SessionStoreError> {
    let existing = |info: toolcrib_core::SessionInfo| Target::Existing {
        id: info.id,
        personality: info.personality,
    };
    if last {
        return Ok(store.list(owner, 1)?.into_iter().next().map(existing));
    }
    let Some(session) = session else { return Ok(Some(Target::New { name: None })) };
    match store.find(owner, &session) {
        Ok(info) => Ok(Some(existing(info))),
        Err(SessionStoreError::Unknown { .. }) if !is_session_id(&session) => {
            Ok(Some(Target::New { name: Some(session) }))
        }
        Err(error) => Err(error),
    }
}
