//! Runs in a session: what is recorded when, and what a later run makes of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_agent::{EndReason, RunError, RunOptions, Session};
use toolcrib_core::{
    CallOutcome, ClaimedSession, ErrorCode, FoundMessage, Message, NewSession, SentPart,
    SessionHistory, SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionRetention,
    SessionSearch, SessionStore, SessionStoreError, StoreId, StoredRun, StoredSession, ToolContext,
    TracedEvent, TurnState,
};
use toolcrib_engine::{Deferral, Personality, Redactor, Reveal, SEARCH_TOOLS, TurnOptions};
use toolcrib_store::SqliteStore;
use toolcrib_testing::{assert_replayable, model};

use crate::support::{agent, builder, call, calls, says, tool};

pub(crate) fn new() -> NewSession {
    NewSession { owner: SessionOwner::default(), name: None, personality: "default".into() }
}

async fn session(store: &SqliteStore) -> Session {
    Session::create(Arc::new(store.clone()), new()).await.unwrap()
}

fn in_session(session: &Session) -> RunOptions {
    RunOptions::default().session(session)
}

fn stored(store: &SqliteStore, session: &Session) -> StoredSession {
    store.read(session.owner(), session.id()).unwrap()
}

fn messages(stored: &StoredSession) -> Vec<Message> {
    stored.messages.iter().map(|stored| stored.message.clone()).collect()
}

#[tokio::test]
async fn a_second_run_begins_with_the_messages_of_the_first() {
    let model = model()
        .then(calls([call("c1", "t", json!({"b": 1, "a": 0.1}))]))
        .then(says("First."))
        .always(says("Second."));
    let agent = agent(&model).tool(tool("t")).build().unwrap();
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    let first = agent.run("One", in_session(&session)).await;
    let recorded = stored(&store, &session);
    assert_eq!(messages(&recorded), *first.messages);
    assert_eq!(recorded.turns[0].usage, first.usage);
    assert_eq!(recorded.calls[0].outcome, Some(CallOutcome::Succeeded));
    assert_eq!(recorded.calls[0].arguments.to_string(), r#"{"b":1,"a":0.1}"#);
    session.close().await.unwrap();

    let owner = new().owner;
    let session = Session::open(Arc::new(store.clone()), &owner, &recorded.info.id).await.unwrap();
    let second = agent.run("Two", in_session(&session)).await;
    assert_eq!(second.answer.as_deref(), Some("Second."));
    let requests = model.requests();
    assert!(requests[2].messages.starts_with(&requests[1].messages));
    assert_eq!(requests[2].messages.last(), Some(&Message::user("Two")));
    assert_eq!(messages(&stored(&store, &session)), *second.messages);
}

#[tokio::test]
async fn a_dry_run_makes_no_calls_and_is_not_stored() {
    let planned = "was not called";
    let model = model().then(calls([call("c1", "t", json!({}))])).always(says("Done."));
    let agent = agent(&model).tool(tool("t")).build().unwrap();
    let dry = || RunOptions::from(TurnOptions::default().dry_run());
    let outcome = agent.run("Go", dry()).await;
    assert!(outcome.tool_calls[0].plan.is_some() && outcome.tool_calls[0].text.contains(planned));
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    let outcome = agent.run("Go", dry().session(&session)).await;
    let error = outcome.error.unwrap();
    assert_eq!(error.code, RunError::SESSION_FAILED);
    assert!(error.to_string().contains("a dry run cannot be stored"), "{error}");
    assert!(stored(&store, &session).turns.is_empty());
}

#[tokio::test]
async fn found_tools_stay_revealed_in_a_session_also_after_a_restart() {
    let deferred = |name: &str, does: &str| {
        let tool = builder(name).description(does).deferred(true);
        tool.handler(|_: Value, _: ToolContext| async { "ran" }).unwrap()
    };
    for reveal in [Reveal::CallTool, Reveal::Append] {
        let search =
            |id: &str, need: &str| calls([call(id, SEARCH_TOOLS, json!({ "needs": [need] }))]);
        let model = model()
            .then(search("c1", "send a letter"))
            .then(search("c2", "paint a wall"))
            .then(says("First."))
            .always(says("Again."));
        let agent = || {
            let tools = [deferred("paint", "Paints a wall."), deferred("post", "Sends a letter.")];
            let deferral = Deferral::new().reveal(reveal);
            agent(&model).tools(tools).engine(|engine| engine.defer(deferral)).build().unwrap()
        };
        let store = SqliteStore::in_memory().unwrap();
        let session = session(&store).await;
        agent().run("One", in_session(&session)).await;
        let id = stored(&store, &session).info.id;
        session.close().await.unwrap();
        // Another program, with the same store.
        let owner = new().owner;
        let session = Session::open(Arc::new(store.clone()), &owner, &id).await.unwrap();
        agent().run("Two", in_session(&session)).await;
        let [.., last, again] = &model.requests()[..] else { panic!() };
        let names: Vec<_> = again.menu.revealed().iter().map(|tool| tool.name()).collect();
        assert_eq!(names, ["post", "paint"]);
        assert_eq!(again.menu.rendering(), last.menu.rendering());
    }
}

#[tokio::test]
async fn a_hundred_turns_are_one_history() {
    let model = model().always(says("Yes."));
    let agent = agent(&model).build().unwrap();
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    for turn in 0..100 {
        let outcome = agent.run(turn.to_string(), in_session(&session)).await;
        assert_eq!(outcome.end_reason, EndReason::Answered);
        assert_eq!(outcome.messages.len(), 2 * (turn + 1));
    }
    let stored = stored(&store, &session);
    assert_eq!((stored.turns.len(), stored.messages.len()), (100, 200));
    let requests = model.requests();
    assert!(requests.windows(2).all(|two| two[1].messages.starts_with(&two[0].messages)));
}

/// Fails from a moment on.
pub(crate) struct Full {
    store: SqliteStore,
    fails: AtomicBool,
    /// The number of writes that succeed at most.
    writes: AtomicUsize,
    /// The number of times that the whole session, or its history, was read.
    reads: AtomicUsize,
    histories: AtomicUsize,
    /// The first record that fails.
    at: fn(&SessionRecord) -> bool,
}

impl Full {
    fn at(at: fn(&SessionRecord) -> bool) -> Arc<Self> {
        Self::of(&SqliteStore::in_memory().unwrap(), at)
    }

    /// Fails from a record on.
    pub(crate) fn of(store: &SqliteStore, at: fn(&SessionRecord) -> bool) -> Arc<Self> {
        let (store, fails) = (store.clone(), AtomicBool::new(false));
        let (writes, reads) = (AtomicUsize::new(usize::MAX), AtomicUsize::default());
        Arc::new(Self { store, fails, writes, reads, histories: AtomicUsize::default(), at })
    }

    /// Fails after a number of writes.
    pub(crate) fn after(store: &SqliteStore, writes: usize) -> Self {
        let (store, fails) = (store.clone(), AtomicBool::new(false));
        let (writes, reads) = (AtomicUsize::new(writes), AtomicUsize::default());
        Self { store, fails, writes, reads, histories: AtomicUsize::default(), at: |_| false }
    }

    /// The numbers of times that the whole session, and its history, were read.
    pub(crate) fn times_read(&self) -> (usize, usize) {
        (self.reads.load(Ordering::SeqCst), self.histories.load(Ordering::SeqCst))
    }

    /// The number of writes, if all were to succeed.
    pub(crate) fn written(&self) -> usize {
        usize::MAX - self.writes.load(Ordering::SeqCst)
    }
}

impl SessionStore for Full {
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError> {
        self.store.create(new)
    }

    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError> {
        self.store.find(owner, session)
    }

    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        self.store.list(owner, limit)
    }

    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.store.read(owner, id)
    }

    fn history(&self, owner: &SessionOwner, id: &str) -> Result<SessionHistory, SessionStoreError> {
        self.histories.fetch_add(1, Ordering::SeqCst);
        self.store.history(owner, id)
    }

    fn runs(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        self.store.runs(owner, limit)
    }

    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        self.store.search(owner, search)
    }

    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        self.store.events(owner, id, turn)
    }

    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError> {
        self.store.sent(owner, id)
    }

    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError> {
        self.store.acquire(owner, id, time)
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<bool, SessionStoreError> {
        self.store.renew(lease, time)
    }

    fn submit(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError> {
        self.store.submit(owner, id, message)
    }

    fn claim(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError> {
        self.store.claim(owner, time)
    }

    fn cancel(&self, owner: &SessionOwner, id: &str) -> Result<bool, SessionStoreError> {
        self.store.cancel(owner, id)
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        self.store.release(lease)
    }

    fn write(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError> {
        let left = self
            .writes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() || records.iter().any(self.at) {
            self.fails.store(true, Ordering::SeqCst);
        }
        if self.fails.load(Ordering::SeqCst) {
            let source = "the disk is full".into();
            return Err(SessionStoreError::Io { store: "full".into(), doing: "written", source });
        }
        self.store.write(lease, seen, records)
    }

    fn usage_store_id(&self) -> Option<StoreId> {
        self.store.usage_store_id()
    }

    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        self.store.remove(owner, id)
    }

    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError> {
        self.store.prune(retention)
    }
}

/// The error, the number of effects and the number of requests of a run on a store that fails.
async fn on_a_full_disk(at: fn(&SessionRecord) -> bool) -> (RunError, usize, usize) {
    let effects = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&effects);
    let effect = builder("effect")
        .sequential()
        .handler(move |_: Value, _: ToolContext| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { "done" }
        })
        .unwrap();
    let model = model()
        .then(calls([call("a", "effect", json!({})), call("b", "effect", json!({}))]))
        .always(says("Done."));
    let agent = agent(&model).tool(effect).build().unwrap();
    let session = Session::create(Full::at(at), new()).await.unwrap();
    let outcome = agent.run("Go", in_session(&session)).await;
    assert_eq!(outcome.end_reason, EndReason::Failed);
    (outcome.error.unwrap(), effects.load(Ordering::SeqCst), model.requests().len())
}

#[tokio::test]
async fn a_store_that_fails_ends_the_run_before_the_next_effect() {
    let is_response = |record: &SessionRecord| matches!(record, SessionRecord::Message(Message::Assistant { calls, .. }) if !calls.is_empty());
    let is_answer = |record: &SessionRecord| matches!(record, SessionRecord::Message(Message::Assistant { calls, .. }) if calls.is_empty());
    type Fails = fn(&SessionRecord) -> bool;
    let cases: [(Fails, usize, usize); 6] = [
        (|record| matches!(record, SessionRecord::TurnBegan { .. }), 0, 0),
        (is_response, 0, 1),
        (|record| matches!(record, SessionRecord::Intent(_)), 0, 1),
        (|record| matches!(record, SessionRecord::Outcome { .. }), 1, 1),
        (is_answer, 2, 2),
        (|record| matches!(record, SessionRecord::TurnEnded { .. }), 2, 2),
    ];
    for (number, (at, effects, requests)) in cases.into_iter().enumerate() {
        let (error, made, asked) = on_a_full_disk(at).await;
        assert_eq!((made, asked), (effects, requests), "case {number}: {error}");
        assert_eq!(error.code, RunError::SESSION_FAILED);
        assert_eq!(error.message, "full cannot be written: the disk is full");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_outcome_unknown_and_not_repeated() {
    let (made, began) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (counted, notify) = (Arc::clone(&made), Arc::clone(&began));
    let endless = builder("pay")
        .handler(move |_: Value, _: ToolContext| {
            counted.fetch_add(1, Ordering::SeqCst);
            notify.notify_one();
            std::future::pending::<&str>()
        })
        .unwrap();
    let later = builder("later").sequential();
    let later = later.handler(|_: Value, _: ToolContext| async { "ran" }).unwrap();
    let model = model()
        .then(calls([call("a", "pay", json!({})), call("b", "later", json!({}))]))
        .always(says("I cannot tell."));
    let agent = agent(&model).tool(endless).tool(later).build().unwrap();
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    let run = tokio::spawn(agent.run("Pay", in_session(&session)).into_future());
    began.notified().await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());

    let outcome = agent.run("And?", in_session(&session)).await;
    assert_eq!(outcome.answer.as_deref(), Some("I cannot tell."));
    assert_eq!(made.load(Ordering::SeqCst), 1);
    assert_replayable(&outcome.messages);
    let results: Vec<_> = outcome
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { call_id, text, is_error: true, .. } => {
                Some((&**call_id, text.split(':').next().unwrap()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(results, [("a", "outcome_unknown"), ("b", "cancelled")]);
    let stored = stored(&store, &session);
    let unknown = CallOutcome::Failed(ErrorCode::OutcomeUnknown);
    assert_eq!(stored.calls.iter().map(|call| call.outcome).collect::<Vec<_>>(), [Some(unknown)]);
    let interrupted = TurnState::Ended { stopped: "interrupted".into(), error: None };
    assert_eq!(stored.turns[0].state, interrupted);
    assert_eq!(messages(&stored), *outcome.messages);
}

#[tokio::test]
async fn a_session_is_not_continued_by_another_identity() {
    let model = model().always(says("Hello."));
    let other = Personality::new("other").system("Be brief.");
    let agent =
        agent(&model).engine(|engine| engine.personality(other).redactor(Redactor::default()));
    let agent = agent.build().unwrap();
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    for (turn, expected) in [
        (TurnOptions::default().principal("eve"), "another tenant or principal"),
        (TurnOptions::default().tenant("acme"), "another tenant or principal"),
        (TurnOptions::default().personality("other"), "cannot continue as `other`"),
        (TurnOptions::default().conversation("c"), "leave out `conversation`"),
    ] {
        let outcome = agent.run("Hi", RunOptions::from(turn).session(&session)).await;
        let error = outcome.error.unwrap();
        assert_eq!(error.code, RunError::SESSION_FAILED);
        assert!(error.message.contains(expected), "{error}");
    }
    let options = in_session(&session).history(vec![Message::user("forged")]);
    let error = agent.run("Hi", options).await.error.unwrap();
    assert!(error.message.contains("leave out `history`"), "{error}");
    assert!(model.requests().is_empty());
    assert!(stored(&store, &session).turns.is_empty());

    let owner = SessionOwner { principal: Some("eve".into()), tenant: None };
    let opened = Session::open(Arc::new(store), &owner, session.id()).await;
    assert!(matches!(opened, Err(SessionStoreError::Unknown { .. })), "{opened:?}");
}

#[tokio::test]
async fn a_session_has_one_run_at_a_time() {
    let agent = agent(&model().always(says("Hello."))).build().unwrap();
    let session = session(&SqliteStore::in_memory().unwrap()).await;
    let (one, other) =
        tokio::join!(agent.run("1", in_session(&session)), agent.run("2", in_session(&session)));
    let errors = [one.error, other.error].into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].message.contains("has a run already"), "{errors:?}");
}

#[tokio::test]
async fn a_second_process_is_refused_and_may_continue_after_the_first() {
    let store = Arc::new(SqliteStore::in_memory().unwrap());
    let first = Session::create(Arc::clone(&store) as Arc<dyn SessionStore>, new()).await.unwrap();
    let (owner, id) = (first.owner().clone(), Arc::clone(first.id()));
    let open = || Session::open(Arc::clone(&store) as Arc<dyn SessionStore>, &owner, &id);
    let refused = open().await;
    assert!(matches!(refused, Err(SessionStoreError::InUse { .. })), "{refused:?}");
    first.close().await.unwrap();
    open().await.unwrap();
}

#[tokio::test]
async fn secrets_are_not_recorded() {
    let model = model()
        .then(calls([call("a", "t", json!({"key": "hunter2hunter2"}))]))
        .always(says("It is hunter2hunter2."));
    let redactor = Redactor::new(["hunter2hunter2".to_owned()]);
    let agent = agent(&model).tool(tool("t")).engine(|engine| engine.redactor(redactor));
    let agent = agent.build().unwrap();
    let store = SqliteStore::in_memory().unwrap();
    let session = session(&store).await;
    let outcome = agent.run("Use hunter2hunter2, please", in_session(&session)).await;
    assert_eq!(outcome.end_reason, EndReason::Answered);
    let recorded = format!("{:?}", stored(&store, &session));
    assert!(!recorded.contains("hunter2"), "{recorded}");
    assert!(recorded.contains("Use [redacted], please"), "{recorded}");
}
