//! Model requests with retries by reliability rules.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use toolcrib_core::{
    AnswerFn, EventKind, Fallback, Model, ModelError, ModelRequest, ModelResponse, Stage,
};
use toolcrib_engine::{RecoveryStep, ReliabilityContext};

use super::{
    parts::AgentParts,
    report::Report,
    request::{PartialResponse, ask, check_answer, panicked},
};
use crate::{
    models::Models,
    outcome::{RunEnd, RunError},
};

/// The target of the next request.
enum Target<'a> {
    Model(&'a Arc<dyn Model>),
    /// Code, with the previous failure.
    Code(AnswerFn, ModelError),
}

/// The state for retries and fallbacks.
pub(super) struct AnswerRequest<'a> {
    pub(super) agent: &'a AgentParts,
    pub(super) models: &'a Models,
    pub(super) recovery: &'a ReliabilityContext,
    /// The index of the current model. The run keeps the model that it switched to: its vendor has
    /// cached the conversation by then, and the other one is failing.
    pub(super) current: &'a mut usize,
}

impl AnswerRequest<'_> {
    /// Requests an answer by a request of `sent` bytes, and applies the rules to failures.
    ///
    /// A response that broke off after some of its text was shown is not requested again, because
    /// the text would be shown twice. A complete but unusable one is, and the event
    /// `model.superseded` tells listeners to remove its text.
    pub(super) async fn until_answered(
        self,
        report: &mut Report,
        request: ModelRequest,
        sent: u64,
    ) -> Result<ModelResponse, RunEnd> {
        let Self { agent, models, recovery, current } = self;
        let mut attempts = recovery
            .attempts(Stage::Model, Arc::clone(models.names()))
            .in_iteration(report.iteration)
            .beginning_with(*current);
        let mut target = Target::Model(models.get(*current));
        loop {
            report.may_request().await?;
            // Only a rule of the engine accepts a part of a response.
            let text = recovery.has_rules().then(String::new);
            let mut received = PartialResponse { text, ..PartialResponse::default() };
            let answer = match (attempts.begin(), &target) {
                (Err(open), _) => Err(open.into_model_error()),
                (Ok(()), Target::Model(model)) => {
                    ask(agent, model, report, request.clone(), sent, &mut received).await?
                }
                (Ok(()), Target::Code(answer, error)) => {
                    answer_by_code(agent, answer, report, &request, error, &mut received).await?
                }
            };
            recovery.used(received.usage);
            let error = match answer {
                Ok(response) => {
                    attempts.succeeded();
                    return Ok(response);
                }
                Err(error) => error,
            };
            let name = match &target {
                Target::Model(model) => model.name().to_owned(),
                Target::Code(..) => "answer".to_owned(),
            };
            let shown = received.shown;
            target = match attempts.failed(&received.failure(&error)).await {
                RecoveryStep::Accept => return Ok(received.accepted()),
                RecoveryStep::Cancelled => return Err(RunEnd::cancelled()),
                RecoveryStep::RetryExhausted(exhausted) => {
                    let mut failed = RunError::of_model(&name, &error).given_up(&exhausted);
                    failed.message = format!("{} ({exhausted})", failed.message);
                    return Err(failed.into());
                }
                RecoveryStep::Retry => target,
                RecoveryStep::Other(choice) => {
                    *current = choice;
                    Target::Model(models.get(choice))
                }
                RecoveryStep::Fallback(Fallback::Answer(answer)) => Target::Code(answer, error),
                _ => return Err(RunError::of_model(&name, &error).into()),
            };
            if shown {
                report.emit(|| EventKind::ModelSuperseded { model: name.into() });
            }
        }
    }
}

/// An answer computed by code. It is shown like a model's, and must respect the tool choice too.
async fn answer_by_code(
    agent: &AgentParts,
    answer: &AnswerFn,
    report: &mut Report,
    request: &ModelRequest,
    error: &ModelError,
    received: &mut PartialResponse,
) -> Result<Result<ModelResponse, ModelError>, RunEnd> {
    let cancellation = report.cancellation.clone();
    let answering = AssertUnwindSafe(async { answer.answer(request, error).await }).catch_unwind();
    let answer = tokio::select! {
        biased;
        () = cancellation.cancelled() => return Err(RunEnd::cancelled()),
        answer = answering => answer.unwrap_or_else(|panic| Err(panicked(&*panic))),
    };
    received.usage = match &answer {
        Ok(response) => response.usage,
        Err(error) => error.usage,
    };
    report.used(received.usage);
    report.spending.answered_by_code(&received.usage);
    Ok(answer.and_then(|response| {
        check_answer(&request.tool_choice, &response, false)?;
        report.text(agent.engine.redactor().text(&response.text).into_owned());
        Ok(response)
    }))
}
