//! Questions to people: data that waits for an answer, and who gives it.

mod asking;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;
use toolcrib_core::{millis, nests_too_deep};
use uuid::Uuid;

pub(crate) use self::asking::Asking;
use crate::validators::Enforced;

/// What a person is to decide, as data. [`IterationContext::wait_for`] asks it.
///
/// Neighbour: an [`Approver`](toolcrib_core::Approver) decides on one call that a rule asks about; a
/// question may be about anything.
///
/// [`IterationContext::wait_for`]: crate::IterationContext::wait_for
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// What answers refer to; unique among those that are open.
    pub id: Arc<str>,
    /// What it is about, for people.
    pub reason: Arc<str>,
    /// What there is to decide on. Default: null.
    #[serde(default)]
    pub payload: Value,
    /// JSON Schema of the answer. Default: any will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_schema: Option<Value>,
    /// How long is waited, in milliseconds. Default: until the turn ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Question {
    /// A question with an id of its own.
    pub fn new(reason: impl Into<Arc<str>>) -> Self {
        Self {
            id: Uuid::now_v7().simple().to_string().into(),
            reason: reason.into(),
            payload: Value::Null,
            answer_schema: None,
            timeout_ms: None,
        }
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets what there is to decide on.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Value>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Sets which answers will do.
    #[must_use]
    pub fn answer_schema(mut self, schema: Value) -> Self {
        self.answer_schema = Some(schema);
        self
    }

    /// Sets how long is waited, in whole milliseconds.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = Some(millis(timeout));
        self
    }
}

/// A question that somebody waits with, as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// The question, redacted.
    #[serde(flatten)]
    pub question: Question,
    /// The run that waits.
    pub run_id: Arc<str>,
    /// The iteration of it, from 1.
    pub iteration: u32,
    /// When it was asked, in milliseconds since 1970. With
    /// [`timeout_ms`](Question::timeout_ms), this is the deadline.
    pub asked_at_ms: u64,
}

/// Where people are asked and answer: a host keeps one, gives it to
/// [turns](crate::TurnOptions::questions), shows what is [open](Self::open), and answers. Cloning shares
/// it. `question.asked` says when there is a new one.
///
/// Calls that a rule wants asked about come here too, on an engine without an
/// [`Approver`](toolcrib_core::Approver).
///
/// ```
/// use serde_json::json;
/// use toolcrib_engine::{Engine, IterationContext, Question, Questions, TurnOptions, TurnRunner};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let questions = Questions::new();
/// let options = TurnOptions::default().questions(questions.clone());
/// // A person, who answers at once.
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
pub struct Questions(Arc<Mutex<Vec<Open>>>);

struct Open {
    open: OpenQuestion,
    validator: Option<Arc<Enforced>>,
    reply: oneshot::Sender<Reply>,
}

/// What became of a question.
enum Reply {
    Answered(Value),
    Rejected(String),
    Aborted,
}

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnswered {
    /// Who was asked will not answer.
    #[error("the question was rejected: {reason}")]
    Rejected {
        /// Why.
        reason: String,
    },
    /// It was taken back, or the turn was cancelled.
    #[error("the question was aborted")]
    Aborted,
    /// Nobody answered in time.
    #[error("nobody answered within {timeout:?}")]
    TimedOut {
        /// How long was waited.
        timeout: Duration,
    },
    /// The turn was given nobody to ask.
    #[error("there is nobody to ask; give the turn `Questions` with `TurnOptions::questions`")]
    NobodyToAsk,
    /// It cannot be asked as it is.
    #[error("question `{id}` cannot be asked: {problem}")]
    Invalid {
        /// The question.
        id: Arc<str>,
        /// What to change.
        problem: Arc<str>,
    },
}

/// An answer that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Nobody waits for it: it was never asked, or it is closed.
    #[error("there is no open question `{id}`")]
    NotOpen {
        /// What was answered.
        id: Arc<str>,
    },
    /// It does not fit the schema of answers. The question stays open.
    #[error("the answer to question `{id}` does not fit: {}; answer again", problems.join("; "))]
    Invalid {
        /// The question.
        id: Arc<str>,
        /// What is wrong with it, without its values.
        problems: Vec<String>,
    },
}

impl Questions {
    /// Nothing is open.
    pub fn new() -> Self {
        Self::default()
    }

    /// All that somebody waits with, oldest first.
    pub fn open(&self) -> Vec<OpenQuestion> {
        self.lock().iter().map(|open| open.open.clone()).collect()
    }

    /// Answers a question, and closes it.
    ///
    /// # Errors
    /// [`AnswerError`]; a question with an answer that does not fit stays open.
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

    /// Says that there will be no answer, and why. The reason is for whoever asked.
    ///
    /// # Errors
    /// [`AnswerError::NotOpen`].
    pub fn reject(&self, id: &str, reason: impl Into<String>) -> Result<(), AnswerError> {
        self.close(id, Reply::Rejected(reason.into()))
    }

    /// Takes a question back, as cancelling the turn does.
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

    fn take(&self, id: &str) -> Option<Open> {
        let mut open = self.lock();
        let at = open.iter().position(|open| *open.open.question.id == *id)?;
        Some(open.remove(at))
    }

    /// Takes out what nobody waits for any more, if it is still there.
    fn forget(&self, id: &str) {
        self.lock().retain(|open| *open.open.question.id != *id || !open.reply.is_closed());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Questions").field(&self.open()).finish()
    }
}
