//! What a tool body gives back.

use std::{error::Error, fmt};

use serde::Serialize;
use serde_json::Value;

/// The stable class of a failed call. Ours is the seeds' list plus what a bounded call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The model produced arguments that fail validation, or no JSON at all.
    #[serde(rename = "input_invalid")]
    InputInvalid,
    /// Not there for this run: not offered, unknown, or a key or program is missing.
    #[serde(rename = "not_available")]
    NotAvailable,
    /// The tool ran and failed.
    #[serde(rename = "execution_failed")]
    ExecutionFailed,
    /// A file changed since it was read; the write was refused.
    #[serde(rename = "STALE_WRITE")]
    StaleWrite,
    /// There, but refused by policy, a hook or a person.
    #[serde(rename = "denied")]
    Denied,
    /// The call's deadline passed.
    #[serde(rename = "timeout")]
    Timeout,
    /// The run was cancelled.
    #[serde(rename = "cancelled")]
    Cancelled,
    /// The call was cut off and its effect may have happened. It is never repeated by itself.
    #[serde(rename = "outcome_unknown")]
    OutcomeUnknown,
}

impl ErrorCode {
    /// The code as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InputInvalid => "input_invalid",
            Self::NotAvailable => "not_available",
            Self::ExecutionFailed => "execution_failed",
            Self::StaleWrite => "STALE_WRITE",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::OutcomeUnknown => "outcome_unknown",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a successful call gives back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// One readable text; always there, so that a model can react without parsing.
    pub value: String,
    /// The same answer as data, for programs.
    pub structured: Option<Value>,
    /// What the call cost, in US dollars.
    pub cost_usd: Option<f64>,
}

impl ToolOutput {
    /// A text.
    pub fn text(value: impl Into<String>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }

    /// Data; its compact JSON is the text, until [`ToolOutput::value`] is set.
    pub fn json(structured: Value) -> Self {
        Self { value: structured.to_string(), structured: Some(structured), cost_usd: None }
    }

    /// Adds the answer as data.
    #[must_use]
    pub fn structured(mut self, structured: impl Into<Value>) -> Self {
        self.structured = Some(structured.into());
        self
    }

    /// Says what the call cost, in US dollars.
    #[must_use]
    pub fn cost(mut self, usd: f64) -> Self {
        self.cost_usd = Some(usd);
        self
    }
}

/// A failed call, with one text for the model and another for the operator.
///
/// Like `anyhow::Error` it is no [`std::error::Error`] itself, so that `?` turns any error into
/// one: the error's own text goes to the model, its cause chain to the operator.
pub struct ToolError {
    /// The stable class.
    pub code: ErrorCode,
    /// What the model reads: short, says what to do next, holds no secret.
    pub message: String,
    /// What only the operator sees.
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// A failure of a class, with the model's text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), source: None }
    }

    /// A failure at run time.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ExecutionFailed, message)
    }

    /// Arguments that the tool itself refuses.
    pub fn input_invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InputInvalid, message)
    }

    /// Adds the cause, for the operator only.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The cause chain as the operator reads it: each cause once, outermost first.
    pub fn cause_chain(&self) -> Option<String> {
        let mut chain = String::new();
        let mut next: Option<&(dyn Error + 'static)> =
            self.source.as_deref().map(|source| source as _);
        while let Some(error) = next {
            if !chain.is_empty() {
                chain.push_str(": ");
            }
            chain.push_str(&error.to_string());
            next = error.source();
        }
        (!chain.is_empty()).then_some(chain)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        self.cause_chain().map_or(Ok(()), |chain| write!(f, " (caused by: {chain})"))
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self {
            code: ErrorCode::ExecutionFailed,
            message: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}

/// Whatever a tool's function may return.
pub trait IntoToolOutput {
    /// The output, or the failure.
    ///
    /// # Errors
    /// The function's own failure.
    fn into_tool_output(self) -> Result<ToolOutput, ToolError>;
}

impl IntoToolOutput for ToolOutput {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for String {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for &str {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoToolOutput for Value {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::json(self))
    }
}

impl<T: IntoToolOutput, E: Into<ToolError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        self.map_err(Into::into)?.into_tool_output()
    }
}
