//! A response of a test model and its timing.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::time::sleep;
use toolcrib_core::{
    ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse, ModelStream, StopReason,
    ToolCall, Usage,
};

use super::request::calls_so_far;
use crate::fail::fail;

/// A response of a model: content, speed and end.
///
/// A text, a call, a list of calls, a whole [`ModelResponse`] or a [`ModelError`] converts into
/// one:
///
/// ```
/// use std::time::Duration;
/// use serde_json::json;
/// use toolcrib_testing::{Answer, call, model};
///
/// let model = model()
///     .then(Answer::text("One moment.").and_calls([call("a", json!({})), call("b", json!({}))]))
///     .then(Answer::text("It is on its").breaks_off())
///     .then(Answer::text("Done.").slowly(Duration::from_secs(1)));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Answer {
    reasoning: String,
    response: ModelResponse,
    keep_ids: bool,
    pause: Option<Duration>,
    end: End,
}

#[derive(Debug, Clone)]
enum End {
    Done,
    Fails(ModelErrorClass, String),
    BreaksOff,
    Stalls,
    Panics(String),
}

impl Answer {
    /// A text, streamed word by word.
    pub fn text(text: impl Into<String>) -> Self {
        Self::from(ModelResponse { text: text.into(), ..ModelResponse::default() })
    }

    /// Calls without a text.
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::text("").and_calls(calls)
    }

    /// Adds calls to the answer. Those without an id get one, `call_1`, `call_2` …, counted through
    /// the conversation.
    pub fn and_calls(mut self, calls: impl IntoIterator<Item = ToolCall>) -> Self {
        self.response.calls.extend(calls);
        self
    }

    /// Leaves the calls' ids unchanged, missing ones too.
    pub fn keep_ids(mut self) -> Self {
        self.keep_ids = true;
        self
    }

    /// Sets usage and cost. Default: nothing.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.response.usage = usage;
        self
    }

    /// Adds reasoning before the text, streamed word by word.
    pub fn reasoning(mut self, text: impl Into<String>) -> Self {
        self.reasoning = text.into();
        self
    }

    /// Sets the finish reason. Default: finished.
    pub fn stops(mut self, stop: StopReason) -> Self {
        self.response.stop = stop;
        self
    }

    /// Waits before each piece and before the end, on tokio's clock; overrides the model's setting.
    pub fn slowly(mut self, pause: Duration) -> Self {
        self.pause = Some(pause);
        self
    }

    /// Ends with an error, after the text.
    pub fn fails(mut self, class: ModelErrorClass, message: impl Into<String>) -> Self {
        self.end = End::Fails(class, message.into());
        self
    }

    /// Ends after the text, without the final piece of a complete response.
    pub fn breaks_off(mut self) -> Self {
        self.end = End::BreaksOff;
        self
    }

    /// Never ends: no piece follows the text.
    pub fn stalls(mut self) -> Self {
        self.end = End::Stalls;
        self
    }

    /// Panics after the text.
    pub fn panics(mut self, message: impl Into<String>) -> Self {
        self.end = End::Panics(message.into());
        self
    }

    /// Streams the response. Dropping the stream ends its waits.
    pub(super) fn stream(
        self,
        request: &ModelRequest,
        pause: Duration,
        streaming: StreamCount,
    ) -> ModelStream {
        let Self { reasoning, mut response, keep_ids, pause: own_pause, end } = self;
        let pause = own_pause.unwrap_or(pause);
        if !keep_ids {
            let first = calls_so_far(request) + 1;
            for (call, number) in response.calls.iter_mut().zip(first..) {
                if call.id.is_empty() {
                    call.id = format!("call_{number}").into();
                }
            }
        }
        let pieces: Vec<_> = words(&reasoning)
            .map(ModelChunk::Reasoning)
            .chain(words(&response.text).map(ModelChunk::Text))
            .collect();
        let pieces = stream::iter(pieces).then(move |piece| async move {
            wait(pause).await;
            Ok(piece)
        });
        let last = async move {
            let _streaming = streaming;
            wait(pause).await;
            let last = match end {
                End::Done => Some(Ok(ModelChunk::Done(response))),
                End::Fails(class, message) => Some(Err(ModelError::new(class, message))),
                End::BreaksOff => None,
                End::Stalls => pending().await,
                End::Panics(message) => fail(message),
            };
            stream::iter(last)
        };
        Box::pin(pieces.chain(last.flatten_stream()))
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

/// Without a pause no clock is used, so that such a model needs none.
async fn wait(pause: Duration) {
    if !pause.is_zero() {
        sleep(pause).await;
    }
}

impl From<ModelResponse> for Answer {
    fn from(response: ModelResponse) -> Self {
        Self { reasoning: String::new(), response, keep_ids: false, pause: None, end: End::Done }
    }
}

impl From<ModelError> for Answer {
    fn from(error: ModelError) -> Self {
        Self::text("").fails(error.class, error.message)
    }
}

impl From<&str> for Answer {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<ToolCall> for Answer {
    fn from(call: ToolCall) -> Self {
        Self::calls([call])
    }
}

impl From<Vec<ToolCall>> for Answer {
    fn from(calls: Vec<ToolCall>) -> Self {
        Self::calls(calls)
    }
}

impl<const N: usize> From<[ToolCall; N]> for Answer {
    fn from(calls: [ToolCall; N]) -> Self {
        Self::calls(calls)
    }
}

/// Counts the responses in progress.
pub(super) struct StreamCount(Arc<AtomicUsize>);

impl StreamCount {
    pub(super) fn begin(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for StreamCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
