//! Questions to people: data that waits for an answer.

mod asking;

use std::{sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use toolcrib_core::__internal::{CompiledSchema, millis, nests_too_deep};
use uuid::Uuid;

pub(crate) use self::asking::QuestionContext;

/// A decision for a person, as data. [`IterationContext::wait_for`] asks it.
///
/// Neighbor: an [`Approver`](toolcrib_core::Approver) decides on one call that a rule wants
/// approved; a question may be about anything.
///
/// [`IterationContext::wait_for`]: crate::IterationContext::wait_for
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The id for answers; unique among the open questions.
    pub id: Arc<str>,
    /// The subject, for people.
    pub reason: Arc<str>,
    /// The data to decide on. Default: null.
    #[serde(default)]
    pub payload: Value,
    /// JSON Schema of the answer. Default: any answer is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
    /// Timeout in milliseconds. Default: until the turn ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Question {
    /// A question with a generated id.
    pub fn new(reason: impl Into<Arc<str>>) -> Self {
        Self {
            id: Uuid::now_v7().simple().to_string().into(),
            reason: reason.into(),
            payload: Value::Null,
            answer_schema: None,
            timeout_ms: None,
        }
    }

    /// Sets the id of the question.
    #[must_use]
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets the data to decide on.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Value>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets the JSON Schema of the answer.
    #[must_use]
    pub fn answer_schema(mut self, schema: Value) -> Self {
        self.answer_schema = Some(schema);
        self
    }

    /// Sets the timeout, in whole milliseconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = Some(millis(timeout));
        self
    }
}

/// A question that waits for an answer, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// The question, redacted.
    #[serde(flatten)]
    pub question: Question,
    /// The turn that waits.
    pub turn_id: Arc<str>,
    /// Its iteration, from 1.
    pub iteration: u32,
    /// When it was asked, in milliseconds since 1970. With
    /// [`timeout_ms`](Question::timeout_ms), this is the deadline.
    pub asked_at_ms: u64,
}

/// A list of questions that people answer: a host creates one, passes it to
/// [turns](crate::TurnOptions::questions), shows the [open](Self::open) ones, and answers. Cloning
/// shares it. `question.asked` reports a new one.
///
/// On an engine without an [`Approver`](toolcrib_core::Approver), calls that a rule wants approved
/// are asked here too.
///
/// ```
/// use serde_json::json;
/// use toolcrib_engine::{Engine, IterationContext, Question, Questions, TurnOptions, TurnRunner};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let questions = Questions::new();
/// let options = TurnOptions::default().questions(questions.clone());
/// // A client that answers at once.
/// options.events.on("question.asked", move |_| {
///     for open in questions.open() {
///         assert!(questions.answer(&open.question.id, json!("maybe")).is_err(), "it stays open");
///         questions.answer(&open.question.id, json!(true)).ok();
///     }
/// })?;
/// let runner = TurnRunner::new(Engine::builder().build()?);
/// runner
///     .run(options, |cx: IterationContext| async move {
///         let question = Question::new("Send it?").answer_schema(json!({ "type": "boolean" }));
///         assert_eq!(cx.wait_for(question).await?, json!(true));
///         cx.ack()?;
///         Ok(())
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Questions(Arc<Mutex<Vec<PendingQuestion>>>);

struct PendingQuestion {
    open: OpenQuestion,
    validator: Option<Arc<CompiledSchema>>,
    reply: oneshot::Sender<Reply>,
}

/// The outcome of a question.
enum Reply {
    Answered(Value),
    Rejected(String),
    Aborted,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnsweredError {
    /// The client rejected it.
    #[error("the question was rejected: {reason}")]
    Rejected {
        /// The reason.
        reason: String,
    },
    /// It was aborted, or the turn was cancelled.
    #[error("the question was aborted")]
    Aborted,
    /// No answer arrived in time.
    #[error("no answer within {timeout:?}")]
    TimedOut {
        /// The timeout.
        timeout: Duration,
    },
    /// The turn has no [`Questions`].
    #[error("the turn has no `Questions`; set them with `TurnOptions::questions`")]
    NoQuestions,
    /// The question is not valid.
    #[error("question `{id}` cannot be asked: {problem}")]
    Invalid {
        /// The question.
        id: Arc<str>,
        /// The problem to fix.
        problem: Arc<str>,
    },
}

/// An answer that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// No such question is open: it was never asked, or it is closed.
    #[error("there is no open question `{id}`")]
    NotOpen {
        /// The id of the answer.
        id: Arc<str>,
    },
    /// It does not match the answer schema. The question stays open.
    #[error("the answer to question `{id}` does not match its schema: {}; answer again", problems.join("; "))]
    Invalid {
        /// The question.
        id: Arc<str>,
        /// The problems, without the answer's values.
        problems: Vec<String>,
    },
}

impl Questions {
    /// A list without questions.
    pub fn new() -> Self {
        Self::default()
    }

    /// All open questions, oldest first.
    pub fn open(&self) -> Vec<OpenQuestion> {
        self.lock().iter().map(|open| open.open.clone()).collect()
    }

    /// Answers a question, and closes it.
    ///
    /// # Errors
    /// [`AnswerError`]; a question with an invalid answer stays open.
    pub fn answer(&self, id: &str, answer: Value) -> Result<(), AnswerError> {
        let not_open = || AnswerError::NotOpen { id: id.into() };
        let validator = {
            let open = self.lock();
            let open = open.iter().find(|open| *open.open.question.id == *id);
            open.ok_or_else(not_open)?.validator.clone()
        };
        let problems = if nests_too_deep(&answer) {
            vec!["it nests too deep".to_owned()]
        } else {
            validator.map(|fits| fits.problems_at_once(&answer, "field")).unwrap_or_default()
        };
        if !problems.is_empty() {
            return Err(AnswerError::Invalid { id: id.into(), problems });
        }
        self.close(id, Reply::Answered(answer))
    }

    /// Rejects a question, with a reason for the asker.
    ///
    /// # Errors
    /// [`AnswerError::NotOpen`].
    pub fn reject(&self, id: &str, reason: impl Into<String>) -> Result<(), AnswerError> {
        self.close(id, Reply::Rejected(reason.into()))
    }

    /// Aborts a question, as cancelling the turn does.
    ///
    /// # Errors
    /// [`AnswerError::NotOpen`].
    pub fn abort(&self, id: &str) -> Result<(), AnswerError> {
        self.close(id, Reply::Aborted)
    }

    fn close(&self, id: &str, reply: Reply) -> Result<(), AnswerError> {
        let taken = self.take(id).and_then(|open| open.reply.send(reply).ok());
        taken.ok_or_else(|| AnswerError::NotOpen { id: id.into() })
    }

    fn take(&self, id: &str) -> Option<PendingQuestion> {
        let mut open = self.lock();
        let at = open.iter().position(|open| *open.open.question.id == *id)?;
        Some(open.remove(at))
    }

    /// Removes a question that has no waiting asker, if it is still there.
    fn forget(&self, id: &str) {
        self.lock().retain(|open| *open.open.question.id != *id || !open.reply.is_closed());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PendingQuestion>> {
        self.0.lock()
    }
}

toolcrib_core::__internal::debug_fields!(Questions, questions, questions.open());
