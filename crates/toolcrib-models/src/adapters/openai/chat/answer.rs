//! Assembles events into a response.

use serde_json::Value;
use toolcrib_core::{ModelError, ModelErrorClass, StopReason, Usage};

use super::{
    super::{
        super::{
            answer::{Answer, is_output_limit},
            failure,
            frames::Frame,
            protocol::{Reader, Refusal, RequestInput},
        },
        refusal::{self, declined},
    },
    calls::Calls,
    kept::VendorContentBuilder,
};

/// The end marker of a stream. It is not JSON.
const DONE: &str = "[DONE]";

/// A partial response.
pub(super) struct AnswerReader {
    calls: Calls,
    kept: VendorContentBuilder,
    /// The model's text when it declines to answer.
    declined: String,
    /// The stop reason, once known.
    stop: Option<StopReason>,
}

impl Reader for AnswerReader {
    fn read(&mut self, frame: &Frame, answer: &mut Answer) -> Result<(), ModelError> {
        let data = frame.data.trim();
        if data.starts_with(DONE) {
            self.check_declined()?;
            self.complete(answer);
            return Ok(());
        }
        if data.is_empty() {
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(data).map_err(failure::unreadable)?;
        if is_error(frame, &chunk) {
            return Err(failure::in_stream(refusal::in_stream(&chunk)));
        }
        // Null in all chunks but one, which is the last or the one with the stop reason.
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            answer.usage = used(usage);
        }
        for choice in chunk.get("choices").and_then(Value::as_array).into_iter().flatten() {
            // Only one was requested.
            if choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0 {
                self.choice(choice, answer)?;
            }
        }
        Ok(())
    }

    /// Some servers just close the stream after the last chunk. The stop reason shows that the
    /// response is complete: only the usage follows it.
    fn end(&mut self, answer: &mut Answer) {
        if self.stop.is_some() {
            self.complete(answer);
        }
    }
}

impl AnswerReader {
    /// A response to this request, still empty.
    pub(super) fn of(input: &RequestInput<'_>) -> Self {
        Self {
            calls: Calls::default(),
            kept: VendorContentBuilder::of(input),
            declined: String::new(),
            stop: None,
        }
    }

    fn choice(&mut self, choice: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        let said = ["delta", "message"]
            .iter()
            .filter_map(|key| choice.get(key))
            .find(|said| said.is_object());
        if let Some(delta) = said {
            answer.reasoning(self.kept.delta(delta));
            self.content(delta.get("content").unwrap_or(&Value::Null), answer);
            if let Some(words) = delta.get("refusal").and_then(Value::as_str) {
                self.declined.push_str(words);
            }
            for fragment in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten()
            {
                let position = self.calls.add(fragment, answer);
                let extra = fragment.get("extra_content").filter(|extra| !extra.is_null());
                if let (Some(position), Some(extra)) = (position, extra) {
                    self.kept.extra_content(position, extra);
                }
            }
        }
        if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
            return Err(failure::in_stream(refusal::in_stream(error)));
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.check_declined()?;
            self.stop = Some(stop(reason)?);
            answer.stops();
        }
        Ok(())
    }

    /// A text, or parts as Mistral sends them.
    fn content(&mut self, content: &Value, answer: &mut Answer) {
        match content {
            Value::String(text) => answer.text(text),
            Value::Array(parts) => {
                for part in parts {
                    let thought = part.get("thinking").and_then(Value::as_array);
                    for thought in thought.into_iter().flatten() {
                        answer.reasoning(text_of(thought));
                    }
                    answer.text(text_of(part));
                }
            }
            _ => {}
        }
    }

    fn check_declined(&self) -> Result<(), ModelError> {
        if self.declined.is_empty() { Ok(()) } else { Err(declined(&self.declined)) }
    }

    fn complete(&mut self, answer: &mut Answer) {
        answer.stop = self.stop.unwrap_or(StopReason::Other);
        self.kept.settle(&answer.settle());
        answer.vendor = self.kept.take(answer.calls());
        answer.complete();
    }
}

fn text_of(part: &Value) -> &str {
    part.get("text").and_then(Value::as_str).unwrap_or_default()
}

/// OpenAI's SDK recognizes an error by its field alone; other servers name the event or the object
/// so.
fn is_error(frame: &Frame, chunk: &Value) -> bool {
    frame.event == "error"
        || chunk.get("error").is_some_and(|error| !error.is_null())
        || chunk.get("object").is_some_and(|object| object == "error")
}

fn stop(reason: &str) -> Result<StopReason, ModelError> {
    let class = match reason {
        "stop" | "tool_calls" | "function_call" => return Ok(StopReason::Finished),
        _ if is_output_limit(reason) => return Ok(StopReason::MaxTokens),
        "content_filter" => return Err(declined("its content filter ended the response")),
        // DeepSeek's.
        "insufficient_system_resource" => ModelErrorClass::Overloaded,
        // OpenRouter's and Mistral's; vLLM's and SGLang's.
        "error" | "abort" => ModelErrorClass::Incomplete,
        _ => return Ok(StopReason::Other),
    };
    let message = Some(format!("it stopped with `{reason}`"));
    Err(failure::in_stream(Refusal { class: Some(class), message, retry_after: None }))
}

/// The usage. OpenAI counts the reasoning as output; xAI and Gemini only add it to the total.
fn used(usage: &Value) -> Usage {
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    let read = count("/prompt_tokens").unwrap_or(0);
    let written = count("/completion_tokens").unwrap_or(0);
    let total = count("/total_tokens").unwrap_or(0);
    // OpenAI's, DeepSeek's, Moonshot's.
    let cached =
        ["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens", "/cached_tokens"];
    Usage {
        input_tokens: read,
        cached_input_tokens: cached.iter().find_map(|pointer| count(pointer)).unwrap_or(0),
        output_tokens: written.max(total.saturating_sub(read)),
        ..Usage::default()
    }
}
