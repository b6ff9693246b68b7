//! Reads a streamed response.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use toolcrib_core::{ModelError, StopReason, Usage, VendorContent};

use super::{VENDOR, refusal};
use crate::adapters::{
    answer::{Answer, is_output_limit, whole_number},
    failure,
    frames::Frame,
    lenient::{Text, text},
    protocol::Reader,
    repeats::PartialCall,
};

/// Reads the lines of a response.
#[derive(Debug, Default)]
pub(super) struct AnswerReader {
    thinking: String,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    message: Option<Message<'a>>,
    done: Option<bool>,
    #[serde(borrow)]
    done_reason: Option<Text<'a>>,
    #[serde(default, deserialize_with = "whole_number")]
    prompt_eval_count: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(default, deserialize_with = "whole_number")]
    index: Option<u64>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Reader for AnswerReader {
    fn read(&mut self, frame: &Frame, answer: &mut Answer) -> Result<(), ModelError> {
        let line: Line<'_> = serde_json::from_str(&frame.data).map_err(failure::unreadable)?;
        if line.error.is_some() {
            let line = serde_json::from_str(&frame.data).map_err(failure::unreadable)?;
            return Err(failure::in_stream(refusal::of_body(&line)));
        }
        if let Some(message) = line.message {
            self.message(message, answer);
        }
        if line.done.unwrap_or_default() {
            answer.usage = Usage {
                input_tokens: line.prompt_eval_count.unwrap_or_default(),
                output_tokens: line.eval_count.unwrap_or_default(),
                ..Usage::default()
            };
            answer.stop = stop(text(&line.done_reason));
            answer.stops();
            answer.settle();
            self.keep_thinking(answer);
            answer.complete();
        }
        Ok(())
    }
}

impl AnswerReader {
    fn message(&mut self, message: Message<'_>, answer: &mut Answer) {
        if let Some(Text(thinking)) = message.thinking {
            answer.reasoning(&thinking);
            self.thinking.push_str(&thinking);
        }
        if let Some(Text(text)) = message.content {
            answer.text(&text);
        }
        for call in message.tool_calls.into_iter().flatten() {
            let Some(function) = call.function else { continue };
            answer.begin_call(PartialCall {
                index: answer.calls() as u64,
                number: function.index,
                id: call.id.unwrap_or_default(),
                name: function.name.unwrap_or_default(),
                arguments: function.arguments.map(arguments).unwrap_or_default(),
                ..PartialCall::default()
            });
        }
    }

    fn keep_thinking(&mut self, answer: &mut Answer) {
        if !self.thinking.is_empty() {
            let content = Value::String(std::mem::take(&mut self.thinking));
            answer.vendor = Some(VendorContent { vendor: VENDOR.into(), content });
        }
    }
}

/// Arguments are an object; servers similar to Ollama send them as text.
fn arguments(json: &RawValue) -> String {
    serde_json::from_str(json.get()).unwrap_or_else(|_| json.get().to_owned())
}

fn stop(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::Finished,
        reason if is_output_limit(reason) => StopReason::MaxTokens,
        // The model was loaded or unloaded, or an old server gives no reason.
        _ => StopReason::Other,
    }
}
