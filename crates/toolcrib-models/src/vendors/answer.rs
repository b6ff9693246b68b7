//! One answer, put together from pieces.

use std::{collections::VecDeque, sync::Arc};

use serde::{Deserialize as _, Deserializer};
use serde_json::Value;
use toolcrib_core::{ModelChunk, ModelResponse, StopReason, ToolCall, Usage, VendorContent};

/// More tokens than any answer uses. A server's count may be anything; sums of these stay numbers.
const MAX_TOKENS: u64 = u32::MAX as u64;

/// An answer as far as it has come. What a reader adds is passed on as chunks; the whole comes last.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    calls: Vec<PartialCall>,
    chunks: VecDeque<ModelChunk>,
    complete: bool,
    /// What it used; vendors count anew with each report, so it is set, not added.
    pub(super) usage: Usage,
    /// Why it stopped.
    pub(super) stop: StopReason,
    /// What the vendor wants back.
    pub(super) vendor: Option<VendorContent>,
}

/// A call as far as it has come.
#[derive(Debug, Default)]
pub(super) struct PartialCall {
    /// What the vendor numbers it with within the answer, where it does.
    pub(super) index: u64,
    /// Its id; may stay empty, whoever runs the loop gives it one then.
    pub(super) id: String,
    /// The tool.
    pub(super) name: String,
    /// The arguments as text, which should be JSON once it is whole. A call without any has `{}`.
    pub(super) arguments: String,
}

impl Answer {
    /// More text.
    pub(super) fn text(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.text.push_str(piece);
            self.chunks.push_back(ModelChunk::Text(piece.to_owned()));
        }
    }

    /// More reasoning.
    pub(super) fn reasoning(&mut self, piece: &str) {
        if !piece.is_empty() {
            self.chunks.push_back(ModelChunk::Reasoning(piece.to_owned()));
        }
    }

    /// The next call.
    pub(super) fn begin_call(&mut self, call: PartialCall) -> &mut PartialCall {
        self.calls.push_mut(call)
    }

    /// The last call that was begun under a number, for more of it.
    pub(super) fn call(&mut self, index: u64) -> Option<&mut PartialCall> {
        self.calls.iter_mut().rev().find(|call| call.index == index)
    }

    /// How many calls were begun.
    pub(super) fn calls(&self) -> usize {
        self.calls.len()
    }

    /// All text so far.
    pub(super) fn text_so_far(&self) -> &str {
        &self.text
    }

    /// Nothing more is to come.
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

    /// What it has used, as far as that is known.
    pub(super) fn usage_so_far(&self) -> Usage {
        plausible(self.usage)
    }

    /// Whether nothing more is to come.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// The next chunk that has not been passed on.
    pub(super) fn next_chunk(&mut self) -> Option<ModelChunk> {
        self.chunks.pop_front()
    }
}

fn plausible(usage: Usage) -> Usage {
    Usage {
        input_tokens: usage.input_tokens.min(MAX_TOKENS),
        cached_input_tokens: usage.cached_input_tokens.min(MAX_TOKENS),
        output_tokens: usage.output_tokens.min(MAX_TOKENS),
        ..usage
    }
}

/// Reads a count, or the number of a part. What is no whole number is none: an answer is worth more
/// than that.
pub(super) fn whole_number<'de, D: Deserializer<'de>>(json: D) -> Result<Option<u64>, D::Error> {
    Ok(Value::deserialize(json)?.as_u64())
}
