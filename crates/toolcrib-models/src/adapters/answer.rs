//! Assembles one response from its pieces.

use std::{collections::VecDeque, mem, sync::Arc};

use serde::{Deserialize as _, Deserializer};
use toolcrib_core::{
    ModelChunk, ModelError, ModelErrorClass, ModelResponse, StopReason, ToolCall, Usage,
    VendorContent,
};

use super::{
    lenient::MaybeNumber,
    repeats::{PartialCall, repeated_calls},
    think_tags::{Piece, ThinkTags},
};

/// More tokens than any response uses. A server's count may be any number; this keeps sums in
/// range.
const MAX_TOKENS: u64 = u32::MAX as u64;

/// Maximum number of parts of an answer: calls, and blocks of text and reasoning if the vendor numbers
/// them. Each fragment is looked up among them, so their number bounds the work per fragment.
const MAX_PARTS: usize = 16_384;

/// A partial response. Pieces from the reader are passed on as chunks; the whole comes last.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    calls: Vec<PartialCall>,
    /// How many numbered parts were begun, calls among them where a vendor numbers both.
    parts: usize,
    chunks: VecDeque<ModelChunk>,
    has_reasoning: bool,
    complete: bool,
    /// Finds the reasoning that a model writes into its text.
    tags: ThinkTags,
    /// The number of the current frame, and of the one with the stop reason.
    frame: usize,
    last_frame: Option<usize>,
    /// The usage so far; set, not added, because vendors repeat the total with each report.
    pub(super) usage: Usage,
    /// The stop reason.
    pub(super) stop: StopReason,
    /// Content that the vendor requires back.
    pub(super) vendor: Option<VendorContent>,
}

impl Answer {
    /// An empty answer. `think_tags` is whether a model's text begins with its reasoning, between
    /// tags.
    pub(super) fn new(think_tags: bool) -> Self {
        Self { tags: ThinkTags::new(think_tags), ..Self::default() }
    }

    /// Begins the next frame.
    pub(super) fn begin_frame(&mut self) {
        self.frame += 1;
    }

    /// Notes that the current frame contains the stop reason.
    pub(super) fn stops(&mut self) {
        self.last_frame = Some(self.frame);
    }

    /// Appends text.
    pub(super) fn text(&mut self, piece: &str) {
        if self.tags.are_over() {
            self.plain_text(piece);
        } else if !piece.is_empty() {
            let pieces = self.tags.push(piece);
            self.pieces(pieces);
        }
    }

    fn pieces(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.plain_text(&text),
                Piece::Reasoning(reasoning) => self.reasoning(&reasoning),
            }
        }
    }

    fn plain_text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.chunks.push_back(ModelChunk::Text(piece.to_owned()));
        }
    }

    /// Appends reasoning.
    pub(super) fn reasoning(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.has_reasoning = true;
            self.chunks.push_back(ModelChunk::Reasoning(piece.to_owned()));
        }
    }

    /// Settles text and calls when all of them have arrived: before the content that a vendor
    /// requires back is collected, which describes both.
    pub(super) fn settle(&mut self) -> SettledAnswer {
        let pieces = self.tags.finish();
        self.pieces(pieces);
        if let Some(begin) = self.tags.end_of_untagged(&self.text) {
            self.text.drain(..begin);
        }
        let repeated = repeated_calls(&self.calls, self.last_frame);
        remove_calls(&mut self.calls, &repeated, |_| true);
        SettledAnswer { repeated, has_other_text: self.tags.found() }
    }

    /// Counts a numbered part.
    pub(super) fn begin_part(&mut self) {
        self.parts += 1;
    }

    /// Refuses too many parts.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        match self.parts.max(self.calls.len()) > MAX_PARTS {
            false => Ok(()),
            true => Err(ModelError::new(
                ModelErrorClass::Protocol,
                format!("its answer has more than {MAX_PARTS} calls and other parts"),
            )),
        }
    }

    /// Begins the next call.
    pub(super) fn begin_call(&mut self, call: PartialCall) -> &mut PartialCall {
        let frame = self.frame;
        self.calls.push_mut(PartialCall { frame, ..call })
    }

    /// The last call that began with this number.
    pub(super) fn call(&mut self, index: u64) -> Option<&mut PartialCall> {
        self.calls.iter_mut().rev().find(|call| call.index == index)
    }

    /// The number of calls begun.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// All text so far.
    pub(super) fn text_so_far(&self) -> &str {
        &self.text
    }

    /// Whether a part of it has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.complete
            || self.has_reasoning
            || self.parts > 0
            || !self.text.is_empty()
            || !self.calls.is_empty()
    }

    /// Marks the response as complete.
    pub(super) fn complete(&mut self) {
        if self.complete {
            return;
        }
        self.complete = true;
        let calls = mem::take(&mut self.calls).into_iter().map(|call| {
            let blank = call.arguments.trim().is_empty();
            let arguments = if blank { "{}".to_owned() } else { call.arguments };
            ToolCall::unparsed(call.id, call.name, arguments)
        });
        let response = ModelResponse {
            text: mem::take(&mut self.text),
            calls: calls.collect(),
            usage: self.usage_so_far(),
            stop: self.stop,
            vendor: self.vendor.take().map(Arc::new),
        };
        self.chunks.push_back(ModelChunk::Done(response));
    }

    /// The usage, as far as it is known.
    pub(super) fn usage_so_far(&self) -> Usage {
        plausible(self.usage)
    }

    /// Whether the response is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The next chunk to pass on.
    pub(super) fn next_chunk(&mut self) -> Option<ModelChunk> {
        self.chunks.pop_front()
    }
}

/// The changes to an answer that was settled.
pub(super) struct SettledAnswer {
    /// The positions of calls that were removed because they repeat others, in order.
    repeated: Vec<usize>,
    /// Whether the answer's text is not the text of the vendor's parts: reasoning was removed.
    pub(super) has_other_text: bool,
}

impl SettledAnswer {
    /// Removes the repeated calls of a list that contains every call of the answer, in order.
    pub(super) fn remove_repeated<T>(&self, list: &mut Vec<T>, is_call: impl Fn(&T) -> bool) {
        remove_calls(list, &self.repeated, is_call);
    }
}

fn remove_calls<T>(list: &mut Vec<T>, positions: &[usize], is_call: impl Fn(&T) -> bool) {
    if positions.is_empty() {
        return;
    }
    let mut calls = 0..;
    list.retain(|item| {
        let position = if is_call(item) { calls.next() } else { None };
        position.is_none_or(|position| positions.binary_search(&position).is_err())
    });
}

/// Whether a reason to stop is the output limit. Servers pass on the words of other vendors:
/// `length` is OpenAI's and Ollama's, `model_length` Mistral's, `max_tokens` Anthropic's and Gemini's,
/// `max_output_tokens` that of OpenAI's Responses.
pub(super) fn is_output_limit(reason: &str) -> bool {
    let words =
        ["length", "model_length", "max_tokens", "max_output_tokens", "max_completion_tokens"];
    words.iter().any(|word| word.eq_ignore_ascii_case(reason))
}

fn plausible(usage: Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens.min(MAX_TOKENS),
        cached_input_tokens: usage.cached_input_tokens.min(MAX_TOKENS),
        cache_write_tokens: usage.cache_write_tokens.min(MAX_TOKENS),
        output_tokens: usage.output_tokens.min(MAX_TOKENS),
        ..usage
    }
}

/// Reads a count, or the number of a part. A value that is not a whole number is ignored: it must
/// not invalidate the response.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(json: D) -> Result<Option<u64>, D::Error> {
    MaybeNumber::deserialize(json).map(|MaybeNumber(number)| number)
}
