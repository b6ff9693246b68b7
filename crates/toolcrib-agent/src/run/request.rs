//! A single model request.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::task::yield_now;
use toolcrib_core::{
    __internal::{millis, panic_text},
    Arguments, EventKind, Menu, Message, Model, ModelChunk, ModelError, ModelErrorClass,
    ModelRequest, ModelResponse, StopReason, ToolCall, ToolChoice, ToolName, Usage,
};
use toolcrib_engine::{ExhaustedReason, FailedAttempt, offered_name};

use super::{
    empty_answer,
    parts::AgentParts,
    report::Report,
    spending::{RequestUsage, cost},
};
use crate::outcome::RunEnd;

/// The received parts of a response, complete or not.
#[derive(Default)]
pub(super) struct PartialResponse {
    /// Whether some of its text was shown.
    pub(super) shown: bool,
    /// The text so far, if it is to be kept.
    pub(super) text: Option<String>,
    /// The response, if it was complete but unusable.
    pub(super) whole: Option<ModelResponse>,
    pub(super) usage: Usage,
    /// The size of the pieces so far.
    pub(super) bytes: u64,
    /// When its first piece arrived.
    pub(super) first: Option<Instant>,
}

impl PartialResponse {
    /// The failed attempt, for the rules.
    pub(super) fn failure<'a>(&self, error: &'a ModelError) -> FailedAttempt<'a> {
        let is_whole = self.whole.is_some();
        let has_text = self.text.as_ref().is_some_and(|text| !text.trim().is_empty());
        let is_empty = error.class == ModelErrorClass::EmptyAnswer;
        let mut failure = FailedAttempt::of_model(error);
        failure.acceptable = (is_whole || has_text) && !is_empty;
        failure.unrepeatable = (self.shown && !is_whole).then_some(ExhaustedReason::MidStream);
        failure
    }

    /// The answer, where a rule accepts a failed attempt.
    pub(super) fn accepted(self) -> ModelResponse {
        self.whole.unwrap_or_else(|| ModelResponse {
            text: self.text.filter(|text| !text.trim().is_empty()).unwrap_or_default(),
            stop: StopReason::Other,
            ..ModelResponse::default()
        })
    }
}

/// Sends a request of `sent` bytes and reads the response to its end, or to the model's error.
/// Cancellation drops the stream, which aborts the request, and ends the run.
pub(super) async fn ask(
    agent: &AgentParts,
    model: &Arc<dyn Model>,
    report: &mut Report,
    request: ModelRequest,
    sent: u64,
    received: &mut PartialResponse,
) -> Result<Result<ModelResponse, ModelError>, RunEnd> {
    report.emit(|| EventKind::ModelStart {
        model: model.name().into(),
        messages: request.messages.len(),
        tools: request.menu.len(),
        tool_choice: request.tool_choice.clone(),
        bytes: sent,
    });
    let (menu, began) = (Arc::clone(&request.menu), Instant::now());
    let cancellation = report.cancellation.clone();
    let listening =
        AssertUnwindSafe(listen(agent, model, report, request, received)).catch_unwind();
    let answer = tokio::select! {
        biased;
        () = cancellation.cancelled() => None,
        answer = listening => Some(answer.unwrap_or_else(|panic| Err(panicked(&*panic)))),
    };
    let request = SentRequest { agent, model: &**model, menu, bytes: sent, began };
    request.ended(report, received, answer.as_ref());
    answer.ok_or_else(RunEnd::cancelled)
}

/// A request that has ended, for the run's usage and events.
struct SentRequest<'a> {
    agent: &'a AgentParts,
    model: &'a dyn Model,
    menu: Arc<Menu>,
    bytes: u64,
    began: Instant,
}

impl SentRequest<'_> {
    /// Counts the request, and reports its end. `answer` is `None` after a cancellation.
    fn ended(
        &self,
        report: &mut Report,
        received: &mut PartialResponse,
        answer: Option<&Result<ModelResponse, ModelError>>,
    ) {
        let Self { agent, model, menu, bytes, began } = self;
        let response = answer.and_then(|answer| answer.as_ref().ok());
        let error = answer.and_then(|answer| answer.as_ref().err());
        let usage = response.map(|response| response.usage).or(error.map(|error| error.usage));
        let (usage, is_cut_off) = cost(
            model.price(),
            model.reports_cost(),
            usage.unwrap_or_default(),
            error.map(|error| error.class),
            response.is_some(),
        );
        received.usage = usage;
        report.used(usage);
        report.spending.requested(&RequestUsage {
            model: model.name(),
            price: model.price(),
            menu,
            usage,
            bytes: (*bytes, received.bytes),
            is_cut_off,
        });
        let redacted = |error: &ModelError| agent.engine.redactor().text(&error.to_string()).into();
        report.emit(|| EventKind::ModelEnd {
            model: model.name().into(),
            calls: response.map_or(0, |response| response.calls.len()),
            stop: response.map(|response| response.stop),
            usage,
            bytes: response.map_or(0, response_bytes),
            duration_ms: millis(began.elapsed()),
            first_ms: received.first.map(|first| millis(first.duration_since(*began))),
            error: match answer {
                None => Some("the run was cancelled".to_owned()),
                Some(_) => error.map(redacted),
            },
            error_class: error.map(|error| error.class),
            retry_after_ms: error.and_then(|error| error.retry_after).map(millis),
        });
    }
}

/// The size of the requests of a run, without images and the vendor's own JSON. A conversation only grows
/// between requests, so each message and each menu is counted once.
#[derive(Default)]
pub(super) struct RequestSize {
    /// The number of counted messages, and their bytes.
    messages: (usize, usize),
    /// The last menu, and the bytes of its tools.
    menu: Option<(Arc<Menu>, usize)>,
}

impl RequestSize {
    /// The bytes of a request.
    pub(super) fn of(&mut self, request: &ModelRequest) -> u64 {
        let (counted, mut bytes) = self.messages;
        let new = request.messages.iter().skip(counted);
        bytes += new.map(message_bytes).sum::<usize>();
        self.messages = (request.messages.len(), bytes);
        let menu = &request.menu;
        let known = self.menu.as_ref().filter(|(known, _)| Arc::ptr_eq(known, menu));
        let tools = known.map_or_else(
            || menu.tools().iter().map(|tool| tool.rendering().len()).sum(),
            |(_, bytes)| *bytes,
        );
        self.menu = Some((Arc::clone(menu), tools));
        (request.system.len() + bytes + tools) as u64
    }

    /// Counts all messages again: earlier ones were replaced.
    pub(super) fn messages_replaced(&mut self) {
        self.messages = (0, 0);
    }
}

fn message_bytes(message: &Message) -> usize {
    match message {
        Message::User { text, .. } | Message::Tool { text, .. } => text.len(),
        Message::Assistant { text, calls, .. } => text.len() + calls_bytes(calls),
        _ => 0,
    }
}

/// The size of an answer beyond which it is cut, in bytes of its text, its reasoning and its calls. More
/// than any model writes, and less than a session and its readers can take.
const MOST_ANSWER_BYTES: u64 = 8 * 1024 * 1024;

/// An answer as if the model's output limit had cut it off: the text is bounded, and calls whose
/// arguments may be incomplete are not made.
fn cut_answer(mut response: ModelResponse) -> ModelResponse {
    let most = usize::try_from(MOST_ANSWER_BYTES).unwrap_or(usize::MAX);
    response.text.truncate(response.text.floor_char_boundary(most));
    if calls_bytes(&response.calls) as u64 > MOST_ANSWER_BYTES {
        response.calls.clear();
    }
    response.stop = StopReason::MaxTokens;
    response.vendor = None;
    response
}

fn response_bytes(response: &ModelResponse) -> u64 {
    (response.text.len() + calls_bytes(&response.calls)) as u64
}

fn calls_bytes(calls: &[ToolCall]) -> usize {
    let bytes = |call: &ToolCall| match &call.arguments {
        Arguments::Text(text) => text.len(),
        Arguments::Json(json) => json.to_string().len(),
    };
    calls.iter().map(|call| call.name.len() + bytes(call)).sum()
}

/// The error of a model whose code panicked.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> ModelError {
    let problem = format!("it panicked: {}", panic_text(panic));
    ModelError::new(ModelErrorClass::Incomplete, problem)
}

async fn listen(
    agent: &AgentParts,
    model: &Arc<dyn Model>,
    report: &Report,
    request: ModelRequest,
    received: &mut PartialResponse,
) -> Result<ModelResponse, ModelError> {
    let choice = request.tool_choice.clone();
    check_choice(&choice, &request.menu)?;
    let menu = Arc::clone(&request.menu);
    let mut stream = Arc::clone(model).respond(request);
    let redactor = agent.engine.redactor();
    let (mut text, mut reasoning) = (redactor.stream(), redactor.stream());
    let mut has_reasoned = false;
    let mut whole = String::new();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        if let ModelChunk::Text(piece) | ModelChunk::Reasoning(piece) = &chunk {
            received.bytes += piece.len() as u64;
            received.first.get_or_insert_with(Instant::now);
        }
        if let ModelChunk::Text(piece) = &chunk {
            whole.push_str(piece);
        }
        if received.bytes > MOST_ANSWER_BYTES {
            // The stream ends with it, so its server stops writing.
            report.reasoning(reasoning.finish());
            received.shown |= report.text(text.finish());
            return Ok(cut_answer(ModelResponse { text: whole, ..ModelResponse::default() }));
        }
        match chunk {
            ModelChunk::Text(piece) => {
                if let Some(kept) = &mut received.text {
                    kept.push_str(&piece);
                }
                received.shown |= report.text(text.push(&piece));
            }
            ModelChunk::Reasoning(piece) => {
                has_reasoned = true;
                report.reasoning(reasoning.push(&piece));
            }
            ModelChunk::Done(response) => {
                report.reasoning(reasoning.finish());
                received.shown |= report.text(text.finish());
                let response = complete(response, &menu);
                let checked = check_answer(&choice, &response, has_reasoned);
                let Err(error) = checked else { return Ok(response) };
                received.whole = Some(response);
                return Err(error);
            }
            // Unknown pieces are neither text nor the end.
            _ => {}
        }
        // A model whose pieces are all available must not starve cancellation, the clock and other
        // runs.
        yield_now().await;
    }
    Err(ModelError::new(ModelErrorClass::Incomplete, "its response ended before it was complete"))
}

/// A complete response, within the limit. From here on each call has the tool's name, also in the
/// conversation.
fn complete(mut response: ModelResponse, menu: &Menu) -> ModelResponse {
    for call in &mut response.calls {
        if let Some(name) = offered_name(menu, &call.name).filter(|name| **name != *call.name) {
            call.name = name.as_str().into();
        }
    }
    if response_bytes(&response) > MOST_ANSWER_BYTES { cut_answer(response) } else { response }
}

/// A vendor would reject it, or behave differently.
fn check_choice(choice: &ToolChoice, menu: &Menu) -> Result<(), ModelError> {
    let problem = match choice {
        ToolChoice::Required if menu.is_empty() => {
            "it must call a tool, and none is offered".to_owned()
        }
        ToolChoice::Tool(name) if !menu.names().any(|offered| offered == name) => {
            let offered: Vec<_> = menu.names().map(ToolName::as_str).collect();
            format!(
                "it must call `{name}`, which is not offered in this iteration; offered: {}",
                if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") }
            )
        }
        _ => return Ok(()),
    };
    Err(ModelError::new(ModelErrorClass::BadRequest, problem))
}

/// Whether a complete response is an answer or calls, and respects the tool choice.
pub(super) fn check_answer(
    choice: &ToolChoice,
    response: &ModelResponse,
    has_reasoned: bool,
) -> Result<(), ModelError> {
    empty_answer::check(choice, response, has_reasoned)?;
    let Some(problem) = ignored(choice, &response.calls) else { return Ok(()) };
    let mut error = ModelError::new(ModelErrorClass::ToolChoiceIgnored, problem);
    error.usage = response.usage;
    Err(error)
}

/// The violation of the tool choice. Calls despite [`None`](ToolChoice::None) are not a failure:
/// they are refused, and the text is the answer.
fn ignored(choice: &ToolChoice, calls: &[ToolCall]) -> Option<String> {
    let must = match choice {
        ToolChoice::Required if calls.is_empty() => "a tool".to_owned(),
        ToolChoice::Tool(only)
            if calls.is_empty() || calls.iter().any(|call| *call.name != **only) =>
        {
            format!("`{only}` and no other tool")
        }
        _ => return None,
    };
    let did = match calls {
        [] => "it called none; its server may not enforce the choice of tools".to_owned(),
        calls => {
            // Names invented by a model may be of any length and number.
            let shown = |call: &ToolCall| call.name.chars().take(64).collect::<String>();
            let names: Vec<_> = calls
                .iter()
                .take(8)
                .map(|call| format!("`{}`", shown(call).escape_debug()))
                .collect();
            let more = if calls.len() > names.len() { " and others" } else { "" };
            format!("it called {}{more}", names.join(", "))
        }
    };
    Some(format!("it had to call {must}, and {did}"))
}
