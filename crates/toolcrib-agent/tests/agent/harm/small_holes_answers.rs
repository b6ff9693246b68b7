//! An answer of a model that did not end filled the memory, the session and the terminal.

use std::sync::Arc;

use futures_util::stream;
use toolcrib_agent::{Agent, EndReason, RunOptions};
use toolcrib_core::{Model, ModelChunk, ModelRequest, ModelResponse, ModelStream, StopReason};

/// A model whose answer is this many pieces of a mebibyte, streamed or at once.
struct Endless {
    pieces: usize,
    streams: bool,
}

impl Model for Endless {
    fn name(&self) -> &'static str {
        "endless"
    }

    fn respond(self: Arc<Self>, _: ModelRequest) -> ModelStream {
        // A character of two bytes does not end at the limit.
        let piece = "ä".repeat(512 * 1024 + 1);
        let text = if self.streams { String::new() } else { piece.repeat(self.pieces) };
        let pieces = if self.streams { self.pieces } else { 0 };
        let pieces =
            stream::iter(vec![piece; pieces].into_iter().map(|text| Ok(ModelChunk::Text(text))));
        let whole = ModelChunk::Done(ModelResponse { text, ..Default::default() });
        Box::pin(futures_util::StreamExt::chain(pieces, stream::iter([Ok(whole)])))
    }
}

#[tokio::test]
async fn an_answer_without_an_end_was_read_whole() {
    for streams in [true, false] {
        let agent = Agent::builder().model(Endless { pieces: 24, streams }).build().unwrap();
        let outcome = agent.run("Go", RunOptions::default()).await;
        assert_eq!(outcome.end_reason, EndReason::CutOff, "{streams}: {:?}", outcome.error);
        assert_eq!(outcome.stop, Some(StopReason::MaxTokens));
        let bytes = outcome.answer.unwrap().len();
        assert!((7 * 1024 * 1024..=8 * 1024 * 1024).contains(&bytes), "{streams}: {bytes}");
    }
}
