//! Assembles one response from its pieces.

use std::{collections::VecDeque, sync::Arc};

use serde::{Deserialize as _, Deserializer};
use serde_json::Value;
use toolcrib_core::{
    ModelChunk, ModelError, ModelErrorClass, ModelResponse, StopReason, ToolCall, Usage,
    VendorContent,
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
    /// The usage so far; set, not added, because vendors repeat the total with each report.
    pub(super) usage: Usage,
    /// The stop reason.
    pub(super) stop: StopReason,
    /// Content that the vendor requires back.
    pub(super) vendor: Option<VendorContent>,
}

/// A partial call.
#[derive(Debug, Default)]
pub(super) struct PartialCall {
    /// The vendor's number of the call within the response, if it has one.
    pub(super) index: u64,
    /// The id; if empty, the caller's loop assigns one.
    pub(super) id: String,
    /// The tool.
    pub(super) name: String,
    /// The arguments as text, which should be JSON when complete. A call without arguments has
    /// `{}`.
    pub(super) arguments: String,
}

impl Answer {
    /// Appends text.
    pub(super) fn text(&mut self, piece: &str) {
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
        self.calls.push_mut(call)
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
        let calls = std::mem::take(&mut self.calls).into_iter().map(|call| {
            let blank = call.arguments.trim().is_empty();
            let arguments = if blank { "{}".to_owned() } else { call.arguments };
            ToolCall::unparsed(call.id, call.name, arguments)
        });
        let response = ModelResponse {
            text: std::mem::take(&mut self.text),
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
    Ok(Value::deserialize(json)?.as_u64())
}
