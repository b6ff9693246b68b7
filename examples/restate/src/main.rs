//! Sessions of an agent as virtual objects of Restate. The guide is `docs/frameworks.md`.
//!
//! `example-restate ADDRESS FOLDER API` serves at an address, stores sessions in a folder, and reaches a
//! model at `API/v1` and effects at `API/effect`.
#![allow(clippy::disallowed_methods, clippy::print_stderr, reason = "a host program")]

mod shop;

use std::{env, error::Error, path::Path, sync::Arc};

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use toolcrib::{
    agent::{Agent, RunOptions, Session},
    models::Message,
    policy::approvals::{ApprovalError, ApprovalKeys, Approvals},
    sessions::{SessionOwner, SessionStore, SqliteStore, TurnState},
};

// snippet
/// The virtual object: its key is the name of a session, and Restate runs one handler of a key at a time.
struct Sessions {
    agent: Agent,
    store: Arc<SqliteStore>,
    approvals: Approvals,
}

/// What the client receives at the end of a segment.
#[derive(Serialize, Deserialize)]
struct Reply {
    /// The answer, unless calls wait for a person.
    answer: Option<String>,
    /// The ids of the calls that wait. `decide` continues the session.
    waiting: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Decision {
    id: String,
    approve: bool,
}
// end

// snippet
#[restate_sdk::object(
    // A segment is one step of Restate, and may take as long as its model and tools.
    inactivity_timeout = "1 day",
    // Restate pauses an invocation after 70 attempts by default.
    invocation_retry_policy(initial_interval = "100ms", max_interval = "1s", max_attempts = 1_000_000_000)
)]
impl Sessions {
    /// The segment from a message to an answer, or to calls that wait for a person.
    #[handler]
    async fn say(
        &self,
        ctx: ObjectContext<'_>,
        message: String,
    ) -> Result<Json<Reply>, HandlerError> {
        let session = self.agent.session(&SessionOwner::default(), ctx.key()).await?;
        let turns = session.info().await?.turns;
        // Restate repeats what follows, so it must know whether the turn of this message has begun.
        let before = ctx.run(|| async move { Ok(turns) }).name("turns").await?;
        let message = (turns == before).then_some(message);
        self.segment(session, message).await
    }

    /// The segment from a decision. It begins when the one before has ended, which therefore never waits.
    #[handler]
    async fn decide(
        &self,
        ctx: ObjectContext<'_>,
        decision: Json<Decision>,
    ) -> Result<Json<Reply>, HandlerError> {
        let session = self.agent.session(&SessionOwner::default(), ctx.key()).await?;
        let Decision { id, approve } = decision.into_inner();
        // An attempt after a crash finds the decision made, and only goes on.
        if self.waiting(&session)?.contains(&id) {
            match approve {
                true => self.approvals.approve(&id)?,
                false => self.approvals.deny(&id, None)?,
            };
        }
        self.segment(session, None).await
    }
}
// end

// snippet
impl Sessions {
    /// Runs until the answer, or until calls wait. An error that is not terminal lets Restate try again.
    async fn segment(
        &self,
        session: Session,
        message: Option<String>,
    ) -> Result<Json<Reply>, HandlerError> {
        let mut options = RunOptions::default().session(&session);
        let approver = self.approvals.approver(Some(Arc::clone(session.id())));
        options.turn = options.turn.approver(Arc::new(approver));
        let is_running = session.info().await?.last_turn == Some(TurnState::Running);
        match message {
            Some(message) => drop(self.agent.run(message, options).await),
            None if is_running => drop(self.agent.resume(options).await),
            // The attempt before has ended the turn, and died before Restate stored its reply.
            None => {}
        }
        let reply = self.reply(&session).await;
        // Otherwise the next segment would wait until the lease expires.
        session.close().await?;
        reply
    }

    /// The reply, from what the store has: it is the same in each attempt.
    async fn reply(&self, session: &Session) -> Result<Json<Reply>, HandlerError> {
        let info = session.info().await?;
        match info.last_turn {
            Some(TurnState::Ended { error: None, .. }) => {
                let messages = self.store.history(&info.owner, &info.id)?.messages;
                let answer = messages.last().and_then(|last| match &last.message {
                    Message::Assistant { text, .. } => Some(text.to_string()),
                    _ => None,
                });
                Ok(Json(Reply { answer, waiting: Vec::new() }))
            }
            Some(TurnState::Ended { stopped, error: Some(error) }) => {
                Err(TerminalError::new(format!("{stopped}: {error}")).into())
            }
            _ => match self.waiting(session)? {
                waiting if waiting.is_empty() => Err("the run was interrupted".into()),
                waiting => Ok(Json(Reply { answer: None, waiting })),
            },
        }
    }

    /// The ids of the calls of a session that wait for a person.
    fn waiting(&self, session: &Session) -> Result<Vec<String>, ApprovalError> {
        let mut open = self.approvals.list(false)?;
        open.retain(|review| {
            &*review.state == "open" && review.stored.call.session.as_ref() == Some(session.id())
        });
        Ok(open.into_iter().map(|review| review.stored.id.to_string()).collect())
    }
}
// end

// snippet
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, folder, api] = arguments.as_slice() else {
        return Err("usage: example-restate ADDRESS FOLDER API".into());
    };
    let folder = Path::new(folder);
    let store = Arc::new(SqliteStore::open(folder.join("sessions.db"))?);
    let keys = ApprovalKeys::new(Some(folder.join("keys")));
    let approvals = Approvals::new(Arc::clone(&store) as _, keys, "example");
    let agent = shop::agent(api)?.store(Arc::clone(&store)).build()?;
    let endpoint = Endpoint::builder().bind(Sessions { agent, store, approvals }).build();
    HttpServer::new(endpoint).listen_and_serve(address.parse()?).await;
    Ok(())
}
// end
