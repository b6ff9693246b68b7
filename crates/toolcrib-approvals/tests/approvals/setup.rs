//! An engine with a payment that a rule asks about, and the store and key of its approvals.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib_approvals::{ApprovalKeys, Approvals};
use toolcrib_core::{
    Approver, Arguments, NewSession, Policy, Rule, Secret, SecretError, SessionOwner,
    SessionStore as _, Tool, ToolCall, ToolContext, ToolResult, secrets_fn,
};
use toolcrib_engine::{Engine, Redactor, TurnOptions};
use toolcrib_store::SqliteStore;

/// The place of the approvals.
pub(crate) const PLACE: &str = "/projects/shop";

/// The description of the tools that pay.
pub(crate) const DESCRIPTION: &str = "Pays.";

pub(crate) struct Setup {
    pub(crate) folder: TempDir,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) approvals: Approvals,
    pub(crate) engine: Engine,
    paid: Arc<AtomicUsize>,
}

/// A call as it is made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub(crate) tool: &'static str,
    pub(crate) args: Value,
    pub(crate) call_id: &'static str,
    pub(crate) principal: Option<&'static str>,
    pub(crate) tenant: Option<&'static str>,
    pub(crate) session: Option<Arc<str>>,
}

/// A payment by ann, without a session.
pub(crate) fn payment(amount: u64) -> Made {
    Made {
        tool: "pay",
        args: json!({ "amount": amount, "to": "ben" }),
        call_id: "call_1",
        principal: Some("ann"),
        tenant: None,
        session: None,
    }
}

impl Setup {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(folder.path().join("sessions.db")).unwrap());
        let keys = ApprovalKeys::new(Some(folder.path().join("config/approvals")));
        let approvals = Approvals::new(store.clone(), keys, PLACE);
        let paid = Arc::new(AtomicUsize::new(0));
        let engine = engine(&paid, DESCRIPTION);
        Self { folder, store, approvals, engine, paid }
    }

    /// Replaces the description of the tools that pay.
    pub(crate) fn describe(&mut self, description: &str) {
        self.engine = engine(&self.paid, description);
    }

    /// The same store and key with another time of expiry.
    pub(crate) fn expiring(&self, time: Duration) -> Approvals {
        self.approvals.clone().expire_after(time)
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("config/approvals")
    }

    /// A new session of ann.
    pub(crate) fn session(&self) -> Arc<str> {
        let owner = SessionOwner { tenant: None, principal: Some("ann".into()) };
        let new = NewSession { owner, name: None, personality: "default".into() };
        self.store.create(&new).unwrap().id
    }

    /// The number of payments.
    pub(crate) fn paid(&self) -> usize {
        self.paid.load(Ordering::SeqCst)
    }

    pub(crate) async fn make(&self, made: &Made) -> ToolResult {
        self.make_with(made, &self.approvals).await
    }

    pub(crate) async fn make_with(&self, made: &Made, approvals: &Approvals) -> ToolResult {
        let approver = Arc::new(approvals.approver(made.session.clone())) as Arc<dyn Approver>;
        let mut options = TurnOptions::default().approver(approver);
        options.principal = made.principal.map(Into::into);
        options.tenant = made.tenant.map(Into::into);
        let mut turn = self.engine.turn(options).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let call = ToolCall {
            id: made.call_id.into(),
            name: made.tool.into(),
            arguments: Arguments::Json(made.args.clone()),
        };
        iteration.execute(vec![call]).await.remove(0)
    }

    /// The id of the only open call.
    pub(crate) fn open(&self) -> Arc<str> {
        let listed = self.approvals.list(false).unwrap();
        let mut open: Vec<_> = listed.iter().filter(|one| &*one.state == "open").collect();
        assert_eq!(open.len(), 1, "{listed:?}");
        Arc::clone(&open.remove(0).stored.id)
    }

    /// Parks a call, and gives its id.
    pub(crate) async fn parked(&self, made: &Made) -> Arc<str> {
        let result = self.make(made).await;
        assert_eq!(
            result.code.map(toolcrib_core::ErrorCode::as_str),
            Some("awaiting_approval"),
            "{result:?}"
        );
        self.open()
    }

    /// The file of the store, as anyone who can write to it opens it.
    pub(crate) fn file(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("sessions.db")).unwrap()
    }
}

fn engine(paid: &Arc<AtomicUsize>, description: &str) -> Engine {
    let counting = |name: &str| {
        let paid = Arc::clone(paid);
        Tool::builder(name)
            .description(description)
            .input_schema(json!({ "type": "object" }))
            .handler(move |_: Value, _: ToolContext| {
                paid.fetch_add(1, Ordering::SeqCst);
                async { "paid" }
            })
    };
    let says = Tool::builder("say")
        .description("Says.")
        .input_schema(json!({ "type": "object" }))
        .handler(|said: Value, _: ToolContext| async move { said.to_string() });
    let redactor = Redactor::default();
    redactor.learn_named("token", "s3cr3t-value").unwrap();
    redactor.learn("unnamed-secret").unwrap();
    let secrets = secrets_fn(|name| match name {
        "token" => Ok(Secret::new("s3cr3t-value")),
        other => Err(SecretError::Unknown { name: other.into() }),
    });
    Engine::builder()
        .tool(counting("pay"))
        .tool(counting("refund"))
        .tool(says)
        .policy(Policy::of([Rule::ask("rule 1").tools(["pay", "refund"]).reason("money")]))
        .redactor(redactor)
        .secrets(secrets)
        .build()
        .unwrap()
}
