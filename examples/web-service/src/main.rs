//! An agent in a web server: the events of a run as server-sent events, and approvals by a second
//! request. The guide is `docs/library.md`.
//!
//! `cargo run -p example-web-service` requires `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for another server.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

// snippet
mod tools;

use std::{
    collections::HashMap,
    env,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::sse::{Event, KeepAlive, Sse},
    routing::post,
};
use futures_util::{Stream, StreamExt as _, future::ready};
use serde_json::{Value, json};
use toolcrib::{
    CancellationToken,
    agent::Agent,
    event::EventKind,
    models::VendorModel,
    policy::{Policy, Questions, Rule},
    turn::TurnOptions,
};

/// The agent, and the open questions of each user.
#[derive(Clone)]
struct Service {
    agent: Agent,
    questions: Arc<Mutex<HashMap<String, Questions>>>,
}

impl Service {
    fn questions_of(&self, user: &str) -> Questions {
        let mut all = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(user.to_owned()).or_default().clone()
    }
}

/// The user of a request. Your login takes the place of this header.
fn user(headers: &HeaderMap) -> Result<String, StatusCode> {
    let user = headers.get("x-user").and_then(|user| user.to_str().ok());
    user.map(str::to_owned).ok_or(StatusCode::UNAUTHORIZED)
}

/// Runs the agent on the request's body, and sends what happens.
async fn run(
    State(service): State<Service>,
    headers: HeaderMap,
    message: String,
) -> Result<Sse<impl Stream<Item = Result<Event, axum::Error>>>, StatusCode> {
    let user = user(&headers)?;
    let stop = CancellationToken::new();
    let options = TurnOptions::default()
        .principal(user.as_str())
        .questions(service.questions_of(&user))
        .cancellation(stop.clone());
    let run = service.agent.run(message, options);
    let events = run.events();
    tokio::spawn(run.into_future());
    // The stream is dropped when the client goes away, and the run is cancelled with it.
    let stop = stop.drop_guard();
    let sent = events.filter_map(move |event| {
        let _ = &stop;
        ready(sent(&event.kind))
    });
    Ok(Sse::new(sent).keep_alive(KeepAlive::default()))
}

/// An event as the browser receives it; `None` if it receives nothing.
fn sent(event: &EventKind) -> Option<Result<Event, axum::Error>> {
    let (name, data) = match event {
        EventKind::ModelText { text } => ("text", json!(text)),
        // Another attempt follows: the text so far is void.
        EventKind::ModelSuperseded { .. } => ("restart", Value::Null),
        EventKind::ReliabilityRetried { wait_ms, .. } => ("wait", json!({ "ms": wait_ms })),
        EventKind::ToolStart { tool, .. } => ("tool", json!(tool)),
        EventKind::QuestionAsked { id, reason, payload, .. } => {
            ("question", json!({ "id": id, "reason": reason, "payload": payload }))
        }
        EventKind::TurnEnd { stopped, error, .. } => {
            if let Some(error) = error {
                eprintln!("{error}");
            }
            ("end", json!(stopped))
        }
        _ => return None,
    };
    Some(Event::default().event(name).json_data(data))
}

/// Approves or refuses a call: `{ "approve": true }`, or `{ "approve": false, "message": ".." }`.
async fn answer(
    State(service): State<Service>,
    headers: HeaderMap,
    Path(id): Path<String>,
    Json(answer): Json<Value>,
) -> Result<StatusCode, (StatusCode, String)> {
    let user = user(&headers).map_err(|status| (status, String::new()))?;
    let answered = service.questions_of(&user).answer(&id, answer);
    answered.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let shop = tools::Shop::new();
    let agent = Agent::builder()
        .model(VendorModel::from_env("openai:gpt-5-mini")?)
        .tool(tools::find_order_tool(shop.clone()))
        .tool(tools::refund_order_tool(shop))
        .policy(Policy::of([Rule::ask("refunds")
            .destructive(true)
            .reason("money leaves the shop")]))
        .build()?;
    let service = Service { agent, questions: Arc::default() };
    let routes = Router::new()
        .route("/runs", post(run))
        .route("/questions/{id}", post(answer))
        .with_state(service);
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, routes).await?)
}
// end
