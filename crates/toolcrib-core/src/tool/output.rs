//! Return values of a tool body.

use std::{error::Error, fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::text_origin::TextOrigin;
use crate::messages::block::ContentBlock;

/// The stable error code of a failed call: the seeds' list plus codes for calls with limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The model's arguments fail validation, or are not JSON.
    #[serde(rename = "input_invalid")]
    InputInvalid,
    /// Not available in this run: not offered, unknown, or a key or program is missing.
    #[serde(rename = "not_available")]
    NotAvailable,
    /// The tool ran and failed.
    #[serde(rename = "execution_failed")]
    ExecutionFailed,
    /// A file changed since it was read; the write was refused.
    #[serde(rename = "STALE_WRITE")]
    StaleWrite,
    /// Available, but denied by policy, a hook or a person.
    #[serde(rename = "denied")]
    Denied,
    /// The call's deadline passed.
    #[serde(rename = "timeout")]
    Timeout,
    /// The run was cancelled.
    #[serde(rename = "cancelled")]
    Cancelled,
    /// The call was cut off and its effect may have happened. It is never retried automatically.
    #[serde(rename = "outcome_unknown")]
    OutcomeUnknown,
    /// A person has to approve the call first. It was not made, and waits in a store.
    #[serde(rename = "awaiting_approval")]
    AwaitingApproval,
}

impl ErrorCode {
    /// Every code, in the order of its declaration.
    pub const ALL: [Self; 9] = [
        Self::InputInvalid,
        Self::NotAvailable,
        Self::ExecutionFailed,
        Self::StaleWrite,
        Self::Denied,
        Self::Timeout,
        Self::Cancelled,
        Self::OutcomeUnknown,
        Self::AwaitingApproval,
    ];

    /// The code as written in JSON.
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
            Self::AwaitingApproval => "awaiting_approval",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The output of a successful call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// Readable text; always set, so that a model can react without parsing.
    pub value: String,
    /// The same result as data, for programs.
    pub structured: Option<Value>,
    /// The cost of the call in US dollars.
    pub cost_usd: Option<f64>,
    /// Non-text parts: images, audio, resources, links.
    pub blocks: Vec<ContentBlock>,
    /// The bytes from which the text was made, if it was trimmed or explained for the model. An
    /// artifact of this result contains these bytes, without secrets, instead of the text. Empty
    /// bytes mean that [`ArtifactPolicy::Always`](crate::ArtifactPolicy::Always) has nothing to
    /// keep. Code that changes the text must clear this field.
    pub original: Option<Arc<[u8]>>,
    /// Metadata of a protocol's result, such as MCP's `_meta`. Clients of a gateway receive it;
    /// models do not.
    pub meta: Option<Box<Map<String, Value>>>,
    /// Whether the text is content of an unknown author, though the tool's results usually are not.
    pub untrusted: bool,
    /// Where the text is from, if it is untrusted. Default: that of the
    /// [tool](crate::ToolBuilder::project_text).
    pub text_origin: TextOrigin,
}

impl ToolOutput {
    /// An output that consists of a text.
    pub fn text(value: impl Into<String>) -> Self {
        Self { value: value.into(), ..Self::default() }
    }

    /// A data output; its compact JSON is the text, until [`ToolOutput::value`] is set.
    pub fn json(structured: Value) -> Self {
        Self { value: structured.to_string(), structured: Some(structured), ..Self::default() }
    }

    /// A partial success: the items that were done, and the failed ones with their reasons. The
    /// model reads both and can continue, which it could not after an error.
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

    /// Adds a non-text part.
    #[must_use]
    pub fn block(mut self, block: ContentBlock) -> Self {
        self.blocks.push(block);
        self
    }

    /// Sets the structured data.
    #[must_use]
    pub fn structured(mut self, structured: impl Into<Value>) -> Self {
        self.structured = Some(structured.into());
        self
    }

    /// Sets the original bytes, to be kept instead of the text.
    #[must_use]
    pub fn original(mut self, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.original = Some(bytes.into());
        self
    }

    /// Marks the text as content of an unknown author: it is fenced like that of an
    /// [untrusted](crate::ToolBuilder::untrusted) tool.
    #[must_use]
    pub fn untrusted(mut self) -> Self {
        self.untrusted = true;
        self
    }

    /// Sets where the text is from, if it is untrusted.
    #[must_use]
    pub fn text_origin(mut self, origin: TextOrigin) -> Self {
        self.text_origin = origin;
        self
    }

    /// Sets the cost of the call in US dollars.
    #[must_use]
    pub fn cost(mut self, usd: f64) -> Self {
        self.cost_usd = Some(usd);
        self
    }
}

/// A failed call, with separate texts for the model and for the operator.
///
/// Like `anyhow::Error` it does not implement [`std::error::Error`], so that `?` converts any
/// error: the error's own text goes to the model, its cause chain to the operator.
pub struct ToolError {
    /// The stable error code.
    pub code: ErrorCode,
    /// The model's text: short, says what to do next, contains no secrets.
    pub message: String,
    /// The cause, visible to the operator only.
    pub source: Option<Box<dyn Error + Send + Sync>>,
    /// The failure's data and metadata, and its message with blocks: with blocks, its `value` and
    /// the blocks replace the message, for models and clients, as in a success.
    pub details: Option<Box<ToolOutput>>,
}

impl ToolError {
    /// A failure with a code and the model's text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), source: None, details: None }
    }

    /// A failure with code `execution_failed`.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::ExecutionFailed, message)
    }

    /// The error of a body that was cancelled before it had any effect.
    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorCode::Cancelled, "the call was cancelled")
    }

    /// Arguments that the tool itself rejects.
    pub fn input_invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InputInvalid, message)
    }

    /// A missing prerequisite that only the operator can provide. `what` is its kind, such as
    /// `a credential`; its name belongs in the cause.
    pub fn not_set_up(what: &str) -> Self {
        Self::new(
            ErrorCode::NotAvailable,
            format!(
                "{what} required by this tool is not configured; its operator must configure it"
            ),
        )
    }

    /// Adds the cause, for the operator only.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Adds blocks, data and metadata.
    #[must_use]
    pub fn details(mut self, details: ToolOutput) -> Self {
        self.details = Some(details.into());
        self
    }

    /// The cause chain for the operator: each cause once, outermost first.
    pub fn cause_chain(&self) -> Option<String> {
        let mut chain = String::new();
        let mut next: Option<&(dyn Error + 'static)> =
            self.source.as_deref().map(|source| source as _);
        while let Some(error) = next {
            let text = error.to_string();
            // Many errors already include their cause's text.
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
            details: None,
        }
    }
}

/// A successful output: `ok("refunded").structured(data).cost(0.02)`.
pub fn ok(value: impl Into<String>) -> ToolOutput {
    ToolOutput::text(value)
}

/// A failure with code `execution_failed` and the model's text:
/// `return Err(err("there is no such order"))`. For another code, use [`ToolError::new`].
pub fn err(message: impl Into<String>) -> ToolError {
    ToolError::failed(message)
}

/// Return types of a tool's function: text, an output, blocks, data, nothing, or a `Result` of
/// these with any error. Other serializable values are wrapped in [`Json`](crate::Json), which
/// `#[tool]` does automatically.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "not a valid return type of a tool",
    note = "return a text, a `ToolOutput`, a `Result` of these, or a serializable value as \
            `Json(value)`"
)]
pub trait IntoToolOutput {
    /// Converts into an output or a failure.
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
