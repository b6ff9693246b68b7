//! Answers that are JSON of a schema.

use std::{future::Future, sync::Arc, time::Instant};

use serde_json::Value;
use toolcrib_core::{__internal::CompiledSchema, Attachments};

use crate::{
    agent::Agent,
    options::RunOptions,
    outcome::{EndReason, RunError, RunOutcome},
};

/// The schema of an answer, and the number of times that the model may try.
///
/// It is written into the user's message: the vendors' own structured output is not used, because
/// it excludes parts of JSON Schema and, with some vendors, tools.
#[derive(Clone)]
pub struct AnswerSchema {
    schema: Value,
    compiled: Arc<CompiledSchema>,
    check: Option<Arc<Check>>,
    attempts: u32,
}

type Check = dyn Fn(&Value) -> Result<(), String> + Send + Sync;

/// Why a JSON Schema cannot be used for answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schema of the answer cannot be enforced: {0}")]
pub struct AnswerSchemaError(Arc<str>);

/// The outcome of a run with an [`AnswerSchema`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StructuredOutcome {
    /// The outcome of the last turn, with the calls, iterations, usage and duration of all turns.
    pub outcome: RunOutcome,
    /// The answer; `None` if the run failed or no answer was valid.
    pub value: Option<Value>,
}

impl AnswerSchema {
    /// The default number of attempts, the first included.
    pub const DEFAULT_ATTEMPTS: u32 = 3;

    /// Compiles a JSON Schema for answers. It may not refer to other documents.
    ///
    /// # Errors
    /// [`AnswerSchemaError`] if it is not a schema, or validation would take too much work.
    pub fn new(schema: Value) -> Result<Self, AnswerSchemaError> {
        let compiled = Arc::new(CompiledSchema::new(&schema).map_err(AnswerSchemaError)?);
        Ok(Self { schema, compiled, check: None, attempts: Self::DEFAULT_ATTEMPTS })
    }

    /// Sets the number of attempts, the first included; at least 1. Default: 3.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// Adds a check of values that are valid for the schema. The model reads its error.
    #[must_use]
    pub fn check(
        mut self,
        check: impl Fn(&Value) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Arc::new(check));
        self
    }

    fn request(&self, message: &str) -> String {
        format!(
            "{message}\n\nAnswer with one JSON value and nothing else. It must be valid for this \
             JSON Schema:\n{}",
            self.schema
        )
    }

    /// The value of an answer, or its problems.
    fn read(&self, answer: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(unfenced(answer))
            .map_err(|error| format!("it is not one JSON value: {error}"))?;
        let problems = self.compiled.problems(&value, "value");
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        self.check.as_ref().map_or(Ok(()), |check| check(&value))?;
        Ok(value)
    }
}

toolcrib_core::__internal::debug_fields!(AnswerSchema { schema, attempts, .. });

impl Agent {
    /// Runs until the answer is JSON that is valid for a schema. If an answer is not, the model reads
    /// its problems and answers again, in another turn of the same conversation or session. Tools
    /// can be used in each turn; the timeout is that of all turns together. A `turn_id` and the tool
    /// choices apply to the first turn.
    ///
    /// After the last attempt the run fails with [`RunError::ANSWER_INVALID`].
    pub fn run_structured(
        &self,
        message: impl Into<Arc<str>>,
        options: impl Into<RunOptions>,
        schema: &AnswerSchema,
    ) -> impl Future<Output = StructuredOutcome> + Send {
        let (message, options) = (message.into(), options.into());
        let (agent, schema) = (self.clone(), schema.clone());
        async move { agent.attempts(&message, options, &schema).await }
    }

    async fn attempts(
        &self,
        message: &str,
        mut options: RunOptions,
        schema: &AnswerSchema,
    ) -> StructuredOutcome {
        let began = Instant::now();
        let timeout = options.turn_timeout.unwrap_or(self.settings().turn_timeout);
        let mut message = schema.request(message);
        let mut earlier: Option<RunOutcome> = None;
        let mut attempt = 1;
        loop {
            options.turn_timeout = Some(timeout.saturating_sub(began.elapsed()));
            let mut outcome = self.run(message, options.clone()).await;
            if let Some(earlier) = earlier.take() {
                outcome.add_earlier(earlier);
            }
            let Some(answer) = &outcome.answer else {
                return StructuredOutcome { outcome, value: None };
            };
            // The beginning of a number is a number: a cut is never a valid answer.
            let read = match outcome.end_reason {
                EndReason::CutOff => {
                    Err("it is cut off at the output limit; write less".to_owned())
                }
                _ => schema.read(answer),
            };
            let problem = match read {
                Ok(value) => return StructuredOutcome { outcome, value: Some(value) },
                Err(problem) => problem,
            };
            // At a limit of the run there is no further attempt.
            let may_repeat = matches!(outcome.end_reason, EndReason::Answered | EndReason::CutOff);
            if attempt >= schema.attempts || !may_repeat {
                let error =
                    format!("no answer of {attempt} was valid for the schema; the last: {problem}");
                outcome.error = Some(RunError::new(RunError::ANSWER_INVALID, error));
                (outcome.end_reason, outcome.answer) = (EndReason::Failed, None);
                return StructuredOutcome { outcome, value: None };
            }
            message = format!(
                "This answer is not valid: {problem}. Answer again, with one JSON value and nothing \
                 else."
            );
            if options.session.is_none() {
                options.history = outcome.messages.to_vec();
            }
            options.turn.turn_id = None;
            // The conversation contains them.
            options.turn.attachments = Attachments::default();
            options.tool_choices.clear();
            earlier = Some(outcome);
            attempt += 1;
        }
    }
}

/// The answer without the fence of a code block around it.
fn unfenced(answer: &str) -> &str {
    let answer = answer.trim();
    let inner = answer.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    // The first line names the language.
    inner.and_then(|inner| inner.split_once('\n')).map_or(answer, |(_, json)| json)
}
