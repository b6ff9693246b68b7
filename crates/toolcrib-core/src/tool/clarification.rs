//! Questions of a model to the person that it works for.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;

/// A question of a model to the person that it works for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Clarification {
    /// The question, without secrets and control characters.
    pub question: Arc<str>,
    /// The suggested answers; another answer is possible.
    pub options: Vec<Arc<str>>,
}

impl Clarification {
    /// A question without suggested answers.
    pub fn new(question: impl Into<Arc<str>>) -> Self {
        Self { question: question.into(), options: Vec::new() }
    }

    /// Sets the suggested answers.
    #[must_use]
    pub fn options<T: Into<Arc<str>>>(mut self, options: impl IntoIterator<Item = T>) -> Self {
        self.options = options.into_iter().map(Into::into).collect();
        self
    }
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClarificationOutcome {
    /// The person's answer.
    Answered(Arc<str>),
    /// The person does not answer it.
    Declined,
    /// No person can be asked; with the reason, for the operator.
    NoPerson(Arc<str>),
}

/// Asks the person of a turn; a body has it from
/// [`ToolContext::clarifier`](crate::ToolContext::clarifier).
pub trait Clarifier: Send + Sync + 'static {
    /// Asks, and waits. Dropping the future ends the question.
    fn clarify(&self, question: Clarification) -> BoxFuture<'static, ClarificationOutcome>;
}

impl fmt::Debug for dyn Clarifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clarifier")
    }
}
