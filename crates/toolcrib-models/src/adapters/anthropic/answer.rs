//! The events of a response.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use toolcrib_core::{ModelError, ModelErrorClass, StopReason, Usage};

use super::{
    refusal,
    thinking::{self, StoredBlock},
};
use crate::adapters::{
    answer::{Answer, is_output_limit, whole_number},
    failure,
    frames::Frame,
    lenient::{Text, text},
    prompt_prefix::PromptPrefix,
    protocol::{Reader, Refusal, RequestInput},
    repeats::PartialCall,
};

/// An event. None has all fields, and servers add others.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(default, deserialize_with = "whole_number")]
    index: Option<u64>,
    message: Option<MessageStart>,
    #[serde(borrow)]
    content_block: Option<BlockStart<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct MessageStart {
    usage: Option<Counts>,
}

/// The whole message, from a server that ignores `stream`.
#[derive(Deserialize)]
struct WholeMessage<'a> {
    #[serde(borrow)]
    content: Vec<BlockStart<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    stop_details: Option<Value>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A further piece of a block, or of the message.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    stop_details: Option<Value>,
}

/// The usage so far. A later report replaces the counts that it contains; others remain.
#[derive(Default, Deserialize)]
struct Counts {
    #[serde(default, deserialize_with = "whole_number")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    output_tokens: Option<u64>,
}

struct PartialBlock {
    index: u64,
    content: Content,
}

enum Content {
    Text {
        bytes: usize,
    },
    Thinking {
        thinking: String,
        signature: String,
    },
    Redacted {
        data: String,
    },
    /// A call, and whether its arguments came with its beginning. If further pieces come, those are
    /// the arguments.
    Call {
        whole: bool,
    },
    /// A block of unknown kind.
    Other,
}

/// Reads the events of one response.
pub(super) struct AnswerReader {
    under: PromptPrefix,
    blocks: Vec<PartialBlock>,
    counts: Counts,
    stop: Option<StopReason>,
}

impl AnswerReader {
    pub(super) fn new(input: &RequestInput<'_>) -> Self {
        Self {
            under: PromptPrefix::of(input.request, input.offer),
            blocks: Vec::new(),
            counts: Counts::default(),
            stop: None,
        }
    }

    /// Begins a block, usually empty.
    fn open(&mut self, index: Option<u64>, opened: &BlockStart<'_>, answer: &mut Answer) {
        let index = index
            .unwrap_or_else(|| self.blocks.last().map_or(0, |last| last.index.wrapping_add(1)));
        let content = match text(&opened.kind) {
            "text" => {
                let text = text(&opened.text);
                answer.text(text);
                Content::Text { bytes: text.len() }
            }
            "thinking" => {
                let thinking = text(&opened.thinking);
                answer.reasoning(thinking);
                let (thinking, signature) =
                    (thinking.to_owned(), text(&opened.signature).to_owned());
                Content::Thinking { thinking, signature }
            }
            "redacted_thinking" => Content::Redacted { data: text(&opened.data).to_owned() },
            "tool_use" => {
                let arguments = opened.input.map_or("", RawValue::get);
                answer.begin_call(PartialCall {
                    index,
                    id: text(&opened.id).to_owned(),
                    name: text(&opened.name).to_owned(),
                    arguments: arguments.to_owned(),
                    ..PartialCall::default()
                });
                Content::Call { whole: true }
            }
            _ => Content::Other,
        };
        answer.begin_part();
        self.blocks.push(PartialBlock { index, content });
    }

    /// Adds a piece to a block; without a number, to the one that began last.
    fn extend(&mut self, index: Option<u64>, delta: &Delta<'_>, answer: &mut Answer) {
        let block = match index {
            Some(index) => self.blocks.iter_mut().rev().find(|block| block.index == index),
            None => self.blocks.last_mut(),
        };
        let Some(PartialBlock { index, content }) = block else {
            // Text for a block that was not begun is still text.
            let text = delta.piece("text_delta", &delta.text);
            answer.text(text);
            let content = Content::Text { bytes: text.len() };
            answer.begin_part();
            return self.blocks.push(PartialBlock { index: index.unwrap_or_default(), content });
        };
        match content {
            Content::Text { bytes } => {
                let piece = delta.piece("text_delta", &delta.text);
                *bytes += piece.len();
                answer.text(piece);
            }
            Content::Thinking { thinking, signature } => {
                let piece = delta.piece("thinking_delta", &delta.thinking);
                thinking.push_str(piece);
                answer.reasoning(piece);
                let whole = delta.piece("signature_delta", &delta.signature);
                if !whole.is_empty() {
                    whole.clone_into(signature);
                }
            }
            Content::Call { whole } => {
                let piece = delta.piece("input_json_delta", &delta.partial_json);
                if let Some(call) = answer.call(*index).filter(|_| !piece.is_empty()) {
                    if std::mem::take(whole) {
                        call.arguments.clear();
                    }
                    call.arguments.push_str(piece);
                }
            }
            Content::Redacted { .. } | Content::Other => {}
        }
    }

    /// Updates the message itself.
    fn change(
        &mut self,
        reason: &Option<Text<'_>>,
        details: Option<&Value>,
    ) -> Result<(), ModelError> {
        let Some(Text(reason)) = reason else { return Ok(()) };
        self.stop = Some(match &**reason {
            "end_turn" | "tool_use" => StopReason::Finished,
            "model_context_window_exceeded" => StopReason::MaxTokens,
            reason if is_output_limit(reason) => StopReason::MaxTokens,
            "stop_sequence" => StopReason::StopSequence,
            "refusal" => return Err(declined(details)),
            _ => StopReason::Other,
        });
        Ok(())
    }

    fn count(&mut self, counts: &Counts, answer: &mut Answer) {
        let known = &mut self.counts;
        known.input_tokens = counts.input_tokens.or(known.input_tokens);
        known.cache_creation_input_tokens =
            counts.cache_creation_input_tokens.or(known.cache_creation_input_tokens);
        known.cache_read_input_tokens =
            counts.cache_read_input_tokens.or(known.cache_read_input_tokens);
        known.output_tokens = counts.output_tokens.or(known.output_tokens);
        let read =
            [known.input_tokens, known.cache_creation_input_tokens, known.cache_read_input_tokens];
        answer.usage = Usage {
            input_tokens: read.into_iter().flatten().fold(0, u64::saturating_add),
            cached_input_tokens: known.cache_read_input_tokens.unwrap_or_default(),
            cache_write_tokens: known.cache_creation_input_tokens.unwrap_or_default(),
            output_tokens: known.output_tokens.unwrap_or_default(),
            cost_usd: None,
        };
    }

    /// Completes the message.
    fn finish(&mut self, answer: &mut Answer) {
        answer.stop = self.stop.unwrap_or(StopReason::Other);
        let settled = answer.settle();
        settled
            .remove_repeated(&mut self.blocks, |open| matches!(open.content, Content::Call { .. }));
        let is_thought = |open: &PartialBlock| {
            matches!(open.content, Content::Thinking { .. } | Content::Redacted { .. })
        };
        if !settled.has_other_text && self.blocks.iter().any(is_thought) {
            let blocks = self.blocks.iter().filter_map(|open| open.content.kept());
            let kept = thinking::keep(blocks, &thinking::digest(&self.under), answer.text_so_far());
            answer.vendor = Some(kept);
        }
        answer.complete();
    }
}

impl Delta<'_> {
    /// The value of a field in a delta of this kind. In a delta of unknown kind the same field may
    /// have another meaning.
    fn piece<'t>(&self, kind: &str, field: &'t Option<Text<'_>>) -> &'t str {
        let is_of_kind = self.kind.as_ref().is_none_or(|Text(own)| own == kind);
        if is_of_kind { text(field) } else { "" }
    }
}

impl Content {
    fn kept(&self) -> Option<StoredBlock<'_>> {
        match self {
            Self::Text { bytes } => Some(StoredBlock::Text { bytes: *bytes }),
            Self::Thinking { thinking, signature } => {
                Some(StoredBlock::Thinking { thinking, signature })
            }
            Self::Redacted { data } => Some(StoredBlock::Redacted { data }),
            Self::Call { .. } => Some(StoredBlock::Call),
            Self::Other => None,
        }
    }
}

impl Reader for AnswerReader {
    fn read(&mut self, frame: &Frame, answer: &mut Answer) -> Result<(), ModelError> {
        if frame.event == "error" {
            return Err(failure::in_stream_text(&frame.data, refusal::in_stream));
        }
        if frame.data.trim().is_empty() {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_str(&frame.data).map_err(failure::unreadable)?;
        let started = event.message.and_then(|message| message.usage);
        if let Some(counts) = started.or(event.usage) {
            self.count(&counts, answer);
        }
        match event.kind.as_ref().map_or(&*frame.event, |Text(kind)| kind) {
            "content_block_start" => {
                if let Some(opened) = event.content_block {
                    self.open(event.index, &opened, answer);
                }
            }
            "content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.extend(event.index, &delta, answer);
                }
            }
            "message_delta" => {
                if let Some(delta) = &event.delta {
                    self.change(&delta.stop_reason, delta.stop_details.as_ref())?;
                }
            }
            "message" => {
                let whole: WholeMessage<'_> =
                    serde_json::from_str(&frame.data).map_err(failure::unreadable)?;
                for (index, block) in (0..).zip(whole.content) {
                    self.open(Some(index), &block, answer);
                }
                self.change(&whole.stop_reason, whole.stop_details.as_ref())?;
                self.finish(answer);
            }
            "message_stop" => self.finish(answer),
            "error" => return Err(failure::in_stream_text(&frame.data, refusal::in_stream)),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, answer: &mut Answer) {
        // After the stop reason, no part of a response follows.
        if self.stop.is_some() {
            self.finish(answer);
        }
    }
}

/// A refusal by the model or its vendor.
fn declined(details: Option<&Value>) -> ModelError {
    let text = |key: &str| details?.get(key)?.as_str();
    let category = text("category").map(|category| format!("category {category}"));
    let words: Vec<_> = text("explanation").into_iter().chain(category.as_deref()).collect();
    failure::in_stream(Refusal {
        class: Some(ModelErrorClass::ContentFilter),
        message: Some(words.join("; ")),
        retry_after: None,
    })
}
