//! What a tool body gives back.

use std::{error::Error, fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json};

use crate::block::ContentBlock;

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
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::InputInvalid,
        Self::NotAvailable,
        Self::ExecutionFailed,
        Self::StaleWrite,
        Self::Denied,
        Self::Timeout,
        Self::Cancelled,
        Self::OutcomeUnknown,
    ];

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
    /// What is not plain text: images, sounds, resources, links.
    pub blocks: Vec<ContentBlock>,
    /// What the text was made of, byte for byte, where it was trimmed or explained for the model: an
    /// artifact of this result holds these bytes, without secrets, in the place of the text. If they
    /// are empty, there is nothing that [`Spooling::Always`](crate::Spooling::Always) could keep.
    /// Whoever changes the text lets go of it.
    pub original: Option<Arc<[u8]>>,
}

impl ToolOutput {
    /// A text.
    pub fn text(value: impl Into<String>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }

    /// Data; its compact JSON is the text, until [`ToolOutput::value`] is set.
    pub fn json(structured: Value) -> Self {
        Self { value: structured.to_string(), structured: Some(structured), ..Self::default() }
    }

    /// An answer of which only a part succeeded: what was done, and what was not, each with why.
    /// The model reads both and can go on from there, which it could not after an error.
    ///
    /// # Errors
    /// `execution_failed` when nothing was done and something failed.
    ///
    /// ```
    /// use toolcrib_core::ToolOutput;
    ///
    /// let output = ToolOutput::partial(["a.txt", "b.txt"], [("c.txt", "no such file")])?;
    /// assert_eq!(output.value, "2 done: a.txt, b.txt\n1 failed:\n- c.txt: no such file");
    /// # Ok::<(), toolcrib_core::ToolError>(())
    /// ```
    pub fn partial<D, F, W>(
        done: impl IntoIterator<Item = D>,
        failed: impl IntoIterator<Item = (F, W)>,
    ) -> Result<Self, ToolError>
    where
        D: fmt::Display,
        F: fmt::Display,
        W: fmt::Display,
    {
        let done: Vec<_> = done.into_iter().map(|item| item.to_string()).collect();
        let failed: Vec<_> =
            failed.into_iter().map(|(item, why)| (item.to_string(), why.to_string())).collect();
        let mut value = match done.as_slice() {
            [] => "nothing done".to_owned(),
            items => format!("{} done: {}", items.len(), items.join(", ")),
        };
        if !failed.is_empty() {
            value += &format!("\n{} failed:", failed.len());
            for (item, why) in &failed {
                value += &format!("\n- {item}: {why}");
            }
        }
        if done.is_empty() && !failed.is_empty() {
            return Err(ToolError::failed(value));
        }
        let failed: Vec<_> =
            failed.into_iter().map(|(item, why)| json!({ "item": item, "why": why })).collect();
        Ok(Self::text(value).structured(json!({ "done": done, "failed": failed })))
    }

    /// Adds what is not plain text.
    #[must_use]
    pub fn block(mut self, block: ContentBlock) -> Self {
        self.blocks.push(block);
        self
    }

    /// Adds the answer as data.
    #[must_use]
    pub fn structured(mut self, structured: impl Into<Value>) -> Self {
        self.structured = Some(structured.into());
        self
    }

    /// Says what the text was made of, to be kept in its place.
    #[must_use]
    pub fn original(mut self, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.original = Some(bytes.into());
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

    /// Something that the tool needs is missing, and only its operator can provide it. `what` is
    /// its kind, such as `a credential`: what it is called belongs into the cause.
    pub fn not_set_up(what: &str) -> Self {
        Self::new(
            ErrorCode::NotAvailable,
            format!("{what} that this tool needs is not set up; its operator has to do that"),
        )
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
            let text = error.to_string();
            // Many an error says its cause itself.
            if !chain.contains(&text) {
                if !chain.is_empty() {
                    chain.push_str(": ");
                }
                chain.push_str(&text);
            }
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

/// A successful answer: `ok("refunded").structured(data).cost(0.02)`.
pub fn ok(value: impl Into<String>) -> ToolOutput {
    ToolOutput::text(value)
}

/// A failure at run time, with the model's text: `return Err(err("there is no such order"))`. For
/// another class, [`ToolError::new`].
pub fn err(message: impl Into<String>) -> ToolError {
    ToolError::failed(message)
}

/// Whatever a tool's function may return: text, an output, blocks, data, nothing, or a `Result` of
/// these with any error. Other serialisable values go through [`Json`](crate::Json), which
/// `#[tool]` adds by itself.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not something that a tool can return",
    note = "return a text, a `ToolOutput`, a `Result` of these, or a serialisable value as \
            `Json(value)`"
)]
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

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

impl IntoToolOutput for ContentBlock {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default().block(self))
    }
}

impl IntoToolOutput for Vec<ContentBlock> {
    fn into_tool_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput { blocks: self, ..ToolOutput::default() })
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
