//! One model call.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::task::yield_now;
use toolcrib_core::{
    EventKind, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, millis,
    panic_text,
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
        tool_choice: request.tool_choice,
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
    let usage = answer.as_ref().map(|response| response.usage).unwrap_or_default();
    report.usage += usage;
    report.emit(|| EventKind::ModelEnd {
        calls: answer.as_ref().map_or(0, |response| response.calls.len()),
        usage,
        duration_ms: millis(began.elapsed()),
        error: match &answer {
            Ok(_) => None,
            Err(None) => Some("the run was cancelled".to_owned()),
            Err(Some(error)) => Some(agent.engine.redactor().text(&error.to_string()).into_owned()),
        },
    });
    answer.map_err(|error| match error {
        None => Unanswered::Cancelled,
        Some(error) => Unanswered::Failed(RunError {
            code: "model_failed",
            message: format!("model `{}`: {error}", model.name()),
            component: Some(model.name().to_owned()),
        }),
    })
}

async fn listen(
    agent: &AgentParts,
    report: &Report,
    request: ModelRequest,
) -> Result<ModelResponse, ModelError> {
    let mut stream = Arc::clone(&agent.model).respond(request);
    let mut text = agent.engine.redactor().stream();
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ModelChunk::Text(piece) => {
                report.text(text.push(&piece));
                // A model whose pieces are all there already must not keep cancellation, the
                // clock and other runs waiting.
                yield_now().await;
            }
            ModelChunk::Done(response) => {
                report.text(text.finish());
                return Ok(response);
            }
            // A piece that this loop does not know is not text and not the end.
            _ => {}
        }
    }
    Err(ModelError::new(ModelErrorClass::Incomplete, "its answer ended before it was complete"))
}
