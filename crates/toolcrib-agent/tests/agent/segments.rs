//! Submitted messages and the segments of sessions, as workers run them.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::sleep;
use toolcrib_agent::{Agent, EndReason, RunError, RunOptions, RunOutcome, Session};
use toolcrib_approvals::{ApprovalKeys, Approvals};
use toolcrib_core::{
    Message, NewSession, Policy, Rule, SessionInfo, SessionOwner, SessionStore, SessionStoreError,
    ToolContext, TurnState,
};
use toolcrib_engine::Redactor;
use toolcrib_store::SqliteStore;
use toolcrib_testing::{TestModel, assert_replayable, model};

use crate::support::{agent, builder, call, calls, endless, says};

fn owner() -> SessionOwner {
    SessionOwner::principal("ann")
}

struct World {
    store: Arc<dyn SessionStore>,
    sqlite: SqliteStore,
    id: Arc<str>,
    folder: tempfile::TempDir,
}

impl World {
    async fn with(messages: &[&str]) -> Self {
        let sqlite = SqliteStore::in_memory().unwrap();
        let store: Arc<dyn SessionStore> = Arc::new(sqlite.clone());
        let new = NewSession { owner: owner(), name: None, personality: "default".into() };
        let id = store.create(&new).unwrap().id;
        for message in messages {
            Session::submit(&store, &owner(), &id, *message).await.unwrap();
        }
        Self { store, sqlite, id, folder: tempfile::tempdir().unwrap() }
    }

    async fn claim(&self) -> Option<Session> {
        Session::claim(&self.store, None).await.unwrap()
    }

    fn approvals(&self) -> Approvals {
        let keys = ApprovalKeys::new(Some(self.folder.path().join("config")));
        Approvals::new(Arc::new(self.sqlite.clone()), keys, "shop")
    }

    fn options(&self, session: &Session) -> RunOptions {
        let mut options = RunOptions::default().session(session);
        let approver = self.approvals().approver(Some(Arc::clone(session.id())));
        options.turn = options.turn.approver(Arc::new(approver));
        options
    }

    /// Runs the next segment as a worker does.
    async fn segment(&self, agent: &Agent) -> Option<RunOutcome> {
        let session = self.claim().await?;
        let outcome = agent.segment(self.options(&session)).await;
        session.end_segment(&outcome, Duration::from_secs(60)).await.unwrap();
        Some(outcome)
    }

    fn info(&self) -> SessionInfo {
        self.store.find(&owner(), &self.id).unwrap()
    }

    fn stopped(&self) -> String {
        match self.info().last_turn {
            Some(TurnState::Ended { stopped, .. }) => stopped.to_string(),
            other => panic!("{other:?}"),
        }
    }

    /// The messages, which are those of a conversation that a vendor accepts.
    fn messages(&self) -> Vec<Message> {
        let stored = self.store.read(&owner(), &self.id).unwrap().messages;
        let messages: Vec<_> = stored.into_iter().map(|stored| stored.message).collect();
        assert_replayable(&messages);
        messages
    }
}

#[tokio::test]
async fn each_submitted_message_is_a_turn() {
    let world = World::with(&["One", "Two"]).await;
    assert_eq!((world.info().turns, world.info().submitted), (0, 2));
    let agent = agent(&model().always(says("Done."))).build().unwrap();
    for left in [1, 0] {
        let outcome = world.segment(&agent).await.unwrap();
        assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
        assert_eq!(world.info().submitted, left);
    }
    assert!(world.segment(&agent).await.is_none(), "no message is left");
    let users = world.messages().into_iter().filter_map(|message| match message {
        Message::User { text, .. } => Some(text.to_string()),
        _ => None,
    });
    assert_eq!(users.collect::<Vec<_>>(), ["One", "Two"]);
}

#[tokio::test]
async fn a_session_that_is_in_use_takes_messages_and_is_not_waited_for() {
    let world = World::with(&["Go"]).await;
    let session = world.claim().await.unwrap();
    assert_eq!(
        session.submitted().map(|message| (message.number, &*message.text)),
        Some((1, "Go"))
    );
    let opened = Session::try_open(Arc::clone(&world.store), &owner(), &world.id).await.unwrap();
    assert!(opened.is_none(), "it has a lease");
    Session::submit(&world.store, &owner(), &world.id, "Later").await.unwrap();
    assert!(world.claim().await.is_none(), "it has a lease");
    session.close().await.unwrap();
    let opened = Session::try_open(Arc::clone(&world.store), &owner(), &world.id).await.unwrap();
    assert!(opened.is_some(), "the lease was released");
    let unknown = Session::try_open(Arc::clone(&world.store), &owner(), "none").await.unwrap_err();
    assert!(matches!(unknown, SessionStoreError::Unknown { .. }), "{unknown}");
}

#[tokio::test]
async fn a_turn_that_is_left_is_resumed_by_the_next_claim() {
    let world = World::with(&["Go"]).await;
    let session = world.claim().await.unwrap();
    let stuck = agent(&model().always(calls([call("a", "wait", json!({}))])))
        .tool(endless(builder("wait")))
        .build()
        .unwrap();
    let run = tokio::spawn(stuck.segment(world.options(&session)).into_future());
    while world.info().last_turn.is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_millis(50)).await;
    run.abort();
    let _ = run.await;
    session.leave(Duration::ZERO).await.unwrap();

    let session = world.claim().await.unwrap();
    assert!(session.submitted().is_none(), "the message was taken");
    session.leave(Duration::ZERO).await.unwrap();
    let done =
        agent(&model().always(says("Done."))).tool(endless(builder("wait"))).build().unwrap();
    let outcome = world.segment(&done).await.unwrap();
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    let unknown = world.messages().into_iter().any(|message| {
        matches!(message, Message::Tool { text, .. } if text.starts_with("outcome_unknown"))
    });
    assert!(unknown, "the call was cut off");
}

#[tokio::test]
async fn a_claimed_session_that_is_dropped_is_not_released() {
    let world = World::with(&["Go"]).await;
    drop(world.claim().await.unwrap());
    // Long enough for a release in the background. A released lease would hide an open turn from claims.
    sleep(Duration::from_millis(100)).await;
    let opened = Session::try_open(Arc::clone(&world.store), &owner(), &world.id).await.unwrap();
    assert!(opened.is_none(), "its lease expires");
}

#[tokio::test]
async fn a_segment_that_cannot_begin_is_tried_again_later() {
    let world = World::with(&[]).await;
    let new = NewSession { owner: owner(), name: None, personality: "unknown".into() };
    let id = world.store.create(&new).unwrap().id;
    Session::submit(&world.store, &owner(), &id, "Go").await.unwrap();
    let agent = agent(&model().always(says("Done."))).build().unwrap();
    let outcome = world.segment(&agent).await.unwrap();
    assert_eq!(outcome.end_reason, EndReason::Failed);
    assert_eq!(world.store.find(&owner(), &id).unwrap().submitted, 1);
    assert!(world.claim().await.is_none(), "not before the time");
}

fn paying(model: &TestModel) -> Agent {
    let pay = builder("pay").handler(|_: Value, _: ToolContext| async { "paid" }).unwrap();
    let policy = Policy::of([Rule::ask("rule 1").tools(["pay"])]);
    Agent::builder()
        .model(model.clone())
        .engine(|engine| engine.redactor(Redactor::default()).policy(policy))
        .tool(pay)
        .build()
        .unwrap()
}

/// A session whose call waits for approval.
async fn waiting() -> World {
    let world = World::with(&["Pay"]).await;
    let agent = paying(&model().always(calls([call("a", "pay", json!({}))])));
    let outcome = world.segment(&agent).await.unwrap();
    assert_eq!(outcome.end_reason, EndReason::AwaitingApproval, "{:?}", outcome.error);
    world
}

#[tokio::test]
async fn a_settled_approval_queues_the_session_again() {
    let world = waiting().await;
    let agent = paying(&model().always(says("Paid.")));
    assert!(world.segment(&agent).await.is_none(), "it waits");
    let id = Arc::clone(&world.approvals().list(false).unwrap()[0].stored.id);
    world.approvals().approve(&id).unwrap();
    let outcome = world.segment(&agent).await.unwrap();
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    let paid =
        |message: &Message| matches!(message, Message::Tool { text, .. } if text.contains("paid"));
    assert!(world.messages().iter().any(paid));
    assert!(world.segment(&agent).await.is_none(), "it has ended");
}

#[tokio::test]
async fn a_turn_that_waits_is_ended_when_it_is_cancelled() {
    let world = waiting().await;
    assert!(world.store.cancel(&owner(), &world.id).unwrap());
    assert!(world.claim().await.is_none(), "no segment is run");
    assert_eq!(world.stopped(), "cancelled");
    let not_made = |message: &Message| matches!(message, Message::Tool { is_error: true, .. });
    assert!(world.messages().iter().any(not_made), "each call has its result");
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_is_cancelled_from_another_process_and_the_next_one_is_not() {
    let world = World::with(&["Go"]).await;
    let session = world.claim().await.unwrap();
    let stuck = agent(&model().then(calls([call("a", "wait", json!({}))])).always(says("Done.")))
        .tool(endless(builder("wait")))
        .build()
        .unwrap();
    let store = Arc::clone(&world.store);
    let id = Arc::clone(&world.id);
    let (second, options) = (stuck.clone(), world.options(&session));
    let cancelling = async move {
        while store.find(&owner(), &id).unwrap().last_turn.is_none() {
            sleep(Duration::from_millis(5)).await;
        }
        // A second run is refused, and does not take the cancellation from the first one.
        let refused = second.run("Also", options).await;
        assert_eq!(refused.error.unwrap().code, RunError::SESSION_FAILED);
        assert!(store.cancel(&owner(), &id).unwrap());
    };
    let run = stuck.segment(world.options(&session));
    let (outcome, ()) = tokio::join!(run.into_future(), cancelling);
    assert_eq!(outcome.end_reason, EndReason::Cancelled, "{:?}", outcome.error);
    assert_eq!(world.stopped(), "cancelled");
    world.messages();
    let next = stuck.run("Again", world.options(&session)).await;
    assert_eq!(next.end_reason, EndReason::Answered, "{:?}", next.error);
}

#[tokio::test]
async fn a_message_that_was_cancelled_is_not_run() {
    let world = World::with(&["Go"]).await;
    let session = world.claim().await.unwrap();
    assert!(world.store.cancel(&owner(), &world.id).unwrap());
    let agent = agent(&model().always(says("Done."))).build().unwrap();
    let outcome = agent.segment(world.options(&session)).await;
    assert_eq!(outcome.error.unwrap().code, RunError::SESSION_FAILED);
    assert_eq!(world.info().turns, 0);
}
