//! One answer, put together from pieces.

use std::{collections::VecDeque, sync::Arc};

use toolcrib_core::{ModelChunk, ModelResponse, StopReason, ToolCall, Usage, VendorContent};

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
            usage: self.usage,
            stop: self.stop,
            vendor: self.vendor.take().map(Arc::new),
        };
        self.chunks.push_back(ModelChunk::Done(response));
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
