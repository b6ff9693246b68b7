//! Answers as values of a Rust type.

use std::{future::Future, sync::Arc};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolcrib_agent::{Agent, AnswerSchema, RunError, RunOptions, RunOutcome};

use crate::__private::schema;

/// A typed answer, and the outcome of its run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The answer.
    pub value: T,
    /// The run, with the calls and the usage of all attempts.
    pub outcome: RunOutcome,
}

/// Runs of an [`Agent`] whose answer is a value of a type.
///
/// ```
/// use toolcrib::{models::ScriptedModel, prelude::*};
///
/// #[derive(serde::Deserialize, JsonSchema)]
/// struct Refund {
///     /// The order's number.
///     order: u32,
///     cents: u32,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::from_toml("script.toml", r#"
///     [[rule]]
///     text = '{"order": 1042, "cents": 12900}'
/// "#)?;
/// let agent = Agent::builder().model(model).build()?;
/// let refund = agent.run_typed::<Refund>("What was refunded?", TurnOptions::default()).await?;
/// assert_eq!((refund.value.order, refund.value.cents), (1042, 12900));
/// # Ok(())
/// # }
/// ```
pub trait RunTyped {
    /// Runs until the answer is JSON that `T` can be deserialized from, in at most
    /// [three](AnswerSchema::DEFAULT_ATTEMPTS) attempts; see [`Agent::run_structured`], which takes a
    /// schema and the number of attempts.
    ///
    /// # Errors
    /// The run's own error; [`RunError::ANSWER_INVALID`] after the last attempt;
    /// [`RunError::TURN_FAILED`] if the schema of `T` cannot be enforced.
    fn run_typed<T: DeserializeOwned + JsonSchema + Send>(
        &self,
        message: impl Into<Arc<str>> + Send,
        options: impl Into<RunOptions> + Send,
    ) -> impl Future<Output = Result<Typed<T>, RunError>> + Send;
}

impl RunTyped for Agent {
    fn run_typed<T: DeserializeOwned + JsonSchema + Send>(
        &self,
        message: impl Into<Arc<str>> + Send,
        options: impl Into<RunOptions> + Send,
    ) -> impl Future<Output = Result<Typed<T>, RunError>> + Send {
        let (message, options) = (message.into(), options.into());
        async move {
            let invalid = |error: String| RunError::new(RunError::ANSWER_INVALID, error);
            let fits = |value: &serde_json::Value| {
                T::deserialize(value).map(drop).map_err(|error| error.to_string())
            };
            let schema = AnswerSchema::new(schema::<T>())
                .map_err(|error| RunError::new(RunError::TURN_FAILED, error.to_string()))?
                .check(fits);
            let structured = self.run_structured(message, options, &schema).await;
            match structured.value {
                Some(value) => Ok(Typed {
                    value: T::deserialize(value).map_err(|error| invalid(error.to_string()))?,
                    outcome: structured.outcome,
                }),
                None => match structured.outcome.into_answer() {
                    Err(error) => Err(error),
                    Ok(_) => Err(invalid("the run has no value".to_owned())),
                },
            }
        }
    }
}
