//! A model whose responses depend only on a number and on the conversation.

use std::sync::Arc;

use futures_util::stream;
use serde_json::json;
use toolcrib_core::{
    Message, Model, ModelChunk, ModelRequest, ModelResponse, ModelStream, ToolCall, Usage,
};

/// The tools, by what a second call would do.
pub(crate) const UNREPEATABLE: [&str; 4] = ["append", "insert", "post", "wire"];
pub(crate) const HARMLESS: [&str; 2] = ["put", "look"];

/// The last text.
pub(crate) const ANSWER: &str = "All done.";

/// A sequence of numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }
}

pub(crate) struct Script(pub(crate) u64);

impl Script {
    /// The calls of the response with a number; `None` for the answer.
    fn calls(&self, response: u64) -> Option<Vec<ToolCall>> {
        let mut random = Random::of(self.0.wrapping_mul(1_000));
        if response > random.below(3) {
            return None;
        }
        let mut random = Random::of(self.0.wrapping_mul(1_000) + response + 1);
        let calls = (0..=random.below(4)).map(|number| {
            let tools = UNREPEATABLE.iter().chain(&HARMLESS).copied().collect::<Vec<_>>();
            let tool = tools[usize::try_from(random.below(6)).unwrap()];
            ToolCall::new(format!("c{response}-{number}"), tool, json!({ "n": number }))
        });
        Some(calls.collect())
    }
}

impl Model for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn respond(self: Arc<Self>, request: ModelRequest) -> ModelStream {
        let responses = request.messages.iter().filter(|m| matches!(m, Message::Assistant { .. }));
        let calls = self.calls(responses.count() as u64);
        let text = if calls.is_none() { ANSWER } else { "" }.to_owned();
        let usage = Usage { input_tokens: 1, cost_usd: Some(0.5), ..Usage::NOTHING };
        let calls = calls.unwrap_or_default();
        let response = ModelResponse { text, calls, usage, ..ModelResponse::default() };
        Box::pin(stream::iter([Ok(ModelChunk::Done(response))]))
    }
}
