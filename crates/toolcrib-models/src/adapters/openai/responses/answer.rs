//! Assembles events into a response.

use serde::Deserialize;
use serde_json::Value;
use toolcrib_core::{ModelError, StopReason, Usage};

use super::{
    super::{
        super::{
            answer::Answer,
            failure,
            frames::Frame,
            lenient::{IsSet, MaybeObject, Text, text},
            protocol::{Reader, RequestInput},
        },
        refusal::{self, declined},
    },
    item::{Item, ItemPart},
    items::{ItemRef, Items, Part, TextUpdate},
};

/// The end marker of Chat Completions streams. It is not JSON.
const DONE: &str = "[DONE]";

/// Prefixes of the events about an item or a part of one. In other events the same fields may have
/// another meaning.
const OF_ITEMS: [&str; 7] = [
    "response.content_part.",
    "response.function_call_arguments.",
    "response.output_item.",
    "response.output_text.d",
    "response.reasoning_summary_",
    "response.reasoning_text.",
    "response.refusal.",
];

/// The common fields of all events.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    #[serde(default)]
    error: IsSet,
    /// `response` for the whole response, from a server that ignores `stream`.
    #[serde(borrow)]
    object: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
}

/// An event about an item or a part of one. None has all fields.
#[derive(Deserialize)]
struct ItemEvent<'a> {
    output_index: Option<u64>,
    #[serde(borrow)]
    item_id: Option<Text<'a>>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
    #[serde(default, borrow)]
    item: MaybeObject<Item<'a>>,
    #[serde(default, borrow)]
    part: MaybeObject<ItemPart<'a>>,
}

/// The same with all fields of the item.
#[derive(Deserialize)]
struct WholeItem {
    item: Value,
}

/// An event about the whole response.
#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(borrow)]
    response: FullResponse<'a>,
}

/// The same with all fields of its items.
#[derive(Deserialize)]
struct WholeEvent {
    response: WholeOutput,
}

#[derive(Deserialize)]
struct WholeOutput {
    output: Vec<Value>,
}

/// The whole response. It also repeats the request, including the tools, which is ignored.
#[derive(Deserialize)]
struct FullResponse<'a> {
    #[serde(borrow)]
    output: Option<Vec<MaybeObject<Item<'a>>>>,
    usage: Option<Counts>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputTokenDetails>,
    /// Includes reasoning.
    output_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct InputTokenDetails {
    cached_tokens: Option<u64>,
}

/// A partial response.
pub(super) struct AnswerReader {
    server: String,
    model: String,
    items: Items,
}

impl AnswerReader {
    pub(super) fn of(input: &RequestInput<'_>) -> Self {
        Self {
            server: input.server.to_owned(),
            model: input.model.to_owned(),
            items: Items::default(),
        }
    }

    fn item(&mut self, kind: &str, event: &ItemEvent<'_>, data: &str, answer: &mut Answer) {
        let none = Item::default();
        let item = event.item.0.as_ref().unwrap_or(&none);
        let fields = || serde_json::from_str(data).ok().map(|WholeItem { item }| item);
        let (content, summary) =
            (event.content_index.unwrap_or(0), event.summary_index.unwrap_or(0));
        let id = text(&event.item_id);
        let which = &ItemRef { index: event.output_index, id };
        let more = || TextUpdate::More(text(&event.delta));
        let items = &mut self.items;
        let (part, said) = match kind {
            "response.output_item.added" => return items.item(which, item, None, answer),
            "response.output_item.done" => return items.item(which, item, Some(&fields), answer),
            "response.function_call_arguments.delta" => {
                return items.arguments(which, &more(), answer);
            }
            "response.function_call_arguments.done" => {
                return items.arguments(which, &whole(&event.arguments), answer);
            }
            "response.output_text.delta" => (Part::Text(content), more()),
            "response.output_text.done" => (Part::Text(content), whole(&event.text)),
            "response.refusal.delta" => (Part::Refusal(content), more()),
            "response.refusal.done" => (Part::Refusal(content), whole(&event.refusal)),
            "response.reasoning_summary_text.delta" => (Part::Summary(summary), more()),
            "response.reasoning_summary_text.done" => (Part::Summary(summary), whole(&event.text)),
            "response.reasoning_text.delta" => (Part::Thought(content), more()),
            "response.reasoning_text.done" => (Part::Thought(content), whole(&event.text)),
            "response.content_part.added"
            | "response.content_part.done"
            | "response.reasoning_summary_part.added"
            | "response.reasoning_summary_part.done" => {
                let index = event.summary_index.unwrap_or(content);
                match event.part.0.as_ref().and_then(|part| Part::of(part, index)) {
                    Some((part, text)) => (part, TextUpdate::Whole(text)),
                    None => return,
                }
            }
            _ => return,
        };
        items.part(which, part, &said, answer);
    }

    /// Handles the end of the response, with its reason.
    fn end(
        &mut self,
        kind: &str,
        whole: FullResponse<'_>,
        output: impl FnOnce() -> Option<Vec<Value>>,
        answer: &mut Answer,
    ) -> Result<(), ModelError> {
        if let Some(counts) = &whole.usage {
            answer.usage = counts.used();
        }
        if kind == "response.failed" {
            return Err(failure::in_stream(refusal::in_stream(&whole.error)));
        }
        self.items.all(whole.output.as_deref().unwrap_or_default(), output, answer);
        if !self.items.declined().is_empty() {
            return Err(declined(self.items.declined()));
        }
        let reason = whole.incomplete_details.and_then(|details| details.reason);
        let is_incomplete = kind == "response.incomplete" || text(&whole.status) == "incomplete";
        answer.stop = match reason.as_ref().map(|Text(reason)| &**reason) {
            Some("content_filter") => {
                return Err(declined("its content filter ended the response"));
            }
            // There is no other documented reason.
            Some(_) => StopReason::MaxTokens,
            None if is_incomplete => StopReason::MaxTokens,
            None => StopReason::Finished,
        };
        let settled = answer.settle();
        self.items.settle(&settled);
        // Truncated items do not go back.
        if answer.stop == StopReason::Finished && !settled.has_other_text {
            answer.vendor = self.items.keep(&self.server, &self.model);
        }
        answer.complete();
        Ok(())
    }
}

impl Reader for AnswerReader {
    fn read(&mut self, frame: &Frame, answer: &mut Answer) -> Result<(), ModelError> {
        let data = frame.data.trim();
        if frame.event == "error" {
            return Err(failure::in_stream_text(data, refusal::in_stream));
        }
        // Some servers end a stream like one of Chat Completions.
        if data.is_empty() || data.starts_with(DONE) {
            return Ok(());
        }
        // The name of an event repeats its type. Without a known name, the data is read for the type
        // first, which costs as much as reading all fields.
        let event: Option<Event<'_>> = match is_of_item(&frame.event) || is_end(&frame.event) {
            true => None,
            false => Some(serde_json::from_str(data).map_err(failure::unreadable)?),
        };
        if let Some(Event { kind: None, object: Some(object), status, .. }) = &event
            && object.0 == "response"
        {
            let whole = serde_json::from_str(data).map_err(failure::unreadable)?;
            let output = || serde_json::from_str(data).ok().map(|WholeOutput { output }| output);
            let kind = match text(status) {
                "failed" | "cancelled" => "response.failed",
                "incomplete" => "response.incomplete",
                _ => "response.completed",
            };
            return self.end(kind, whole, output, answer);
        }
        let kind = event.as_ref().and_then(|event| event.kind.as_ref());
        let kind = kind.map_or(&*frame.event, |Text(kind)| kind);
        match kind {
            _ if is_end(kind) => {
                let ResponseEvent { response } =
                    serde_json::from_str(data).map_err(failure::unreadable)?;
                let output = || {
                    let whole = serde_json::from_str(data).ok();
                    whole.map(|WholeEvent { response }| response.output)
                };
                self.end(kind, response, output, answer)?;
            }
            "error" => return Err(failure::in_stream_text(data, refusal::in_stream)),
            "" if event.as_ref().is_some_and(|event| event.error.0) => {
                return Err(failure::in_stream_text(data, refusal::in_stream));
            }
            _ if is_of_item(kind) => {
                let event = serde_json::from_str(data).map_err(failure::unreadable)?;
                self.item(kind, &event, data, answer);
            }
            _ => {}
        }
        Ok(())
    }
}

fn is_of_item(kind: &str) -> bool {
    OF_ITEMS.iter().any(|group| kind.starts_with(group))
}

fn is_end(kind: &str) -> bool {
    matches!(kind, "response.completed" | "response.incomplete" | "response.failed")
}

impl Counts {
    fn used(&self) -> Usage {
        let cached = self.input_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        Usage {
            input_tokens: self.input_tokens.unwrap_or(0),
            cached_input_tokens: cached.unwrap_or(0),
            output_tokens: self.output_tokens.unwrap_or(0),
            ..Usage::default()
        }
    }
}

fn whole<'t>(field: &'t Option<Text<'_>>) -> TextUpdate<'t> {
    TextUpdate::Whole(text(field))
}
