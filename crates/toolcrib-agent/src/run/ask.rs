//! One model call.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::task::yield_now;
use toolcrib_core::{
    EventKind, Menu, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
    ToolCall, ToolChoice, ToolName, Usage, millis, panic_text,
};

use super::{AgentParts, report::Report};
use crate::outcome::RunError;

/// Why a model gave no answer.
pub(super) enum Unanswered {
    Cancelled,
    Failed(RunError),
}

/// Asks the model and listens to the end. Cancellation drops the stream, which aborts the request.
pub(super) async fn ask(
    agent: &AgentParts,
    report: &mut Report,
    request: ModelRequest,
) -> Result<ModelResponse, Unanswered> {
    let model = &agent.model;
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
        answer = AssertUnwindSafe(listen(agent, report, request)).catch_unwind() => match answer {
            Ok(answer) => answer.map_err(Some),
            Err(panic) => Err(Some(ModelError::new(
                ModelErrorClass::Incomplete,
                format!("it panicked: {}", panic_text(&*panic)),
            ))),
        },
    };
    let usage = match &answer {
        Ok(response) => response.usage,
        Err(Some(error)) => error.usage,
        Err(None) => Usage::default(),
    };
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
    answer.map_err(|error| match error {
        None => Unanswered::Cancelled,
        Some(error) => Unanswered::Failed(RunError {
            component: Some(model.name().to_owned()),
            class: Some(error.class),
            retry_after: error.retry_after,
            ..RunError::new("model_failed", format!("model `{}`: {error}", model.name()))
        }),
    })
}

async fn listen(
    agent: &AgentParts,
    report: &Report,
    request: ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let choice = request.tool_choice.clone();
    check_choice(&choice, &request.menu)?;
    let mut stream = Arc::clone(&agent.model).respond(request);
    let redactor = agent.engine.redactor();
    let (mut text, mut reasoning) = (redactor.stream(), redactor.stream());
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ModelChunk::Text(piece) => report.text(text.push(&piece)),
            ModelChunk::Reasoning(piece) => report.reasoning(reasoning.push(&piece)),
            ModelChunk::Done(response) => {
                report.reasoning(reasoning.finish());
                report.text(text.finish());
                let Some(problem) = ignored(&choice, &response.calls) else { return Ok(response) };
                let mut error = ModelError::new(ModelErrorClass::ToolChoiceIgnored, problem);
                error.usage = response.usage;
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
