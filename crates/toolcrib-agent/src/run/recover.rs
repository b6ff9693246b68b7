//! One answer, asked for as often as rules have it.

use std::{panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use toolcrib_core::{
    AnswerFn, EventKind, Fallback, Model, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
    Stage, StopReason, panic_text,
};
use toolcrib_engine::{FailedAttempt, GaveUpCode, NextStep, Recovery};

use super::{
    AgentParts, Models,
    ask::{Heard, Unanswered, Unheard, ask, check_answer, failed},
    report::Report,
};

/// Who is asked next.
enum Whom<'a> {
    Model(&'a Arc<dyn Model>),
    /// Code, with what went wrong before.
    Code(AnswerFn, ModelError),
}

/// What it takes to ask again, and to ask others.
pub(super) struct Asking<'a> {
    pub(super) agent: &'a AgentParts,
    pub(super) models: &'a Models,
    pub(super) recovery: &'a Recovery,
    /// Which of the models is asked. The run stays with the one that it was moved to: its vendor has
    /// cached the conversation by then, and the other is not well.
    pub(super) current: &'a mut usize,
}

impl Asking<'_> {
    /// Asks a model, and does what rules say when it fails.
    ///
    /// An answer that broke off after some of its text was shown is not asked for again: it would be
    /// shown twice. One that came whole and is of no use is, and the event `model.superseded` takes back
    /// what was shown of it.
    pub(super) async fn until_answered(
        self,
        report: &mut Report,
        request: ModelRequest,
    ) -> Result<ModelResponse, Unanswered> {
        let Self { agent, models, recovery, current } = self;
        let mut attempts = recovery
            .attempts(Stage::Model, Arc::clone(models.names()))
            .in_iteration(report.iteration)
            .beginning_with(*current);
        let mut whom = Whom::Model(models.get(*current));
        loop {
            let mut heard = Heard { text: Some(String::new()), ..Heard::default() };
            let answer = match (attempts.begin(), &whom) {
                (Err(open), _) => Err(Unheard::Failed(open.into_model_error())),
                (Ok(()), Whom::Model(model)) => {
                    ask(agent, model, report, request.clone(), &mut heard).await
                }
                (Ok(()), Whom::Code(answer, error)) => {
                    answer_by_code(agent, answer, report, &request, error, &mut heard).await
                }
            };
            recovery.used(heard.usage);
            let error = match answer {
                Ok(response) => {
                    attempts.succeeded();
                    return Ok(response);
                }
                Err(Unheard::Cancelled) => return Err(Unanswered::Cancelled),
                Err(Unheard::Failed(error)) => error,
            };
            let is_whole = heard.whole.is_some();
            let partial = heard.text.filter(|text| !text.is_empty());
            let mut failure = FailedAttempt::of_model(&error);
            failure.acceptable = is_whole || partial.is_some();
            failure.unrepeatable = (heard.shown && !is_whole).then_some(GaveUpCode::MidStream);
            let name = match &whom {
                Whom::Model(model) => model.name().to_owned(),
                Whom::Code(..) => "answer".to_owned(),
            };
            let next = match attempts.failed(&failure).await {
                NextStep::Accept => {
                    return Ok(heard.whole.unwrap_or_else(|| ModelResponse {
                        text: partial.unwrap_or_default(),
                        stop: StopReason::Other,
                        ..ModelResponse::default()
                    }));
                }
                NextStep::Cancelled => return Err(Unanswered::Cancelled),
                NextStep::GaveUp(gave_up) => {
                    let mut failed = failed(&name, &error).given_up(&gave_up);
                    failed.message = format!("{} ({gave_up})", failed.message);
                    return Err(Unanswered::Failed(failed));
                }
                NextStep::Retry => whom,
                NextStep::Other(choice) => {
                    *current = choice;
                    Whom::Model(models.get(choice))
                }
                NextStep::Fallback(Fallback::Answer(answer)) => Whom::Code(answer, error),
                _ => return Err(Unanswered::Failed(failed(&name, &error))),
            };
            whom = next;
            if heard.shown {
                report.emit(|| EventKind::ModelSuperseded { model: name.into() });
            }
        }
    }
}

/// An answer that code gives. It is shown like a model's, and it too keeps to the choice of tools.
async fn answer_by_code(
    agent: &AgentParts,
    answer: &AnswerFn,
    report: &mut Report,
    request: &ModelRequest,
    error: &ModelError,
    heard: &mut Heard,
) -> Result<ModelResponse, Unheard> {
    let cancellation = report.cancellation.clone();
    let answering = AssertUnwindSafe(async { answer.answer(request, error).await }).catch_unwind();
    let answer = tokio::select! {
        biased;
        () = cancellation.cancelled() => return Err(Unheard::Cancelled),
        answer = answering => answer.unwrap_or_else(|panic| Err(ModelError::new(
            ModelErrorClass::Incomplete,
            format!("it panicked: {}", panic_text(&*panic)),
        ))),
    };
    heard.usage = match &answer {
        Ok(response) => response.usage,
        Err(error) => error.usage,
    };
    report.usage += heard.usage;
    let response = answer.map_err(Unheard::Failed)?;
    check_answer(&request.tool_choice, &response).map_err(Unheard::Failed)?;
    report.text(agent.engine.redactor().text(&response.text).into_owned());
    Ok(response)
}
