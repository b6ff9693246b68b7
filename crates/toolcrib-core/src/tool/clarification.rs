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
/// [`ToolContext::clarifier`](crate::ToolContext::clarifier). [`call_clarifier`] makes one of a function;
/// an [`Arc`] of one is a clarifier, too.
pub trait Clarifier: Send + Sync + 'static {
    /// Asks, and waits. Dropping the future ends the question.
    fn clarify(&self, question: Clarification) -> BoxFuture<'static, ClarificationOutcome>;
}

impl<C: Clarifier + ?Sized> Clarifier for Arc<C> {
    fn clarify(&self, question: Clarification) -> BoxFuture<'static, ClarificationOutcome> {
        (**self).clarify(question)
    }
}

/// Makes a [`Clarifier`] of a function that receives the question and returns a future.
///
/// ```
/// use toolcrib_core::{ClarificationOutcome, call_clarifier};
///
/// let clarifier = call_clarifier(|question| async move {
///     match question.options.first() {
///         Some(first) => ClarificationOutcome::Answered(first.clone()),
///         None => ClarificationOutcome::Declined,
///     }
/// });
/// # let _ = clarifier;
/// ```
pub fn call_clarifier<F, Fut>(answer: F) -> impl Clarifier
where
    F: Fn(Clarification) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ClarificationOutcome> + Send + 'static,
{
    FnClarifier(answer)
}

struct FnClarifier<F>(F);

impl<F, Fut> Clarifier for FnClarifier<F>
where
    F: Fn(Clarification) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ClarificationOutcome> + Send + 'static,
{
    fn clarify(&self, question: Clarification) -> BoxFuture<'static, ClarificationOutcome> {
        Box::pin((self.0)(question))
    }
}

impl fmt::Debug for dyn Clarifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clarifier")
    }
}
