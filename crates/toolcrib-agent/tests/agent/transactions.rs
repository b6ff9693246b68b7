//! The transactions of a session: how many an iteration costs, and what each promise still needs.

use std::{
    error::Error,
    future::IntoFuture as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolcrib_agent::{AgentBuilder, EndReason, RunOptions, Session};
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, BudgetUse, CallDecision, CallOutcome, LeaseTimes, Message,
    Middleware, PendingCall, Policy, Rule, SessionOwner, SessionStore as _, SessionStoreError,
    StoreId, StoredUsage, ToolContext, UsageEntry, UsageSource, UsageStore,
};
use toolcrib_store::{PostgresStore, SqliteStore};
use toolcrib_testbed::PostgresServer;
use toolcrib_testing::model;

use crate::{
    sessions::{Full, new},
    support::{agent, builder, call, calls, says, tool},
};

/// Counts the writes of usage that are transactions of their own.
struct CountedUsage(SqliteStore, AtomicUsize);

impl UsageStore for CountedUsage {
    fn add_usage(
        &self,
        owner: &SessionOwner,
        session: Option<&Arc<str>>,
        entries: &[UsageEntry],
    ) -> Result<(), SessionStoreError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.add_usage(owner, session, entries)
    }

    fn usage_since(&self, day: u64) -> Result<Vec<StoredUsage>, SessionStoreError> {
        self.0.usage_since(day)
    }

    fn spent_today(&self, owner: Option<&SessionOwner>) -> Result<BudgetUse, SessionStoreError> {
        self.0.spent_today(owner)
    }

    fn store_id(&self) -> Option<StoreId> {
        self.0.store_id()
    }
}

/// The transactions of a run of this many iterations, each with a number of calls at the same time.
async fn transactions(iterations: usize, together: usize) -> usize {
    let store = SqliteStore::in_memory().unwrap();
    let (writes, usage) = (
        Arc::new(Full::after(&store, usize::MAX)),
        Arc::new(CountedUsage(store.clone(), AtomicUsize::new(0))),
    );
    let mut model = model();
    for iteration in 0..iterations {
        let made = (0..together).map(|n| {
            let id = format!("{iteration}-{n}");
            call(&id, "pay", json!({ "for": id }))
        });
        model = model.then(says("").and_calls(made).keep_ids());
    }
    let agent = agent(&model.always(says("Done."))).tool(tool("pay")).max_iterations(100);
    let session = Session::create(writes.clone(), new()).await.unwrap();
    let options = RunOptions::default().session(&session).usage_store(usage.clone());
    let outcome = agent.build().unwrap().run("Go", options).await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    assert_eq!(outcome.tool_calls.len(), iterations * together);
    let counted = store.usage_since(0).unwrap();
    let of = |is: fn(&UsageSource) -> bool| {
        counted.iter().filter(|sum| is(&sum.entry.source)).map(|sum| sum.entry.count).sum::<u64>()
    };
    assert_eq!(of(|source| matches!(source, UsageSource::Model(_))), iterations as u64 + 1);
    let made = of(|source| matches!(source, UsageSource::Tool(_)));
    assert_eq!(made, (iterations * together) as u64);
    writes.written() + usage.1.load(Ordering::SeqCst)
}

#[tokio::test]
async fn an_iteration_with_one_call_costs_two_transactions_and_one_with_more_three() {
    let of_one = transactions(1, 1).await;
    assert_eq!(of_one, 5, "the message, two of the call, the answer, the end");
    assert_eq!(transactions(11, 1).await - of_one, 20);
    let of_eight = transactions(1, 8).await;
    assert_eq!(of_eight, 6, "the outcomes before the results");
    assert_eq!(transactions(11, 8).await - of_eight, 30);
}

/// Notes the last message of the store when it is asked about a call.
#[derive(Clone)]
struct StoreObserver {
    store: SqliteStore,
    session: Arc<str>,
    seen: Arc<Mutex<Vec<Message>>>,
}

impl StoreObserver {
    fn note(&self) {
        let stored = self.store.read(&new().owner, &self.session).unwrap();
        self.seen.lock().extend(stored.messages.last().map(|stored| stored.message.clone()));
    }
}

impl Approver for StoreObserver {
    fn approve<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        self.note();
        Box::pin(async { Approval::Approved })
    }
}

impl Middleware for StoreObserver {
    fn name(&self) -> &str {
        "asked"
    }

    fn call<'a>(
        &'a self,
        _: PendingCall<'a>,
    ) -> BoxFuture<'a, Result<CallDecision, Box<dyn Error + Send + Sync>>> {
        self.note();
        Box::pin(async { Ok(CallDecision::Proceed) })
    }
}

#[tokio::test]
async fn a_response_is_stored_before_an_approver_or_a_middleware_sees_its_call() {
    let store = SqliteStore::in_memory().unwrap();
    let session = Session::create(Arc::new(store.clone()), new()).await.unwrap();
    let asked = StoreObserver { store, session: Arc::clone(session.id()), seen: Arc::default() };
    let policy = || Policy::of([Rule::ask("rule 1").tools(["pay"])]);
    let approved = |agent: AgentBuilder| agent.engine(|engine| engine.policy(policy()));
    let hooked = |agent: AgentBuilder| agent.engine(|engine| engine.middleware(asked.clone()));
    for with in [&approved as &dyn Fn(AgentBuilder) -> AgentBuilder, &hooked] {
        let model = model().then(calls([call("", "pay", json!({}))])).always(says("Done."));
        let agent = with(agent(&model).tool(tool("pay"))).build().unwrap();
        let mut options = RunOptions::default().session(&session);
        options.turn = options.turn.approver(Arc::new(asked.clone()));
        agent.run("Go", options).await.into_answer().unwrap();
        let seen = asked.seen.lock().drain(..).collect::<Vec<_>>();
        assert!(matches!(&seen[..], [Message::Assistant { calls, .. }] if calls.len() == 1));
    }
}

#[tokio::test]
async fn a_call_that_has_ended_keeps_its_result_while_another_of_its_response_runs() {
    let began = Arc::new(Notify::new());
    let notify = Arc::clone(&began);
    let slow = builder("slow").handler(move |_: Value, _: ToolContext| {
        notify.notify_one();
        std::future::pending::<&str>()
    });
    let store = SqliteStore::in_memory().unwrap();
    let session = Session::create(Arc::new(store.clone()), new()).await.unwrap();
    let both = calls([call("a", "pay", json!({})), call("b", "slow", json!({}))]);
    let agent = agent(&model().always(both)).tool(tool("pay")).tool(slow.unwrap()).build().unwrap();
    let run = agent.run("Go", RunOptions::default().session(&session));
    let ended = Arc::new(Notify::new());
    let notify = Arc::clone(&ended);
    run.on("tool.end", move |_| notify.notify_one()).unwrap();
    let run = tokio::spawn(run.into_future());
    began.notified().await;
    ended.notified().await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    let stored = store.read(&new().owner, session.id()).unwrap();
    let outcomes: Vec<_> = stored
        .calls
        .iter()
        .map(|call| (&*call.call_id, call.outcome, call.result.is_some()))
        .collect();
    assert_eq!(outcomes, [("a", Some(CallOutcome::Succeeded), true), ("b", None, false)]);
}

#[tokio::test]
async fn a_turn_reads_the_history_once_and_a_second_one_of_the_process_nothing() {
    let store = SqliteStore::in_memory().unwrap();
    let model = model().then(calls([call("", "pay", json!({}))])).always(says("Done."));
    let agent = agent(&model).tool(tool("pay")).build().unwrap();
    let first = Session::create(Arc::new(store.clone()), new()).await.unwrap();
    let id = Arc::clone(first.id());
    agent.run("Go", RunOptions::default().session(&first)).await.into_answer().unwrap();
    first.close().await.unwrap();
    let counted = Arc::new(Full::after(&store, usize::MAX));
    let session = Session::open(counted.clone(), &new().owner, &id).await.unwrap();
    for turn in 2..=3 {
        let outcome = agent.run("And?", RunOptions::default().session(&session)).await;
        assert_eq!(outcome.messages.len(), 2 * turn + 2);
        assert_eq!(counted.times_read(), (0, 1));
    }
}

/// The round trips of a run of this many iterations to a server, each with a number of calls.
async fn round_trips(url: &str, iterations: usize, together: usize) -> u64 {
    let hour = Duration::from_hours(1);
    let store = PostgresStore::connect(url).unwrap().accept_loss(true);
    // A slow machine would count renewals too.
    let store = store.lease_times(LeaseTimes { lease: hour, renew_every: hour });
    let mut model = model();
    for iteration in 0..iterations {
        let made = (0..together).map(|n| {
            let id = format!("{iteration}-{n}");
            call(&id, "pay", json!({ "for": id }))
        });
        model = model.then(says("").and_calls(made).keep_ids());
    }
    let agent = agent(&model.always(says("Done."))).tool(tool("pay")).max_iterations(100);
    let port = Arc::new(store.clone());
    let session = Session::create(port.clone(), new()).await.unwrap();
    let options = RunOptions::default().session(&session).usage_store(port);
    let outcome = agent.build().unwrap().run("Go", options).await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    store.round_trips()
}

#[tokio::test]
async fn an_iteration_on_a_server_costs_two_round_trips_and_one_with_more_calls_at_most_four() {
    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url("owner", &server.database("").unwrap());
    let ten = async |together| {
        round_trips(&url, 11, together).await - round_trips(&url, 1, together).await
    };
    assert_eq!(ten(1).await, 20);
    assert!(ten(8).await <= 40);
}

/// The server of the tests has no `fsync`, so it could lose an acknowledged intent.
#[tokio::test]
async fn a_call_whose_intent_could_vanish_is_refused_and_the_run_goes_on() {
    let Some(server) = PostgresServer::shared() else { return };
    let url = server.url("owner", &server.database("").unwrap());
    let store = Arc::new(PostgresStore::connect(&url).unwrap());
    let made = calls([call("a", "look", json!({})), call("b", "pay", json!({}))]).keep_ids();
    let agent = agent(&model().then(made).always(says("Done.")))
        .tool(builder("look").read_only().handler(|_: Value, _: ToolContext| async { "looked" }))
        .tool(tool("pay"))
        .build()
        .unwrap();
    let session = Session::create(store.clone(), new()).await.unwrap();
    let outcome = agent.run("Go", RunOptions::default().session(&session)).await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    let results = outcome.messages.iter().filter_map(|message| match message {
        Message::Tool { call_id, text, .. } => Some((&**call_id, text.contains("was not made"))),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), [("a", false), ("b", true)]);
    let stored = store.read(&new().owner, session.id()).unwrap();
    assert_eq!(stored.calls.iter().map(|call| &*call.call_id).collect::<Vec<_>>(), ["a"]);
}
