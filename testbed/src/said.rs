//! What the model said, whole, before a vendor's form is put on it.

use std::sync::Arc;

use futures_util::StreamExt as _;
use toolcrib_core::{
    Arguments, Model, ModelChunk, ModelError, ModelErrorClass, ModelRequest, ModelResponse,
    StopReason, Usage,
};

use crate::{cache::CacheUse, conversation::Form};

/// How many characters are a token here.
const CHARS_PER_TOKEN: usize = 4;

/// What the model said.
#[derive(Debug)]
pub(crate) struct Said {
    /// What the answer is called: different for each, and the same when a test is repeated.
    pub(crate) id: String,
    /// The model's name, as the client gave it.
    pub(crate) model: String,
    pub(crate) reasoning: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<SaidCall>,
    pub(crate) stop: StopReason,
    pub(crate) tokens: Tokens,
    pub(crate) form: Form,
}

/// A call as the model wrote it.
#[derive(Debug)]
pub(crate) struct SaidCall {
    pub(crate) id: String,
    pub(crate) name: Arc<str>,
    /// What should be JSON.
    pub(crate) arguments: String,
}

/// What an answer used, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Tokens {
    /// Read, cached ones included.
    pub(crate) input: u64,
    /// Of these, read from the cache.
    pub(crate) cached: u64,
    /// Of these, written to the cache.
    pub(crate) cache_written: u64,
    /// Written, thoughts included.
    pub(crate) output: u64,
    /// Of these, thoughts.
    pub(crate) thoughts: u64,
}

/// Asks the model, and waits for all of its answer.
pub(crate) async fn ask(
    model: &Arc<dyn Model>,
    request: ModelRequest,
) -> Result<(String, ModelResponse), ModelError> {
    let mut stream = Arc::clone(model).respond(request);
    let mut reasoning = String::new();
    while let Some(chunk) = stream.next().await {
        match chunk? {
            ModelChunk::Reasoning(piece) => reasoning.push_str(&piece),
            ModelChunk::Done(response) => return Ok((reasoning, response)),
            // The end has all the text once more.
            _ => {}
        }
    }
    Err(ModelError::new(ModelErrorClass::Incomplete, "the model's stream ended without an end"))
}

impl Tokens {
    pub(crate) fn new(usage: Usage, cache: CacheUse, reasoning: &str) -> Self {
        let part = |share: f64| (usage.input_tokens as f64 * share).round() as u64;
        let cached = usage.cached_input_tokens.max(part(cache.read)).min(usage.input_tokens);
        let thoughts = tokens(reasoning.chars().count());
        Self {
            input: usage.input_tokens,
            cached,
            cache_written: part(cache.written).min(usage.input_tokens - cached),
            output: usage.output_tokens.saturating_add(thoughts),
            thoughts,
        }
    }
}

impl Said {
    /// Cuts the answer off where it would use more than that; the call at which it happens is cut
    /// in the middle of its arguments, and what follows it is lost.
    pub(crate) fn cut_at(&mut self, most_tokens: u64) {
        let most = usize::try_from(most_tokens).unwrap_or(usize::MAX);
        let mut left = most.saturating_mul(CHARS_PER_TOKEN);
        let mut cut = keep(&mut self.text, &mut left);
        let mut calls = Vec::new();
        for mut call in self.calls.drain(..) {
            if cut {
                break;
            }
            cut = keep(&mut call.arguments, &mut left);
            calls.push(call);
        }
        self.calls = calls;
        if cut {
            self.stop = StopReason::MaxTokens;
            self.tokens.output = most_tokens;
        }
    }
}

/// Keeps of a text what is left, and says whether it was cut.
fn keep(text: &mut String, left: &mut usize) -> bool {
    let end = text.char_indices().nth(*left).map(|(at, _)| at);
    *left = left.saturating_sub(text.chars().count());
    if let Some(end) = end {
        text.truncate(end);
    }
    end.is_some()
}

/// What a call's arguments are as data, where the model wrote JSON.
pub(crate) fn as_object(arguments: &str) -> Option<serde_json::Value> {
    serde_json::from_str(arguments).ok().filter(serde_json::Value::is_object)
}

/// A call's arguments as the model wrote them.
pub(crate) fn written(arguments: &Arguments) -> String {
    match arguments {
        Arguments::Text(text) => text.clone(),
        Arguments::Json(value) => value.to_string(),
    }
}

/// A text in pieces of so many characters, which together are the text.
pub(crate) fn pieces(text: &str, chars: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.char_indices().nth(chars.max(1)).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn tokens(chars: usize) -> u64 {
    u64::try_from(chars.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text_and_no_character_is_torn() {
        assert_eq!(pieces("aé€😀b", 2), ["aé", "€😀", "b"]);
        assert_eq!(pieces("ab", 0), ["a", "b"]);
        assert!(pieces("", 3).is_empty());
    }

    #[test]
    fn an_answer_is_cut_where_its_tokens_end() {
        let call =
            |n: &str| SaidCall { id: n.into(), name: "t".into(), arguments: "{\"a\":1}".into() };
        let mut said = Said {
            id: "1".into(),
            model: "m".into(),
            reasoning: String::new(),
            text: "12345678".into(),
            calls: vec![call("1"), call("2"), call("3")],
            stop: StopReason::Finished,
            tokens: Tokens::default(),
            form: Form::default(),
        };
        said.cut_at(100);
        assert_eq!((said.stop, said.calls.len()), (StopReason::Finished, 3));
        said.cut_at(4);
        assert_eq!(said.stop, StopReason::MaxTokens);
        let arguments: Vec<_> = said.calls.iter().map(|call| &*call.arguments).collect();
        assert_eq!(arguments, ["{\"a\":1}", "{"]);
        said.cut_at(1);
        assert_eq!((&*said.text, said.calls.len()), ("1234", 0));
    }
}
