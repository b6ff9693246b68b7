//! Runs that are continued after their process was killed: a store that fails from some write on is
//! like a process that is killed there.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib_agent::{Agent, AgentBuilder, EndReason, RunError, RunOptions, RunOutcome, Session};
use toolcrib_core::{
    Arguments, CallDecision, CallOutcome, ErrorCode, Message, PendingCall, SessionRecord,
    SessionStore, SessionStoreError, StoredSession, ToolContext, TurnState, call_middleware,
};
use toolcrib_engine::{Redactor, TurnOptions};
use toolcrib_models::ScriptedModel;
use toolcrib_store::SqliteStore;
use toolcrib_testing::assert_replayable;

use crate::{
    sessions::{Full, new},
    support::{builder, skills},
};

const SCRIPT: &str = r#"
[[rule]]
called = "last"
text = "Done: {{ results.pay }}, {{ results.put }}, {{ results.last }}"
[[rule]]
called = "pay"
calls = [{ tool = "last" }]
[[rule]]
calls = [{ tool = "pay" }, { tool = "put" }, { tool = "look" }]
"#;

/// The effects of all processes: the idempotency keys by tool.
#[derive(Clone, Default)]
struct World(Arc<Mutex<HashMap<&'static str, Vec<String>>>>);

impl World {
    fn agent(&self) -> Agent {
        self.builder().build().unwrap()
    }

    /// An agent with a middleware that gives each call other arguments than the model wrote.
    fn rewriting_agent(&self) -> Agent {
        let middleware = call_middleware("signs", |call: &PendingCall<'_>| {
            Ok(match call.args.get("signed") {
                None => CallDecision::Rewrite(json!({ "signed": true })),
                Some(_) => CallDecision::Proceed,
            })
        });
        self.builder().engine(|engine| engine.middleware(middleware)).build().unwrap()
    }

    fn builder(&self) -> AgentBuilder {
        let tool = |name: &'static str| {
            let effects = Arc::clone(&self.0);
            let declared = match name {
                "put" => builder(name).idempotent(),
                "look" => builder(name).read_only(),
                _ => builder(name),
            };
            declared
                .handler(move |_: Value, cx: ToolContext| {
                    effects.lock().entry(name).or_default().push(cx.idempotency_key());
                    async move { format!("{name} ok") }
                })
                .unwrap()
        };
        let model = ScriptedModel::from_toml("script.toml", SCRIPT).unwrap();
        Agent::builder().model(model).tools(["pay", "put", "look", "last"].map(tool))
    }

    fn of(&self, tool: &str) -> Vec<String> {
        self.0.lock().get(tool).cloned().unwrap_or_default()
    }
}

fn in_session(session: &Session) -> RunOptions {
    RunOptions::default().session(session)
}

/// Runs until a write fails; `false` if none did.
async fn killed_at(store: &SqliteStore, world: &World, write: usize) -> (Arc<str>, bool) {
    killed_with(store, &world.agent(), write).await
}

async fn killed_with(store: &SqliteStore, agent: &Agent, write: usize) -> (Arc<str>, bool) {
    let failing = Full::after(store, write);
    let session = Session::create(Arc::new(failing), new()).await.unwrap();
    let outcome = agent.run("Go", in_session(&session)).await;
    let id = Arc::clone(session.id());
    session.close().await.unwrap();
    (id, outcome.end_reason == EndReason::Failed)
}

async fn resumed(store: &SqliteStore, world: &World, id: &str) -> RunOutcome {
    resumed_with(store, &world.agent(), id).await
}

async fn resumed_with(store: &SqliteStore, agent: &Agent, id: &str) -> RunOutcome {
    let owner = new().owner;
    let session = Session::open(Arc::new(store.clone()), &owner, id).await.unwrap();
    let outcome = agent.resume(in_session(&session)).await;
    session.close().await.unwrap();
    outcome
}

fn stored(store: &SqliteStore, id: &str) -> StoredSession {
    store.read(&new().owner, id).unwrap()
}

#[tokio::test]
async fn a_run_that_is_killed_at_any_write_ends_as_one_that_was_not() {
    let whole = {
        let (store, world) = (SqliteStore::in_memory().unwrap(), World::default());
        let (id, failed) = killed_at(&store, &world, usize::MAX).await;
        assert!(!failed);
        stored(&store, &id).messages
    };
    let (mut kills, mut survived) = (0, 0);
    for write in 0.. {
        let (store, world) = (SqliteStore::in_memory().unwrap(), World::default());
        let (id, failed) = killed_at(&store, &world, write).await;
        if !failed {
            break;
        }
        kills += 1;
        let before = stored(&store, &id);
        if before.turns.is_empty() {
            let error = resumed(&store, &world, &id).await.error.unwrap();
            assert_eq!(error.code, RunError::NOTHING_TO_RESUME);
            continue;
        }
        let outcome = resumed(&store, &world, &id).await;
        assert_eq!(outcome.end_reason, EndReason::Answered, "write {write}: {:?}", outcome.error);
        assert_replayable(&outcome.messages);
        for tool in ["pay", "last"] {
            assert!(world.of(tool).len() <= 1, "write {write}: {tool} was repeated");
        }
        let mut keys = world.of("put");
        keys.dedup();
        assert_eq!(keys.len(), 1, "write {write}: a repeated call has the same key");
        let after = stored(&store, &id);
        assert!(after.messages.starts_with(&before.messages), "write {write}");
        for call in &before.calls {
            let now = after.calls.iter().find(|now| now.call_id == call.call_id).unwrap();
            if call.outcome.is_some() {
                assert_eq!((now.outcome, now.attempts), (call.outcome, call.attempts));
            }
        }
        let unknown = CallOutcome::Failed(ErrorCode::OutcomeUnknown);
        if after.calls.iter().all(|call| call.outcome != Some(unknown)) {
            assert_eq!(after.messages, whole, "write {write}");
            survived += 1;
        }
        assert!(after.calls.iter().all(|call| call.result.is_none()));
        let ended = TurnState::Ended { stopped: "answered".into(), error: None };
        assert_eq!(after.turns[0].state, ended);
    }
    // How many writes there are depends on which calls of a batch end together.
    assert!(survived > 2, "{survived} of {kills} kills lose nothing");
}

#[tokio::test]
async fn after_a_kill_at_any_write_the_history_has_the_arguments_that_a_middleware_passed() {
    for write in 0.. {
        for resumes in [true, false] {
            let (store, agent) = (SqliteStore::in_memory().unwrap(), World::default());
            let agent = agent.rewriting_agent();
            let (id, failed) = killed_with(&store, &agent, write).await;
            if !failed {
                return;
            }
            let outcome = match resumes {
                true => resumed_with(&store, &agent, &id).await,
                false => {
                    let store = Arc::new(store.clone());
                    let session = Session::open(store, &new().owner, &id).await.unwrap();
                    let outcome = agent.run("And now?", in_session(&session)).await;
                    session.close().await.unwrap();
                    outcome
                }
            };
            let after = stored(&store, &id);
            let history = after.messages.iter().map(|stored| &stored.message);
            for call in history.chain(&*outcome.messages).flat_map(Message::calls) {
                let made = after.calls.iter().find(|made| made.call_id == call.id);
                if let Some(made) = made {
                    assert_eq!(made.arguments, json!({ "signed": true }));
                    assert_eq!(call.arguments, Arguments::Json(made.arguments.clone()), "{write}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_harmless_call_is_repeated_once_and_no_more() {
    let (store, world) = (SqliteStore::in_memory().unwrap(), World::default());
    let is_outcome = |record: &SessionRecord| matches!(record, SessionRecord::Outcome { .. });
    let session = Session::create(Full::of(&store, is_outcome), new()).await.unwrap();
    let id = Arc::clone(session.id());
    world.agent().run("Go", in_session(&session)).await;
    session.close().await.unwrap();
    // The second process is killed at the same place.
    let session = Session::open(Full::of(&store, is_outcome), &new().owner, &id).await.unwrap();
    world.agent().resume(in_session(&session)).await;
    session.close().await.unwrap();
    let outcome = resumed(&store, &world, &id).await;
    assert_eq!(outcome.end_reason, EndReason::Answered);
    assert_eq!((world.of("pay").len(), world.of("put").len()), (1, 2));
    let attempts: Vec<_> =
        stored(&store, &id).calls.iter().map(|call| (call.attempts, call.cut_off)).collect();
    assert_eq!(attempts[..3], [(1, 0), (2, 1), (2, 1)]);
}

#[tokio::test]
async fn a_message_ends_the_interrupted_turn_and_keeps_its_results() {
    let (store, world) = (SqliteStore::in_memory().unwrap(), World::default());
    let is_result =
        |record: &SessionRecord| matches!(record, SessionRecord::Message(Message::Tool { .. }));
    let session = Session::create(Full::of(&store, is_result), new()).await.unwrap();
    world.agent().run("Go", in_session(&session)).await;
    let id = Arc::clone(session.id());
    session.close().await.unwrap();
    // The outcome of the call that ended last is written with the results.
    let before = stored(&store, &id).calls;
    let ended = before.iter().filter(|call| call.result.is_some());
    let ended: Vec<_> = ended.map(|call| format!("{} ok", call.tool)).collect();
    assert!(ended.len() >= 2, "{before:?}");
    let session = Session::open(Arc::new(store.clone()), &new().owner, &id).await.unwrap();
    let outcome = world.agent().run("And?", in_session(&session)).await;
    assert_replayable(&outcome.messages);
    let texts: Vec<_> = outcome
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { text, is_error: false, .. } => Some(&**text),
            _ => None,
        })
        .collect();
    assert_eq!(texts.split_at(ended.len()).0, ended, "{texts:?}");
    assert_eq!(world.agent().resume(in_session(&session)).await.end_reason, EndReason::Failed);
}

#[tokio::test]
async fn a_resumed_turn_has_its_skills_and_its_iterations() {
    let script = r#"
        [[rule]]
        called = "hidden"
        text = "Done."
        [[rule]]
        called = "read_skill"
        calls = [{ tool = "hidden" }]
        [[rule]]
        calls = [{ tool = "read_skill", args = { id = "deep" } }]
    "#;
    let made = Arc::new(AtomicUsize::new(0));
    let agent = || {
        let made = Arc::clone(&made);
        let hidden = builder("hidden").handler(move |_: Value, _: ToolContext| {
            made.fetch_add(1, Ordering::SeqCst);
            async { "found" }
        });
        let skills = skills([("deep", &["hidden"])]);
        let model = ScriptedModel::from_toml("script.toml", script).unwrap();
        Agent::builder().model(model).tool(hidden.unwrap()).skills(skills).build().unwrap()
    };
    let store = SqliteStore::in_memory().unwrap();
    // Killed before the only call of the tool that the skill offers.
    let is_intent = |record: &SessionRecord| matches!(record, SessionRecord::Intent(intent) if &*intent.tool == "hidden");
    let session = Session::create(Full::of(&store, is_intent), new()).await.unwrap();
    let id = Arc::clone(session.id());
    agent().run("Go", in_session(&session)).await;
    session.close().await.unwrap();
    assert_eq!(made.load(Ordering::SeqCst), 0);
    let session = Session::open(Arc::new(store.clone()), &new().owner, &id).await.unwrap();
    let outcome = agent().resume(in_session(&session)).await;
    assert_eq!(outcome.answer.as_deref(), Some("Done."));
    assert_eq!((made.load(Ordering::SeqCst), outcome.iterations), (1, 3));
}

#[tokio::test]
async fn a_call_whose_arguments_had_a_secret_is_not_made_with_others() {
    let secret = "hunter2hunter2";
    let script = format!(
        r#"
        [[rule]]
        called = "pay"
        text = "Result: {{{{ results.pay }}}}"
        [[rule]]
        calls = [{{ tool = "pay", args = {{ key = "{secret}" }} }}]
        "#
    );
    let made = Arc::new(AtomicUsize::new(0));
    let agent = || {
        let made = Arc::clone(&made);
        let schema = json!({ "type": "object", "properties": { "key": { "type": "string" } } });
        let pay = builder("pay").input_schema(schema).handler(move |_: Value, _: ToolContext| {
            made.fetch_add(1, Ordering::SeqCst);
            async { "paid" }
        });
        let model = ScriptedModel::from_toml("script.toml", &script).unwrap();
        let redactor = Redactor::new([secret.to_owned()]);
        let agent = Agent::builder().model(model).tool(pay.unwrap());
        // A response is stored before a middleware sees its calls, else with their intent.
        let passes = call_middleware("passes", |_: &PendingCall<'_>| Ok(CallDecision::Proceed));
        agent.engine(|engine| engine.redactor(redactor).middleware(passes)).build().unwrap()
    };
    let store = SqliteStore::in_memory().unwrap();
    let is_intent = |record: &SessionRecord| matches!(record, SessionRecord::Intent(_));
    let session = Session::create(Full::of(&store, is_intent), new()).await.unwrap();
    let id = Arc::clone(session.id());
    agent().run("Go", in_session(&session)).await;
    session.close().await.unwrap();
    let session = Session::open(Arc::new(store.clone()), &new().owner, &id).await.unwrap();
    let outcome = agent().resume(in_session(&session)).await;
    assert_eq!(made.load(Ordering::SeqCst), 0);
    let answer = outcome.answer.unwrap();
    assert!(answer.contains("a secret, which is not stored"), "{answer}");
}

#[tokio::test]
async fn only_the_owner_resumes_and_only_in_a_session() {
    let (store, world) = (SqliteStore::in_memory().unwrap(), World::default());
    let (id, _) = killed_at(&store, &world, 3).await;
    let session = Session::open(Arc::new(store.clone()), &new().owner, &id).await.unwrap();
    let eve = RunOptions::from(TurnOptions::default().principal("eve")).session(&session);
    let error = world.agent().resume(eve).await.error.unwrap();
    assert!(error.message.contains("another tenant or principal"), "{error}");
    let error = world.agent().resume(RunOptions::default()).await.error.unwrap();
    assert!(error.message.contains("only a run of a session"), "{error}");
    let owner = toolcrib_core::SessionOwner { principal: Some("eve".into()), tenant: None };
    let opened = Session::open(Arc::new(store), &owner, &id).await;
    assert!(matches!(opened, Err(SessionStoreError::Unknown { .. })), "{opened:?}");
}
