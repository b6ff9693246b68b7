//! Asks a question and waits for its answer.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use tokio::{sync::oneshot, time::sleep};
use toolcrib_core::{
    __internal::{CompiledSchema, DEEPEST_JSON, dismantle, millis, nests_too_deep},
    CancellationToken, EventKind, TurnEvents,
};

use super::{NotAnsweredError, OpenQuestion, PendingQuestion, Question, Questions, Reply};
use crate::secrets::Redactor;

/// The turn and iteration that ask.
pub(crate) struct QuestionContext<'a> {
    pub(crate) questions: Option<&'a Questions>,
    pub(crate) events: &'a TurnEvents,
    pub(crate) redactor: &'a Redactor,
    pub(crate) iteration: u32,
    pub(crate) cancellation: &'a CancellationToken,
}

impl QuestionContext<'_> {
    /// Asks, and waits. An asked question is closed on every way out, including when this future is
    /// dropped.
    pub(crate) async fn ask(&self, question: Question) -> Result<Value, NotAnsweredError> {
        let Some(questions) = self.questions else { return Err(NotAnsweredError::NoQuestions) };
        if self.cancellation.is_cancelled() {
            return Err(NotAnsweredError::Aborted);
        }
        let timeout = question.timeout_ms.map(Duration::from_millis);
        let (mut asked, reply) = self.open(questions, question)?;
        let too_late = async {
            match timeout {
                Some(timeout) => sleep(timeout).await,
                None => pending().await,
            }
        };
        let (result, outcome) = tokio::select! {
            biased;
            reply = reply => match reply {
                Ok(Reply::Answered(answer)) => ("answered", Ok(answer)),
                Ok(Reply::Rejected(reason)) => ("rejected", Err(NotAnsweredError::Rejected { reason })),
                Ok(Reply::Aborted) | Err(_) => ("aborted", Err(NotAnsweredError::Aborted)),
            },
            () = self.cancellation.cancelled() => ("aborted", Err(NotAnsweredError::Aborted)),
            () = too_late => {
                let timeout = timeout.unwrap_or_default();
                ("timed_out", Err(NotAnsweredError::TimedOut { timeout }))
            }
        };
        asked.result = result;
        outcome
    }

    fn open(
        &self,
        questions: &Questions,
        question: Question,
    ) -> Result<(QuestionGuard<'_>, oneshot::Receiver<Reply>), NotAnsweredError> {
        let id = Arc::clone(&question.id);
        let invalid =
            |problem: Arc<str>| NotAnsweredError::Invalid { id: Arc::clone(&id), problem };
        if [Some(&question.payload), question.answer_schema.as_ref()]
            .into_iter()
            .flatten()
            .any(nests_too_deep)
        {
            dismantle(question.payload);
            question.answer_schema.into_iter().for_each(dismantle);
            let problem = format!("payload and schema nest at most {DEEPEST_JSON} levels deep");
            return Err(invalid(problem.into()));
        }
        let validator = match &question.answer_schema {
            Some(schema) => Some(Arc::new(CompiledSchema::new(schema).map_err(invalid)?)),
            None => None,
        };
        let question = Question {
            reason: self.redactor.text(&question.reason).into(),
            payload: self.redactor.json(question.payload),
            answer_schema: question.answer_schema.map(|schema| self.redactor.json(schema)),
            ..question
        };
        let asked_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let open = OpenQuestion {
            question: question.clone(),
            turn_id: Arc::clone(self.events.turn_id()),
            iteration: self.iteration,
            asked_at_ms: millis(asked_at),
        };
        let (reply, answer) = oneshot::channel();
        {
            let mut all = questions.lock();
            if all.iter().any(|open| open.open.question.id == id) {
                return Err(invalid("there is an open question with that id".into()));
            }
            all.push(PendingQuestion { open, validator, reply });
        }
        // From here on, every way out closes it.
        let asked =
            QuestionGuard { asking: self, questions: questions.clone(), id, result: "aborted" };
        // It is already in the list of open questions, so a listener can answer at once.
        let Question { id, reason, payload, answer_schema, timeout_ms } = question;
        self.events.emit(Some(self.iteration), || EventKind::QuestionAsked {
            id,
            reason,
            payload,
            answer_schema,
            timeout_ms,
        });
        Ok((asked, answer))
    }
}

/// An open question; closed on drop.
struct QuestionGuard<'a> {
    asking: &'a QuestionContext<'a>,
    questions: Questions,
    id: Arc<str>,
    result: &'static str,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        self.questions.forget(&self.id);
        self.asking.events.emit(Some(self.asking.iteration), || EventKind::QuestionClosed {
            id: Arc::clone(&self.id),
            result: self.result.into(),
        });
    }
}
