//! One model call.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::task::yield_now;
use toolcrib_core::{
    EventKind, Menu, Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
    ToolCall, ToolChoice, ToolName, Usage, millis, panic_text,
};

use super::{AgentParts, report::Report};
use crate::outcome::RunError;

/// Why a model gave no answer.
pub(super) enum Unanswered {
    Cancelled,
    Failed(RunError),
}

/// Why one request to a model has no answer.
pub(super) enum Unheard {
    Cancelled,
    Failed(ModelError),
}

impl Unheard {
    /// When nothing more is tried.
    pub(super) fn into_unanswered(self, model: &Arc<dyn Model>) -> Unanswered {
        match self {
            Self::Cancelled => Unanswered::Cancelled,
            Self::Failed(error) => Unanswered::Failed(failed(model.name(), &error)),
        }
    }
}

/// The error of a run whose model failed.
pub(super) fn failed(model: &str, error: &ModelError) -> RunError {
    RunError {
        component: Some(model.to_owned()),
        class: Some(error.class),
        retry_after: error.retry_after,
        ..RunError::new("model_failed", format!("model `{model}`: {error}"))
    }
}

/// What was heard of an answer, however it ended.
#[derive(Default)]
pub(super) struct Heard {
    /// Whether some of its text was shown.
    pub(super) shown: bool,
    /// The text that came, if it is to be kept.
    pub(super) text: Option<String>,
    /// The answer, if it came whole and is of no use.
    pub(super) whole: Option<ModelResponse>,
    pub(super) usage: Usage,
}

/// Asks a model and listens to the end. Cancellation drops the stream, which aborts the request.
pub(super) async fn ask(
    agent: &AgentParts,
    model: &Arc<dyn Model>,
    report: &mut Report,
    request: ModelRequest,
    heard: &mut Heard,
) -> Result<ModelResponse, Unheard> {
    report.emit(|| EventKind::ModelStart {
        model: model.name().into(),
        messages: request.messages.len(),
        tools: request.menu.len(),
        tool_choice: request.tool_choice.clone(),
    });
    let began = Instant::now();
    let cancellation = report.cancellation.clone();
    let answer = tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(None),
        answer = AssertUnwindSafe(listen(agent, model, report, request, heard)).catch_unwind() => match answer {
            Ok(answer) => answer.map_err(Some),
            Err(panic) => Err(Some(ModelError::new(
                ModelErrorClass::Incomplete,
                format!("it panicked: {}", panic_text(&*panic)),
            ))),
        },
    };
    let mut usage = match &answer {
        Ok(response) => response.usage,
        Err(Some(error)) => error.usage,
        Err(None) => Usage::default(),
    };
    if !model.states_cost() {
        // A call that failed may have been charged too.
        usage.cost_usd = None;
    }
    heard.usage = usage;
    report.usage += usage;
    let failure = answer.as_ref().err().and_then(Option::as_ref);
    report.emit(|| EventKind::ModelEnd {
        calls: answer.as_ref().map_or(0, |response| response.calls.len()),
        stop: answer.as_ref().ok().map(|response| response.stop),
        usage,
        duration_ms: millis(began.elapsed()),
        error: match &answer {
            Ok(_) => None,
            Err(None) => Some("the run was cancelled".to_owned()),
            Err(Some(error)) => Some(agent.engine.redactor().text(&error.to_string()).into_owned()),
        },
        error_class: failure.map(|error| error.class),
        retry_after_ms: failure.and_then(|error| error.retry_after).map(millis),
    });
    answer.map_err(|error| error.map_or(Unheard::Cancelled, Unheard::Failed))
}

async fn listen(
    agent: &AgentParts,
    model: &Arc<dyn Model>,
    report: &Report,
    request: ModelRequest,
    heard: &mut Heard,
) -> Result<ModelResponse, ModelError> {
    let choice = request.tool_choice.clone();
    check_choice(&choice, &request.menu)?;
    let mut stream = Arc::clone(model).respond(request);
    let redactor = agent.engine.redactor();
    let (mut text, mut reasoning) = (redactor.stream(), redactor.stream());
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ModelChunk::Text(piece) => {
                if let Some(kept) = &mut heard.text {
                    kept.push_str(&piece);
                }
                heard.shown |= report.text(text.push(&piece));
            }
            ModelChunk::Reasoning(piece) => report.reasoning(reasoning.push(&piece)),
            ModelChunk::Done(response) => {
                report.reasoning(reasoning.finish());
                heard.shown |= report.text(text.finish());
                let Err(error) = check_answer(&choice, &response) else { return Ok(response) };
                heard.whole = Some(response);
                return Err(error);
            }
            // A piece that this loop does not know is not text and not the end.
            _ => {}
        }
        // A model whose pieces are all there already must not keep cancellation, the clock and
        // other runs waiting.
        yield_now().await;
    }
    Err(ModelError::new(ModelErrorClass::Incomplete, "its answer ended before it was complete"))
}

/// A vendor would refuse it, or do something else.
fn check_choice(choice: &ToolChoice, menu: &Menu) -> Result<(), ModelError> {
    let problem = match choice {
        ToolChoice::Required if menu.is_empty() => {
            "it must call a tool, and none is offered".to_owned()
        }
        ToolChoice::Tool(name) if menu.get(name).is_none() => {
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

/// Whether a whole answer keeps to the choice of tools.
pub(super) fn check_answer(
    choice: &ToolChoice,
    response: &ModelResponse,
) -> Result<(), ModelError> {
    let Some(problem) = ignored(choice, &response.calls) else { return Ok(()) };
    let mut error = ModelError::new(ModelErrorClass::ToolChoiceIgnored, problem);
    error.usage = response.usage;
    Err(error)
}

/// What a model did in place of what it must do. That it calls in spite of
/// [`None`](ToolChoice::None) is no failure: the calls are refused, and it has answered.
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
            // Names that a model makes up may be of any length and number.
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
