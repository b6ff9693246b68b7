//! The same calls through each door, and what was seen of them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt, RoleClient,
    model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion},
    service::{RunningService, ServiceError},
};
use serde_json::{Value, json};
use toolcrib_agent::{Agent, Settings};
use toolcrib_core::{CancellationToken, ToolCall, ToolResult, unfence};
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_gateway::{Access, Gateway};
use toolcrib_testing::{EventRecorder, call, model};

use super::world::{Caller, Made, World};

/// The result of one call, as a client reads it.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    code: Option<String>,
    /// The text before the fence, and the text after it.
    value: (String, String),
}

/// The view of a door.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) answers: Vec<Answer>,
    /// `tools.*`, `tool.*` and `policy.*`, less ids, numbers and times.
    pub(crate) events: Vec<Value>,
}

/// Whether a caller may not begin with its skills; then no door lets it in. One that may begin with
/// them may also read each of them.
pub(crate) async fn refused_by_every_door(world: &World, caller: &Caller) -> bool {
    let engine = world.engine();
    let Err(refused) = engine.turn(caller.turn()) else {
        let mut options = caller.turn();
        let skills = std::mem::take(&mut options.skills);
        let mut turn = engine.turn(options).unwrap();
        for skill in skills {
            let read = ToolCall::new("id", "read_skill", json!({ "id": skill }));
            let results = turn.iteration().await.unwrap().execute(vec![read]).await;
            assert_eq!(results[0].code, None, "{skill} is active from the start");
        }
        return false;
    };
    let (stdin, stdout) = tokio::io::duplex(64);
    let gateway = Gateway::builder(engine.clone()).build();
    let served = gateway.serve_stdio(stdin, stdout, caller.access(), CancellationToken::new());
    assert!(served.await.unwrap_err().to_string().contains(&refused.to_string()));
    let agent = Agent::new(engine, std::sync::Arc::new(model()), Settings::default());
    let outcome = agent.run("Do it.", caller.turn()).await;
    assert_eq!(outcome.error.unwrap().code, "unknown_skill");
    true
}

/// The iterations of one turn, one per call.
pub(crate) async fn library(engine: &Engine, options: TurnOptions, calls: &[Made]) -> Seen {
    let heard = EventRecorder::attach(engine.events());
    let mut turn = engine.turn(options).unwrap();
    let mut answers = Vec::new();
    for (name, args) in calls {
        let mut iteration = turn.iteration().await.unwrap();
        let results = iteration.execute(vec![ToolCall::new("id", *name, args.clone())]).await;
        answers.extend(results.iter().map(Answer::of_result));
    }
    Seen { answers, events: events(&heard) }
}

/// A separate turn for each call, in which no skill can be activated.
pub(crate) async fn library_without_turns(
    engine: &Engine,
    options: impl Fn() -> TurnOptions,
    calls: &[Made],
) -> Seen {
    let mut seen = Seen { answers: Vec::new(), events: Vec::new() };
    for made in calls {
        let once =
            library(engine, options().without_read_skill(), std::slice::from_ref(made)).await;
        seen.answers.extend(once.answers);
        seen.events.extend(once.events);
    }
    seen
}

/// A model that makes one call in each step.
pub(crate) async fn agent(engine: &Engine, options: TurnOptions, calls: &[Made]) -> Seen {
    let heard = EventRecorder::attach(engine.events());
    let scripted = calls
        .iter()
        .fold(model(), |model, (name, args)| model.then(call(name, args.clone())))
        .then("Done.");
    let agent = Agent::new(engine.clone(), std::sync::Arc::new(scripted), Settings::default());
    let outcome = agent.run("Do it.", options).await;
    assert_eq!(outcome.answer.as_deref(), Some("Done."));
    let mut events = events(&heard);
    // The model's last words have a menu too, and no call.
    let last = events.iter().rposition(|event| event["type"] == "tool.end").unwrap();
    events.truncate(last + 1);
    Seen { answers: outcome.tool_calls.iter().map(Answer::of_result).collect(), events }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Sessions,
    Stateless,
}

/// A real client on a pair of pipes.
pub(crate) async fn gateway(engine: &Engine, access: Access, era: Era, calls: &[Made]) -> Seen {
    let heard = EventRecorder::attach(engine.events());
    let session = Session::open(engine, access, era).await;
    let mut answers = Vec::new();
    for (name, args) in calls {
        answers.push(session.call(name, args).await);
    }
    session.end().await;
    Seen { answers, events: events(&heard) }
}

pub(crate) struct Session {
    client: RunningService<RoleClient, ClientConfig>,
    served: tokio::task::JoinHandle<()>,
}

impl Session {
    pub(crate) async fn open(engine: &Engine, access: Access, era: Era) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (stdin, stdout) = tokio::io::split(far);
        let gateway = Gateway::builder(engine.clone()).build();
        let served = tokio::spawn(async move {
            gateway.serve_stdio(stdin, stdout, access, CancellationToken::new()).await.unwrap();
        });
        let lifecycle = match era {
            Era::Sessions => ClientLifecycleMode::Initialize,
            Era::Stateless => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        };
        let client = ClientConfig::default().serve_with_lifecycle(near, lifecycle).await.unwrap();
        Self { client, served }
    }

    pub(crate) async fn call(&self, name: &str, args: &Value) -> Answer {
        let mut params = CallToolRequestParams::new(name.to_owned());
        params.arguments = args.as_object().cloned();
        match self.client.call_tool(params).await {
            Ok(result) => Answer::of_wire(&result),
            Err(ServiceError::McpError(error)) => {
                assert_eq!(error.code.0, -32602);
                let code = error.data.unwrap()["code"].as_str().unwrap().to_owned();
                Answer { code: Some(code), value: (error.message.into_owned(), String::new()) }
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    pub(crate) async fn menu(&self) -> Vec<String> {
        let tools = self.client.list_all_tools().await.unwrap();
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    pub(crate) async fn end(mut self) {
        self.client.close().await.unwrap();
        self.served.await.unwrap();
    }
}

impl Answer {
    pub(crate) fn of_result(result: &ToolResult) -> Self {
        let code = result.code.map(|code| code.as_str().to_owned());
        Self { code, value: before_the_fence(&result.text) }
    }

    fn of_wire(result: &CallToolResult) -> Self {
        let code = (result.is_error == Some(true))
            .then(|| result.meta.as_ref().unwrap()["toolcrib/code"].as_str().unwrap().to_owned());
        let (mut inside, mut after) = (Vec::new(), String::new());
        for block in &result.content {
            let (text, behind) = as_read(&serde_json::to_value(block).unwrap());
            inside.push(text);
            after += &behind;
        }
        Self { code, value: (inside.join("\n"), after) }
    }
}

/// A block of the wire as a model reads it in the text of a result.
fn as_read(block: &Value) -> (String, String) {
    let text = |value: &Value| before_the_fence(value.as_str().unwrap());
    match block["type"].as_str().unwrap() {
        "text" => text(&block["text"]),
        "image" => {
            let bytes = STANDARD.decode(block["data"].as_str().unwrap()).unwrap().len();
            let line = format!("[image {}, {bytes} bytes]", block["mimeType"].as_str().unwrap());
            (line, String::new())
        }
        "resource" => {
            let (inside, behind) = text(&block["resource"]["text"]);
            let uri = block["resource"]["uri"].as_str().unwrap();
            (format!("[text {uri}]\n{inside}"), behind)
        }
        other => panic!("{other}"),
    }
}

fn before_the_fence(text: &str) -> (String, String) {
    let (inside, behind) = unfence(text);
    (inside.to_owned(), behind.to_owned())
}

pub(crate) fn events(heard: &EventRecorder) -> Vec<Value> {
    let mut events = heard.json_of("*");
    events.retain(|event| {
        let name = event["type"].as_str().unwrap();
        ["tools.", "tool.", "policy."].iter().any(|domain| name.starts_with(domain))
    });
    for event in &mut events {
        let fields = event.as_object_mut().unwrap();
        fields.retain(|name, _| {
            !["turn_id", "call_id", "seq", "iteration", "at_ms", "duration_ms"].contains(&&**name)
        });
        fields["identity"].as_object_mut().unwrap().retain(|name, _| name != "conversation");
    }
    events
}
