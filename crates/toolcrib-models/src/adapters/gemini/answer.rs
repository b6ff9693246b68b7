//! Reads a streamed response.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use toolcrib_core::{ModelError, ModelErrorClass, StopReason, Usage};

use super::{
    kept::{self, Parts},
    name, refusal,
};
use crate::adapters::{
    answer::{Answer, is_output_limit, whole_number},
    failure,
    frames::Frame,
    lenient::{self, Text},
    protocol::{Reader, Refusal},
    repeats::PartialCall,
};

/// Reads the chunks of a response. The last is not marked as such: after the one with the finish
/// reason, one with the final token count may follow. So the response ends with the stream.
#[derive(Debug, Default)]
pub(super) struct AnswerReader {
    parts: Parts,
    finished: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<PromptFeedback>,
    usage_metadata: Option<UsageMetadata>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default, deserialize_with = "whole_number")]
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    thought: Option<bool>,
    thought_signature: Option<String>,
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    id: Option<String>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageMetadata {
    #[serde(default, deserialize_with = "whole_number")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    thoughts_token_count: Option<u64>,
}

impl Reader for AnswerReader {
    fn read(&mut self, frame: &Frame, answer: &mut Answer) -> Result<(), ModelError> {
        let chunk: Chunk<'_> = serde_json::from_str(&frame.data).map_err(failure::unreadable)?;
        if let Some(error) = &chunk.error {
            return Err(failure::in_stream(refusal::of_error(error)));
        }
        if let Some(usage) = &chunk.usage_metadata {
            answer.usage = usage.into();
        }
        if let Some(feedback) = chunk.prompt_feedback {
            blocked(feedback)?;
        }
        // Only one is requested.
        let candidates = chunk.candidates.into_iter().flatten();
        for candidate in candidates.filter(|candidate| candidate.index.unwrap_or_default() == 0) {
            for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.part(part, answer);
            }
            if let Some(Text(reason)) = candidate.finish_reason {
                answer.stop = stop(&reason, candidate.finish_message)?;
                answer.stops();
                self.finished = true;
            }
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) {
        if self.finished {
            let settled = answer.settle();
            let mut parts = std::mem::take(&mut self.parts);
            parts.settle(&settled);
            answer.vendor = parts.into_content().filter(|_| !settled.has_other_text);
            answer.complete();
        }
    }
}

impl AnswerReader {
    fn part(&mut self, part: Part<'_>, answer: &mut Answer) {
        let Part { text, thought, thought_signature: signature, function_call } = part;
        if let Some(call) = function_call {
            answer.begin_call(PartialCall {
                index: answer.calls() as u64,
                id: call.id.unwrap_or_default(),
                name: name::received(lenient::text(&call.name)).to_owned(),
                arguments: call.args.map(|args| args.get().to_owned()).unwrap_or_default(),
                ..PartialCall::default()
            });
            self.parts.push(kept::Part::Call { signature });
            return;
        }
        let text = match text {
            Some(Text(text)) => text,
            None if signature.is_some() => Cow::Borrowed(""),
            // A kind of part that was not requested.
            None => return,
        };
        if thought.unwrap_or_default() {
            answer.reasoning(&text);
            self.parts.push(kept::Part::Thought { text: text.into_owned(), signature });
        } else {
            answer.text(&text);
            self.parts.push(kept::Part::Text { chars: text.chars().count(), signature });
        }
    }
}

impl From<&UsageMetadata> for Usage {
    fn from(usage: &UsageMetadata) -> Self {
        let sum =
            |counts: [Option<u64>; 2]| counts.into_iter().flatten().fold(0, u64::saturating_add);
        Self {
            input_tokens: sum([usage.prompt_token_count, usage.tool_use_prompt_token_count]),
            cached_input_tokens: usage.cached_content_token_count.unwrap_or_default(),
            output_tokens: sum([usage.candidates_token_count, usage.thoughts_token_count]),
            ..Self::default()
        }
    }
}

/// A prompt that gets no response at all.
fn blocked(feedback: PromptFeedback) -> Result<(), ModelError> {
    let Some(reason) =
        feedback.block_reason.filter(|reason| reason != "BLOCKED_REASON_UNSPECIFIED")
    else {
        return Ok(());
    };
    Err(ended(ModelErrorClass::ContentFilter, &reason, feedback.block_reason_message))
}

/// The stop reason, if there is a response.
fn stop(reason: &str, message: Option<String>) -> Result<StopReason, ModelError> {
    let class = match reason {
        "STOP" => return Ok(StopReason::Finished),
        // The maximum of one request; more could be requested.
        "CONTINUATION" => return Ok(StopReason::MaxTokens),
        _ if is_output_limit(reason) => return Ok(StopReason::MaxTokens),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "ESCALATION"
        | "MODEL_ARMOR" => ModelErrorClass::ContentFilter,
        // The account is restricted.
        "PUP_LIMITED_DISABLED" => ModelErrorClass::Auth,
        "MISSING_THOUGHT_SIGNATURE" => ModelErrorClass::BadRequest,
        // The vendor withholds the model's text because it could not be parsed. A retry may
        // succeed.
        "MALFORMED_FUNCTION_CALL"
        | "MALFORMED_RESPONSE"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS" => ModelErrorClass::Incomplete,
        _ => return Ok(StopReason::Other),
    };
    Err(ended(class, reason, message))
}

fn ended(class: ModelErrorClass, reason: &str, message: Option<String>) -> ModelError {
    let message = match message {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    };
    failure::in_stream(Refusal { class: Some(class), message: Some(message), retry_after: None })
}
