//! A model's questions to the person of its turn: through the approver, as approvals, otherwise
//! through the engine's clarifier, or the turn's questions.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolcrib_core::{
    Approver, BoxFuture, CancellationToken, Clarification, ClarificationOutcome, Clarifier,
    TurnEvents, harmless,
};

use super::ClientWait;
use crate::{
    policy::questions::{NotAnsweredError, Question, QuestionContext, Questions},
    secrets::Redactor,
};

/// Asks for one call.
#[derive(Clone)]
pub(crate) struct CallClarifier {
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) clarifier: Option<Arc<dyn Clarifier>>,
    pub(crate) questions: Option<Questions>,
    pub(crate) events: Arc<TurnEvents>,
    pub(crate) redactor: Redactor,
    pub(crate) iteration: u32,
    pub(crate) cancellation: CancellationToken,
    /// The time of the answer is not that of the call.
    pub(crate) wait: Arc<ClientWait>,
    pub(crate) call_id: Arc<str>,
}

#[derive(Deserialize)]
struct Answer {
    answer: Option<Arc<str>>,
}

impl Clarifier for CallClarifier {
    fn clarify(&self, question: Clarification) -> BoxFuture<'static, ClarificationOutcome> {
        let asker = self.clone();
        Box::pin(async move {
            let _waiting = asker.wait.begin();
            let shown = |text: &str| -> Arc<str> { harmless(&asker.redactor.text(text)).into() };
            let options = question.options.iter().map(|option| shown(option));
            let question = Clarification::new(shown(&question.question)).options(options);
            asker.ask(&question).await
        })
    }
}

impl CallClarifier {
    async fn ask(&self, question: &Clarification) -> ClarificationOutcome {
        let mut cannot = Arc::from("no approver is configured");
        if let Some(approver) = &self.approver {
            match approver.clarify(question).await {
                ClarificationOutcome::NoPerson(reason) => cannot = reason,
                clarified => return clarified,
            }
        }
        if let Some(clarifier) = &self.clarifier {
            match clarifier.clarify(question.clone()).await {
                ClarificationOutcome::NoPerson(reason) => cannot = reason,
                clarified => return clarified,
            }
        }
        if self.questions.is_none() {
            return ClarificationOutcome::NoPerson(cannot);
        }
        let asking = QuestionContext {
            questions: self.questions.as_ref(),
            events: &self.events,
            redactor: &self.redactor,
            iteration: self.iteration,
            cancellation: &self.cancellation,
        };
        let asked = Question::new(Arc::clone(&question.question))
            .payload(json!({
                "kind": "clarification",
                "question": &*question.question,
                "options": question.options.iter().map(|option| &**option).collect::<Vec<_>>(),
                "call_id": &*self.call_id,
            }))
            .answer_schema(json!({
                "type": "object",
                "properties": { "answer": { "type": ["string", "null"] } },
                "required": ["answer"],
                "additionalProperties": false,
            }));
        match asking.ask(asked).await.map(serde_json::from_value::<Answer>) {
            Ok(Ok(Answer { answer: Some(answer) })) => ClarificationOutcome::Answered(answer),
            Ok(_) | Err(NotAnsweredError::Rejected { .. }) => ClarificationOutcome::Declined,
            Err(error) => ClarificationOutcome::NoPerson(error.to_string().into()),
        }
    }
}
