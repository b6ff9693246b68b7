//! Assembles events into a response.

use serde_json::Value;
use toolcrib_core::{ModelError, ModelErrorClass, StopReason};

use super::{
    super::{
        super::{
            answer::{Answer, is_output_limit},
            failure,
            frames::Frame,
            lenient::{MaybeObject, TextOrList},
            protocol::{Reader, Refusal, RequestInput},
        },
        refusal::{self, declined},
    },
    calls::Calls,
    events::{Choice, Chunk, Part},
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
        let MaybeObject(chunk) = serde_json::from_str(data).map_err(failure::unreadable)?;
        let chunk: Chunk<'_> = chunk.unwrap_or_default();
        if is_error(frame, &chunk) {
            let chunk: Value = serde_json::from_str(data).map_err(failure::unreadable)?;
            return Err(failure::in_stream(refusal::in_stream(&chunk)));
        }
        // Null in all chunks but one, which is the last or the one with the stop reason.
        if let Some(counts) = chunk.usage.0 {
            answer.usage = counts.used();
        }
        for choice in chunk.choices.0.into_iter().filter_map(|MaybeObject(choice)| choice) {
            // Only one was requested.
            if choice.index.0.unwrap_or(0) == 0 {
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

    fn choice(&mut self, choice: Choice<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if let Some(delta) = choice.delta.0.or(choice.message.0) {
            answer.reasoning(self.kept.delta(&delta));
            content(&delta.content, answer);
            self.declined.push_str(delta.refusal.text());
            for MaybeObject(fragment) in delta.tool_calls.0 {
                let fragment = fragment.unwrap_or_default();
                let position = self.calls.add(&fragment, answer);
                let extra = Some(fragment.extra_content).filter(|extra| !extra.is_null());
                if let (Some(position), Some(extra)) = (position, extra) {
                    self.kept.extra_content(position, extra);
                }
            }
        }
        if !choice.error.is_null() {
            return Err(failure::in_stream(refusal::in_stream(&choice.error)));
        }
        if let Some(reason) = &choice.finish_reason.0 {
            self.check_declined()?;
            self.stop = Some(stop(reason)?);
            answer.stops();
        }
        Ok(())
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

/// A text, or parts as Mistral sends them.
fn content(content: &TextOrList<'_, MaybeObject<Part<'_>>>, answer: &mut Answer) {
    match content {
        TextOrList::Text(text) => answer.text(text),
        TextOrList::List(parts) => {
            for part in parts.iter().filter_map(|MaybeObject(part)| part.as_ref()) {
                for thought in part.thinking.0.iter().filter_map(|MaybeObject(part)| part.as_ref())
                {
                    answer.reasoning(thought.text.text());
                }
                answer.text(part.text.text());
            }
        }
        TextOrList::Other => {}
    }
}

/// OpenAI's SDK recognizes an error by its field alone; other servers name the event or the object
/// so.
fn is_error(frame: &Frame, chunk: &Chunk<'_>) -> bool {
    frame.event == "error" || chunk.error.0 || chunk.object.text() == "error"
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
