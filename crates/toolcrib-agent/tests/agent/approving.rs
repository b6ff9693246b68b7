//! Calls that wait for approval: their events, and a denial after a restart.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_agent::{Agent, EndReason, RunOptions, RunOutcome, Session};
use toolcrib_approvals::{ApprovalKeys, Approvals};
use toolcrib_core::{
    ApprovalStore as _, CallIntent, Message, Policy, Rule, Secret, SecretError, SessionRecord,
    SessionStore as _, ToolContext, secrets_fn,
};
use toolcrib_engine::Redactor;
use toolcrib_store::SqliteStore;
use toolcrib_testing::{EventRecorder, TestModel, assert_replayable, model};

use crate::{
    sessions::new,
    support::{builder, call, calls, says},
};

const SECRET: &str = "s3cr3t-value";

fn agent(model: &TestModel) -> Agent {
    let redactor = Redactor::default();
    redactor.learn_named("token", SECRET).unwrap();
    let secrets = secrets_fn(|name| match name {
        "token" => Ok(Secret::new(SECRET)),
        other => Err(SecretError::Unknown { name: other.into() }),
    });
    let pay = builder("pay")
        .handler(|args: Value, _: ToolContext| async move { format!("paid {}", args["amount"]) })
        .unwrap();
    let policy = Policy::of([Rule::ask("rule 1").tools(["pay"]).reason("money")]);
    Agent::builder()
        .model(model.clone())
        .engine(|engine| engine.redactor(redactor).secrets(secrets).policy(policy))
        .tool(pay)
        .build()
        .unwrap()
}

struct Waiting {
    folder: tempfile::TempDir,
    store: Arc<SqliteStore>,
    session: Arc<str>,
}

impl Waiting {
    async fn on(args: Value, seen: &EventRecorder) -> Self {
        let (folder, store) =
            (tempfile::tempdir().unwrap(), Arc::new(SqliteStore::in_memory().unwrap()));
        let session = Session::create(store.clone(), new()).await.unwrap();
        let this = Self { folder, store, session: Arc::clone(session.id()) };
        let model = model().always(calls([call("a", "pay", args)]));
        let mut options = RunOptions::default().session(&session);
        options.turn =
            options.turn.approver(Arc::new(this.approvals().approver(Some(this.session.clone()))));
        let run = agent(&model).run("Pay", options);
        run.on("approval.*", seen.listener()).unwrap();
        assert_eq!(run.await.end_reason, EndReason::AwaitingApproval);
        session.close().await.unwrap();
        this
    }

    fn approvals(&self) -> Approvals {
        let keys = ApprovalKeys::new(Some(self.folder.path().join("config")));
        Approvals::new(self.store.clone(), keys, "shop")
    }

    fn open(&self) -> Arc<str> {
        let listed = self.approvals().list(false).unwrap();
        let open = listed.iter().find(|one| &*one.state == "open").unwrap();
        Arc::clone(&open.stored.id)
    }

    async fn resume(&self, model: &TestModel, seen: &EventRecorder) -> RunOutcome {
        let session = Session::open(self.store.clone(), &new().owner, &self.session).await.unwrap();
        let mut options = RunOptions::default().session(&session);
        options.turn =
            options.turn.approver(Arc::new(self.approvals().approver(Some(self.session.clone()))));
        let run = agent(model).resume(options);
        run.on("approval.*", seen.listener()).unwrap();
        let outcome = run.await;
        session.close().await.unwrap();
        outcome
    }
}

fn decisions(seen: &EventRecorder) -> Vec<String> {
    let settled = seen.json_of("approval.settled").into_iter();
    settled.map(|event| event["decision"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_request_and_decision_is_an_event() {
    let (seen, done) = (EventRecorder::new(), model().always(says("Done.")));
    let waiting = Waiting::on(json!({ "amount": 5 }), &seen).await;
    let asked = seen.json_of("approval.requested");
    assert_eq!(
        (asked.len(), &asked[0]["reason"], &asked[0]["call_id"]),
        (1, &json!("money"), &json!("a"))
    );
    assert_eq!(decisions(&seen), ["waiting"]);

    let late = waiting.approvals().expire_after(Duration::ZERO);
    late.approve(&waiting.open()).unwrap();
    let outcome = waiting.resume(&done, &seen).await;
    assert_eq!(outcome.end_reason, EndReason::AwaitingApproval, "{:?}", outcome.error);
    assert_eq!(decisions(&seen), ["waiting", "expired"]);

    waiting.approvals().approve(&waiting.open()).unwrap();
    let outcome = waiting.resume(&done, &seen).await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    assert_eq!(decisions(&seen), ["waiting", "expired", "granted"]);
    seen.assert_count("approval.requested", 3);
}

#[tokio::test]
async fn the_reason_of_a_denial_reaches_the_model_also_if_the_call_contained_a_secret() {
    for args in [json!({ "amount": 5 }), json!({ "amount": 5, "auth": format!("Bearer {SECRET}") })]
    {
        let (seen, done) = (EventRecorder::new(), model().always(says("Not paid.")));
        let waiting = Waiting::on(args, &seen).await;
        waiting.approvals().deny(&waiting.open(), Some("the invoice is wrong".into())).unwrap();
        let outcome = waiting.resume(&done, &seen).await;
        assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
        assert_replayable(&outcome.messages);
        let text = outcome.messages.iter().find_map(|message| match message {
            Message::Tool { text, .. } => Some(text.to_string()),
            _ => None,
        });
        let text = text.unwrap();
        assert!(text.contains("denied") && text.contains("the invoice is wrong"), "{text}");
        let stored = waiting.store.read(&new().owner, &waiting.session).unwrap();
        assert!(stored.calls.is_empty(), "it was not made");
        assert!(waiting.approvals().list(false).unwrap().is_empty(), "the denial is used up");
    }
}

/// Two processes may park a call: one that has read before it was settled, after that. The second decision is
/// not one to make the call again.
#[tokio::test]
async fn a_call_that_was_cut_off_is_not_made_again_by_a_second_decision() {
    let (seen, done) = (EventRecorder::new(), model().always(says("Perhaps paid.")));
    let waiting = Waiting::on(json!({ "amount": 5 }), &seen).await;
    let first = waiting.open();
    waiting.approvals().approve(&first).unwrap();
    let call = waiting.approvals().get(&first).unwrap().stored.call;
    let second = waiting.store.park(&call, 9).unwrap().id;
    assert_ne!(first, second);
    let lease = waiting.store.acquire(&new().owner, &waiting.session, Duration::ZERO).unwrap();
    let intent = CallIntent {
        call_id: "a".into(),
        tool: "pay".into(),
        arguments: json!({ "amount": 5 }),
        read_only: false,
        idempotent: false,
    };
    waiting.store.write(&lease, 0, &[SessionRecord::Intent(intent)]).unwrap();
    waiting.store.close(&first, "used").unwrap();
    waiting.approvals().approve(&second).unwrap();
    let outcome = waiting.resume(&done, &seen).await;
    assert_eq!(outcome.end_reason, EndReason::Answered, "{:?}", outcome.error);
    let text = outcome.messages.iter().find_map(|message| match message {
        Message::Tool { text, .. } => Some(text.to_string()),
        _ => None,
    });
    assert!(text.unwrap().starts_with("outcome_unknown"));
    let stored = waiting.store.read(&new().owner, &waiting.session).unwrap();
    assert_eq!(stored.calls[0].attempts, 1);
}
