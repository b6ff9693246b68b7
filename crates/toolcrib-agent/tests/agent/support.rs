//! What the tests share: a model by a function, small tools, a check of histories.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::stream;
use serde_json::{Value, json};
use toolcrib_agent::{Agent, AgentBuilder, RunOutcome};
use toolcrib_core::SkillId;
use toolcrib_core::{
    Event, EventKind, Message, Model, ModelChunk, ModelRequest, ModelResponse, ModelStream, Tool,
    ToolBuilder, ToolCall, ToolContext, ToolName, Usage,
};
use toolcrib_engine::{Redactor, Skill, Skills};

/// A model that answers by a function of what it is asked, and notes all that it was asked.
pub(crate) struct Answers<F> {
    answer: F,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

/// What a model was asked, in order.
pub(crate) type Asked = Arc<Mutex<Vec<ModelRequest>>>;

pub(crate) fn model<F>(answer: F) -> (Answers<F>, Asked)
where
    F: Fn(&ModelRequest) -> ModelStream + Send + Sync + 'static,
{
    let asked = Asked::default();
    let model = Answers { answer, asked: Arc::clone(&asked) };
    (model, asked)
}

impl<F> Model for Answers<F>
where
    F: Fn(&ModelRequest) -> ModelStream + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        "test:model"
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        self.asked.lock().unwrap().push(request.clone());
        (self.answer)(&request)
    }
}

pub(crate) const USAGE: Usage =
    Usage { input_tokens: 10, cached_input_tokens: 4, output_tokens: 2, cost_usd: 0.25 };

/// An answer in two pieces.
pub(crate) fn says(text: &str) -> ModelStream {
    done(text, vec![])
}

/// Calls, with some text.
pub(crate) fn calls<const N: usize>(calls: [ToolCall; N]) -> ModelStream {
    done("One moment.", calls.into())
}

fn done(text: &str, calls: Vec<ToolCall>) -> ModelStream {
    let response = ModelResponse { text: text.to_owned(), calls, usage: USAGE };
    let (head, tail) = text.split_at(text.len() / 2);
    Box::pin(stream::iter([
        Ok(ModelChunk::Text(head.to_owned())),
        Ok(ModelChunk::Text(tail.to_owned())),
        Ok(ModelChunk::Done(response)),
    ]))
}

pub(crate) fn call(id: &str, tool: &str, args: Value) -> ToolCall {
    ToolCall::new(id, tool, args)
}

/// How many results stand behind the last thing the user said.
pub(crate) fn results(request: &ModelRequest) -> usize {
    let messages = request.messages.iter().rev();
    messages
        .take_while(|message| !matches!(message, Message::User { .. }))
        .filter(|message| matches!(message, Message::Tool { .. }))
        .count()
}

pub(crate) fn agent<F>(model: Answers<F>) -> AgentBuilder
where
    F: Fn(&ModelRequest) -> ModelStream + Send + Sync + 'static,
{
    Agent::builder().model(model).engine(|engine| engine.redactor(Redactor::default()))
}

pub(crate) fn builder(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool of the tests.").input_schema(json!({"type": "object"}))
}

pub(crate) fn tool(name: &str) -> Tool {
    builder(name).handler(|_: Value, _: ToolContext| async { "ran" }).unwrap()
}

/// A tool that never returns.
pub(crate) fn endless(builder: ToolBuilder) -> Tool {
    builder.handler(|_: Value, _: ToolContext| std::future::pending::<&str>()).unwrap()
}

pub(crate) fn skill_id(id: &str) -> SkillId {
    SkillId::new(id).unwrap()
}

pub(crate) fn skills<const N: usize>(skills: [(&str, &[&str]); N]) -> Skills {
    let skills = skills.map(|(id, tools)| {
        Skill::new(skill_id(id), format!("About {id}."), format!("How to do {id}."))
            .tools(tools.iter().map(|name| ToolName::new(*name).unwrap()))
    });
    Skills::new(skills.into()).unwrap()
}

/// Whether a history can be sent to a model: each call has exactly one result, in call order,
/// right behind the message that asked for it.
pub(crate) fn assert_replayable(messages: &[Message]) {
    let mut open: Vec<&str> = vec![];
    for message in messages {
        match message {
            Message::Tool { call_id, .. } => {
                assert!(!open.is_empty(), "a result of no call: {messages:#?}");
                assert_eq!(open.remove(0), &**call_id, "out of order: {messages:#?}");
            }
            Message::Assistant { calls, .. } => {
                assert!(open.is_empty(), "calls without results: {messages:#?}");
                open = calls.iter().map(|call| &*call.id).collect();
            }
            _ => assert!(open.is_empty(), "calls without results: {messages:#?}"),
        }
    }
    assert!(open.is_empty(), "calls without results: {messages:#?}");
}

/// All events of a run or an agent, as they came.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    pub(crate) fn listener(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let seen = Arc::clone(&self.0);
        move |event| seen.lock().unwrap().push(event.clone())
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.events().iter().map(|event| event.kind.name()).collect()
    }

    pub(crate) fn of_name(&self, name: &str) -> Vec<Value> {
        let events = self.events().into_iter();
        events.filter(|event| event.kind.name() == name).map(|event| json!(event)).collect()
    }

    /// That the run ended with its last event, which says how.
    pub(crate) fn assert_ended(&self, outcome: &RunOutcome) {
        let events = self.events();
        let Some(EventKind::TurnEnd { stopped, iterations, .. }) = events.last().map(|e| &e.kind)
        else {
            panic!("{:?}", self.names());
        };
        assert_eq!(**stopped, *outcome.stopped.as_str());
        assert_eq!(*iterations, outcome.iterations);
        let count = |name: &str| self.names().iter().filter(|seen| **seen == name).count();
        assert_eq!(count("agent.iteration_start"), count("agent.iteration_end"));
        assert_eq!(count("tool.start"), count("tool.end"));
        assert_eq!(count("model.start"), count("model.end"));
    }
}

/// Fails a test that hangs; the time decides nothing else.
pub(crate) async fn in_time<T>(future: impl IntoFuture<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("the test hangs")
}
