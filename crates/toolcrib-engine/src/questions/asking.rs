//! A question on its way to a person, and back.

use std::{
    future::pending,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use tokio::{sync::oneshot, time::sleep};
use toolcrib_core::{
    CancellationToken, DEEPEST_JSON, EventKind, RunEvents, dismantle, millis, nests_too_deep,
};

use super::{NotAnswered, Open, OpenQuestion, Question, Questions, Reply};
use crate::{redactor::Redactor, validators::Enforced};

/// Who asks, in which iteration of which turn.
pub(crate) struct Asking<'a> {
    pub(crate) questions: Option<&'a Questions>,
    pub(crate) events: &'a RunEvents,
    pub(crate) redactor: &'a Redactor,
    pub(crate) iteration: u32,
    pub(crate) cancellation: &'a CancellationToken,
}

impl Asking<'_> {
    /// Asks, and waits. A question that was asked is closed on every way out, this one being dropped
    /// included.
    pub(crate) async fn ask(&self, question: Question) -> Result<Value, NotAnswered> {
        let Some(questions) = self.questions else { return Err(NotAnswered::NobodyToAsk) };
        if self.cancellation.is_cancelled() {
            return Err(NotAnswered::Aborted);
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
                Ok(Reply::Rejected(reason)) => ("rejected", Err(NotAnswered::Rejected { reason })),
                Ok(Reply::Aborted) | Err(_) => ("aborted", Err(NotAnswered::Aborted)),
            },
            () = self.cancellation.cancelled() => ("aborted", Err(NotAnswered::Aborted)),
            () = too_late => {
                let timeout = timeout.unwrap_or_default();
                ("timed_out", Err(NotAnswered::TimedOut { timeout }))
            }
        };
        asked.result = result;
        outcome
    }

    fn open(
        &self,
        questions: &Questions,
        question: Question,
    ) -> Result<(Asked<'_>, oneshot::Receiver<Reply>), NotAnswered> {
        let id = Arc::clone(&question.id);
        let invalid = |problem: Arc<str>| NotAnswered::Invalid { id: Arc::clone(&id), problem };
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
            Some(schema) => Some(Arc::new(Enforced::new(schema).map_err(invalid)?)),
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
            run_id: Arc::clone(self.events.run_id()),
            iteration: self.iteration,
            asked_at_ms: millis(asked_at),
        };
        let (reply, answer) = oneshot::channel();
        {
            let mut all = questions.lock();
            if all.iter().any(|open| open.open.question.id == id) {
                return Err(invalid("there is an open question with that id".into()));
            }
            all.push(Open { open, validator, reply });
        }
        // From here on, it is closed.
        let asked = Asked { asking: self, questions: questions.clone(), id, result: "aborted" };
        // It stands among the open ones, so that a listener can answer at once.
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

/// A question that was asked.
struct Asked<'a> {
    asking: &'a Asking<'a>,
    questions: Questions,
    id: Arc<str>,
    result: &'static str,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.questions.forget(&self.id);
        self.asking.events.emit(Some(self.asking.iteration), || EventKind::QuestionClosed {
            id: Arc::clone(&self.id),
            result: self.result.into(),
        });
    }
}
