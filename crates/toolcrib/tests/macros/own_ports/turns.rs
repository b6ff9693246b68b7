//! Ports of a turn: its executor, its model, its client, its child agents.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use serde_json::{Map, Value, json};
use toolcrib::{
    BoxFuture,
    agent::{Agent, Budget, EndReason},
    models::{
        Message, Model, ModelChunk, ModelError, ModelRequest, ModelResponse, ModelStream, Price,
        Stream, Usage,
    },
    prelude::*,
    sessions::{BudgetUse, SessionOwner, SessionStoreError, StoredUsage, UsageEntry, UsageStore},
    tool::{AgentTask, Capabilities, DelegateHandle},
    turn::{
        ChildAgents, ClientAbilities, ClientHandle, ClientPort, ClientRefusal, Executor,
        ExecutorResult, ParentTurn,
    },
};

use super::{Log, call};

/// An executor that makes one call.
pub(super) struct Once {
    tool: &'static str,
    args: Value,
    texts: Log,
}

impl Once {
    pub(super) fn new(tool: &'static str, args: Value) -> Self {
        Self { tool, args, texts: Log::default() }
    }

    /// The texts of the results.
    pub(super) fn texts(&self) -> Log {
        self.texts.clone()
    }
}

impl Executor for Once {
    async fn execute(&mut self, mut cx: IterationContext) -> ExecutorResult {
        let call = ToolCall::new("call_1", self.tool, self.args.clone());
        for result in cx.execute(vec![call]).await {
            self.texts.add(&*result.text);
        }
        cx.ack()?;
        Ok(())
    }
}

/// A model that calls the first tool of its menu once, and repeats the result.
struct Parrot;

impl Model for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    fn price(&self) -> Option<Price> {
        None
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        let usage =
            Usage { input_tokens: 10, output_tokens: 2, cost_usd: Some(0.5), ..Usage::NOTHING };
        let mut response = ModelResponse { usage, ..ModelResponse::default() };
        if let Some(Message::Tool { text, .. }) = request.messages.last() {
            response.text = text.to_string();
        } else {
            let tool = request.menu.tools().first().unwrap().name().as_str();
            response.calls.push(ToolCall::new("call_1", tool, json!({})));
        }
        Box::pin(Pieces(vec![ModelChunk::Done(response)]))
    }
}

/// The pieces of a response, the last first.
struct Pieces(Vec<ModelChunk>);

impl Stream for Pieces {
    type Item = Result<ModelChunk, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.pop().map(Ok))
    }
}

/// Sums of usage, all of one day.
#[derive(Default)]
struct Sums(std::sync::Mutex<Vec<StoredUsage>>);

impl UsageStore for Sums {
    fn add_usage(
        &self,
        owner: &SessionOwner,
        session: Option<&Arc<str>>,
        entries: &[UsageEntry],
    ) -> Result<(), SessionStoreError> {
        let mut sums = self.0.lock().unwrap();
        for entry in entries {
            let known = sums.iter_mut().find(|sum| {
                (&sum.owner, sum.session.as_ref(), &sum.entry.source)
                    == (owner, session, &entry.source)
            });
            match known {
                Some(known) => known.entry.add(entry),
                None => {
                    sums.push(StoredUsage::new(1, owner.clone(), session.cloned(), entry.clone()));
                }
            }
        }
        Ok(())
    }

    fn usage_since(&self, day: u64) -> Result<Vec<StoredUsage>, SessionStoreError> {
        let sums = self.0.lock().unwrap();
        Ok(sums.iter().filter(|sum| sum.day >= day).cloned().collect())
    }

    fn spent_today(&self, owner: Option<&SessionOwner>) -> Result<BudgetUse, SessionStoreError> {
        let sums = self.0.lock().unwrap();
        let of_owner = sums.iter().filter(|sum| owner.is_none_or(|owner| sum.owner == *owner));
        Ok(of_owner.fold(BudgetUse::default(), |used, sum| used.with(&sum.entry)))
    }
}

/// The time.
#[tool]
fn clock() -> &'static str {
    "12:30"
}

#[tokio::test]
async fn an_agent_runs_with_an_own_model_and_an_own_store_of_usage() {
    let mut budget = Budget::default();
    budget.day.max_tokens = Some(24);
    let agent = Agent::builder().model(Parrot).tool(clock_tool()).budget(budget).build().unwrap();
    let sums = Arc::new(Sums::default());
    let options = || RunOptions::default().usage_store(sums.clone());
    let answer = agent.run("What time is it?", options()).await.into_answer().unwrap();
    assert_eq!(&*answer, "12:30");
    let used = sums.spent_today(None).unwrap();
    assert_eq!((used.tokens, used.unknown_costs), (24, 0));
    let outcome = agent.run("And now?", options()).await;
    assert_eq!(outcome.end_reason, EndReason::LimitReached);
}

#[test]
fn an_own_store_of_usage_passes_the_tests_of_stores() {
    toolcrib::testing::stores::check_usage_store(&Sums::default()).unwrap();
}

/// A client that answers every request with its server.
struct Client(Log);

impl ClientPort for Client {
    fn abilities(&self, _: &str) -> ClientAbilities {
        let mut abilities = ClientAbilities::default();
        abilities.roots = true;
        abilities
    }

    fn key(&self) -> usize {
        7
    }

    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        Box::pin(async move {
            if requests.is_empty() {
                return Err(ClientRefusal::failed("nothing is requested"));
            }
            Ok(requests.into_iter().map(|(key, _)| (key, json!({ "of": &*server }))).collect())
        })
    }

    fn log(&self, server: &str, message: Value) {
        self.0.add(format!("{server}: {message}"));
    }
}

async fn roots_of_client(_: Value, cx: ToolContext) -> Result<String, ToolError> {
    let ClientHandle(client) = cx.handle::<ClientHandle>()?;
    client.log("files", json!("asked"));
    let requests = json!({ "1": { "method": "roots/list" } }).as_object().cloned();
    match client.request("files".into(), requests.unwrap_or_default()).await {
        Ok(results) => Ok(json!(results).to_string()),
        Err(ClientRefusal { message, .. }) => Err(err(message)),
    }
}

#[tokio::test]
async fn a_call_reaches_an_own_client() {
    let log = Log::default();
    // As the tool of an MCP server, whose requests the client answers.
    let roots = Tool::builder("roots").description("Lists folders.").mcp_server("files");
    let engine = Engine::builder().tool(roots.handler(roots_of_client).unwrap()).build().unwrap();
    let options = TurnOptions::default().client(Arc::new(Client(log.clone())));
    let result = call(&engine, options, "roots", json!({})).await;
    assert_eq!(&*result.text, r#"{"1":{"of":"files"}}"#);
    assert_eq!(log.lines(), [r#"files: "asked""#]);
}

/// Child agents that run a call in a turn within their parent's.
struct Children(Engine);

impl ChildAgents for Children {
    fn run(
        &self,
        task: AgentTask,
        parent: ParentTurn,
        _: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let engine = self.0.clone();
        Box::pin(async move {
            let mut options = TurnOptions::default();
            options.parent = Some(parent.without_delegation());
            let result = call(&engine, options, &task.prompt, json!({})).await;
            Ok(ok(format!("child: {}", result.text)))
        })
    }
}

#[tokio::test]
async fn a_call_gives_tasks_to_own_child_agents() {
    /// Gives a task.
    #[tool(capabilities(agents))]
    async fn delegate(prompt: String, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let DelegateHandle(agents) = cx.handle::<DelegateHandle>()?;
        agents.delegate(AgentTask::new(prompt), &cx).await
    }
    assert_eq!(*delegate_tool().capabilities(), Capabilities::none().agents());
    let engine = Engine::builder().tool(delegate_tool()).tool(clock_tool()).build().unwrap();
    for (prompt, expected) in [("clock", "child: 12:30"), ("delegate", "child: ")] {
        let mut options = TurnOptions::default();
        options.child_agents = Some(Arc::new(Children(engine.clone())));
        let result = call(&engine, options, "delegate", json!({ "prompt": prompt })).await;
        assert!(result.text.starts_with(expected), "{}", result.text);
        assert_eq!(result.text.contains("12:30"), prompt == "clock", "{}", result.text);
    }
}
