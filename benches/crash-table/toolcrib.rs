//! Toolcrib's program of the crash table: the loop of `docs/crash-table.md`, each run as a session.
//!
//! `cargo xtask crash-table` starts this program, kills it, and starts it again.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a host program: it reads its environment, and writes a log"
)]

use std::{env, error::Error, path::PathBuf, sync::Arc};

use serde_json::json;
use tokio::task::JoinSet;
use toolcrib::{
    CancellationToken,
    agent::{Agent, EndReason, RunOptions, Session},
    capabilities::http::{HttpClient, HttpRequest, Method},
    models::{Vendor, VendorModel},
    policy::approvals::{ApprovalKeys, Approvals},
    prelude::*,
    sessions::{
        NewSession, PostgresStore, SessionOwner, SessionStore, SessionStoreError, SqliteStore,
        Store, TurnState,
    },
};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome {
    let folder = PathBuf::from(env::var("CRASH_STORE")?);
    // Its methods block, in an async context too.
    let store: Arc<dyn Store> = match env::var("CRASH_POSTGRES") {
        Ok(url) => Arc::new(PostgresStore::connect(&url)?),
        Err(_) => Arc::new(SqliteStore::open(folder.join("sessions.db"))?),
    };
    let keys = ApprovalKeys::new(Some(folder.join("keys")));
    let approvals = Arc::new(Approvals::new(Arc::clone(&store) as _, keys, "crash-table"));
    let store: Arc<dyn SessionStore> = store;
    let api = Api::new(env::var("CRASH_URL")?)?;
    let agent = agent(&api, env::var("CRASH_KEYED").is_ok())?;
    let mut runs = JoinSet::new();
    for order in env::var("CRASH_RUNS")?.split(',') {
        let run = Run {
            order: order.to_owned(),
            agent: agent.clone(),
            store: Arc::clone(&store),
            approvals: Arc::clone(&approvals),
            api: api.clone(),
        };
        runs.spawn(run.settle());
    }
    for ended in runs.join_all().await {
        if let Err(error) = ended {
            eprintln!("{error}");
        }
    }
    Ok(())
}

/// The three effects, of which a person approves the second. With `is_keyed` their API ignores a
/// repeated key, which is what `idempotent` declares.
fn agent(api: &Api, is_keyed: bool) -> Outcome<Agent> {
    let effect = |name: &'static str| {
        let api = api.clone();
        let builder = Tool::builder(name).description("Has an effect on an order.").input_schema(
            json!({ "type": "object", "properties": { "order": { "type": "string" } } }),
        );
        let builder = if is_keyed { builder.idempotent() } else { builder };
        builder.handler(move |arguments: serde_json::Value, context: ToolContext| {
            let order = arguments.get("order").and_then(|order| order.as_str().map(str::to_owned));
            let api = api.clone();
            let key = if is_keyed { context.idempotency_key() } else { String::new() };
            async move {
                let order = order.ok_or_else(|| err("the order is missing"))?;
                let posted = api.post(&format!("effect/{order}/{name}/{key}")).await;
                posted.map_err(|error| err(error.to_string()))
            }
        })
    };
    let model =
        VendorModel::builder(Vendor::OpenAi, "stand-in").base_url(format!("{}/v1", api.url));
    let asks = Rule::ask("a person approves refunds").tools(["refund"]);
    let builder = Agent::builder().model(model.build()?).policy(Policy::of([asks]));
    Ok(builder.tools(["charge", "refund", "notify"].map(effect)).build()?)
}

/// One run: a session, whose turn is begun or resumed until it has ended.
struct Run {
    order: String,
    agent: Agent,
    store: Arc<dyn SessionStore>,
    approvals: Arc<Approvals>,
    api: Api,
}

impl Run {
    async fn settle(self) -> Outcome {
        let owner = SessionOwner::default();
        let session = match Session::open(Arc::clone(&self.store), &owner, &self.order).await {
            Err(SessionStoreError::Unknown { .. }) => {
                let name = Some(self.order.as_str().into());
                let new = NewSession { owner, name, personality: "default".into() };
                Session::create(Arc::clone(&self.store), new).await?
            }
            opened => opened?,
        };
        loop {
            let mut options = RunOptions::default().session(&session);
            let approver = self.approvals.approver(Some(session.id().clone()));
            options.turn = options.turn.approver(Arc::new(approver));
            let outcome = match session.info().await?.last_turn {
                None => self.agent.run(format!("Settle order {}.", self.order), options).await,
                Some(TurnState::Running) => self.agent.resume(options).await,
                Some(TurnState::Ended { .. }) => break,
            };
            match outcome.end_reason {
                EndReason::Answered => break,
                EndReason::AwaitingApproval => self.approve(&session).await?,
                reason => return Err(format!("{reason:?}: {:?}", outcome.error).into()),
            }
        }
        self.api.post(&format!("ended/{}", self.order)).await?;
        Ok(())
    }

    /// Asks the person, who is played by `cargo xtask crash-table`, and approves the waiting call.
    async fn approve(&self, session: &Session) -> Outcome {
        self.api.post(&format!("approval/{}", self.order)).await?;
        for review in self.approvals.list(false)? {
            if review.stored.call.session.as_ref() == Some(session.id()) && &*review.state == "open"
            {
                self.approvals.approve(&review.stored.id)?;
            }
        }
        Ok(())
    }
}

/// The stand-in for all that the loop reaches.
#[derive(Clone)]
struct Api {
    url: String,
    client: HttpClient,
}

impl Api {
    fn new(url: String) -> Outcome<Self> {
        let client = HttpClient::builder().allow_addresses(["127.0.0.1/32".parse()?]).build();
        Ok(Self { url, client })
    }

    async fn post(&self, path: &str) -> Outcome<String> {
        let request = HttpRequest::new(Method::POST, format!("{}/{path}", self.url));
        let response = self.client.send(request, &CancellationToken::new()).await?;
        Ok(String::from_utf8_lossy(&response.body).into_owned())
    }
}
