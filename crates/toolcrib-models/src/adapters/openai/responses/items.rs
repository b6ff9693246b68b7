//! Partial items.
//!
//! Each item is announced, comes in pieces, and comes once more as a whole; then the whole response
//! has all of them again. Servers omit some of that. So pieces are passed on when they arrive, and
//! of a whole item only the part that no piece contained.

use std::{cell::LazyCell, collections::BTreeMap};

use serde_json::{Map, Value};
use toolcrib_core::{SEARCH_TOOLS, VendorContent};

use super::{
    super::super::{
        answer::{Answer, SettledAnswer},
        lenient::{MaybeList, MaybeObject, TextOrObject},
        repeats::PartialCall,
    },
    item::{Item, ItemPart},
    kept::{StoredItem, keep, without_nulls},
};

/// The type of a call of the tool search.
const TOOL_SEARCH: &str = "tool_search_call";

/// The items of a response, in the order in which they began.
#[derive(Default)]
pub(super) struct Items {
    begun: Vec<PartialItem>,
    /// The model's text when it declines to answer.
    declined: String,
    /// Whether any reasoning was shown.
    has_thought: bool,
}

struct PartialItem {
    /// The server's number for it, if any.
    index: Option<u64>,
    /// The id; some servers send none, or a different one each time.
    id: String,
    /// Whether it was complete once.
    is_done: bool,
    /// Whether the whole response contains it.
    is_final: bool,
    content: Content,
}

enum Content {
    Message {
        phase: Option<String>,
        parts: Parts,
    },
    /// The response identifies the call by the position of its item.
    Call {
        /// The id that its result has, once known.
        call_id: String,
        is_search: bool,
    },
    Reasoning {
        /// The item, once it is complete.
        item: Option<Value>,
        parts: Parts,
    },
    /// An item of unknown kind.
    Other,
}

/// A known kind of item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Call,
    Reasoning,
    Other,
}

/// The texts of an item's parts.
#[derive(Default)]
struct Parts(BTreeMap<Part, String>);

/// A part of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Text(u64),
    /// A part of the model's refusal.
    Refusal(u64),
    /// A part of the summary of the reasoning.
    Summary(u64),
    /// A part of the reasoning itself, which open models show.
    Thought(u64),
}

/// An event's reference to its item.
#[derive(Default)]
pub(super) struct ItemRef<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
}

/// An event's text for a part.
pub(super) enum TextUpdate<'a> {
    /// A further piece.
    More(&'a str),
    /// The whole text.
    Whole(&'a str),
}

impl Items {
    /// Handles an item that is announced, or complete: then with all of its fields.
    pub(super) fn item(
        &mut self,
        which: &ItemRef<'_>,
        item: &Item<'_>,
        whole: Option<&dyn Fn() -> Option<Value>>,
        answer: &mut Answer,
    ) {
        let is_done = whole.is_some();
        let kind = Kind::of(item);
        let which = ItemRef { index: which.index, id: item.id.text() };
        let same = self.find_item(&which, kind, item.call_id.text(), is_done);
        let position = same.unwrap_or_else(|| self.begin(&which, kind, answer));
        self.take(position, item, whole, answer);
        if let Some(begun) = self.begun.get_mut(position) {
            begun.is_done |= is_done;
        }
    }

    /// Handles the whole response: adds the missing parts. Neither numbers nor ids need to match
    /// those of the events, so an item is also recognized as the next of its kind. `whole` reads the items
    /// with all of their fields.
    pub(super) fn all(
        &mut self,
        items: &[MaybeObject<Item<'_>>],
        whole: impl FnOnce() -> Option<Vec<Value>>,
        answer: &mut Answer,
    ) {
        let whole = LazyCell::new(|| whole().unwrap_or_default());
        let none = Item::default();
        for (at, MaybeObject(item)) in items.iter().enumerate() {
            let item = item.as_ref().unwrap_or(&none);
            let (kind, id) = (Kind::of(item), item.id.text());
            let next = |is: &dyn Fn(&PartialItem) -> bool| {
                let open = |begun: &PartialItem| !begun.is_final && begun.content.kind() == kind;
                self.begun.iter().position(|begun| open(begun) && is(begun))
            };
            let call_id = item.call_id.text();
            let same = next(&|begun| begun.content.is_call(call_id))
                .or_else(|| next(&|begun| !id.is_empty() && begun.id == id));
            let position = same
                .or_else(|| next(&|_| true))
                .unwrap_or_else(|| self.begin(&ItemRef { index: None, id }, kind, answer));
            if let Some(begun) = self.begun.get_mut(position) {
                begun.is_final = true;
            }
            self.take(position, item, Some(&|| whole.get(at).cloned()), answer);
        }
    }

    /// Handles the text of a part of an item.
    pub(super) fn part(
        &mut self,
        which: &ItemRef<'_>,
        part: Part,
        said: &TextUpdate<'_>,
        answer: &mut Answer,
    ) {
        let kind = part.kind();
        // Text for an item that was not announced is still text.
        let position = self.find(which, kind).unwrap_or_else(|| self.begin(which, kind, answer));
        self.add(position, part, said, answer);
    }

    /// Adds arguments of a call: a piece, or the whole.
    pub(super) fn arguments(
        &mut self,
        which: &ItemRef<'_>,
        said: &TextUpdate<'_>,
        answer: &mut Answer,
    ) {
        let position =
            self.find(which, Kind::Call).unwrap_or_else(|| self.begin(which, Kind::Call, answer));
        let Some(call) = answer.call(number(position)) else { return };
        match said {
            TextUpdate::More(piece) => call.arguments.push_str(piece),
            TextUpdate::Whole("") => {}
            TextUpdate::Whole(all) => (*all).clone_into(&mut call.arguments),
        }
    }

    /// The model's refusal; empty if it did not decline.
    pub(super) fn declined(&self) -> &str {
        &self.declined
    }

    /// Removes the items of repeated calls.
    pub(super) fn settle(&mut self, settled: &SettledAnswer) {
        settled.remove_repeated(&mut self.begun, |item| item.content.kind() == Kind::Call);
    }

    /// The content to keep.
    pub(super) fn keep(&self, server: &str, model: &str) -> Option<VendorContent> {
        let kept: Vec<_> = self.begun.iter().filter_map(PartialItem::kept).collect();
        keep(server, model, &kept)
    }

    /// The item of that kind that an item of the stream continues or repeats. Some servers give all
    /// items one number, and others give an item another id in each event: so a different id begins
    /// another item only where the one before is complete, or where the event announces an item.
    fn find_item(
        &self,
        which: &ItemRef<'_>,
        kind: Kind,
        call_id: &str,
        is_done: bool,
    ) -> Option<usize> {
        let same = self.begun.iter().rposition(|begun| begun.content.is_call(call_id));
        if same.is_some() {
            return same;
        }
        let position = self.find(which, kind)?;
        let begun = self.begun.get(position)?;
        let is_other_call = match &begun.content {
            Content::Call { call_id: known, .. } => !known.is_empty() && !call_id.is_empty(),
            _ => false,
        };
        let has_same_id = !which.id.is_empty() && begun.id == which.id;
        let has_other_id = !which.id.is_empty() && !begun.id.is_empty() && !has_same_id;
        let is_other = match has_same_id {
            true => is_other_call && begun.is_done,
            false => is_other_call || (has_other_id && (begun.is_done || !is_done)),
        };
        (!is_other).then_some(position)
    }

    /// The item of that kind that an event refers to: by its number and its id, otherwise by one of
    /// them; without either, the last.
    fn find(&self, which: &ItemRef<'_>, kind: Kind) -> Option<usize> {
        let last = |is: &dyn Fn(&PartialItem) -> bool| {
            self.begun.iter().rposition(|begun| begun.content.kind() == kind && is(begun))
        };
        let has_id = |begun: &PartialItem| !which.id.is_empty() && begun.id == which.id;
        match which {
            ItemRef { index: Some(index), .. } => {
                let has_index = |begun: &PartialItem| begun.index == Some(*index);
                last(&|begun| has_index(begun) && has_id(begun)).or_else(|| last(&has_index))
            }
            ItemRef { id, .. } if !id.is_empty() => last(&has_id),
            _ => last(&|_| true),
        }
    }

    fn begin(&mut self, which: &ItemRef<'_>, kind: Kind, answer: &mut Answer) -> usize {
        let position = self.begun.len();
        let content = match kind {
            Kind::Message => Content::Message { phase: None, parts: Parts::default() },
            Kind::Reasoning => Content::Reasoning { item: None, parts: Parts::default() },
            Kind::Call => {
                answer
                    .begin_call(PartialCall { index: number(position), ..PartialCall::default() });
                Content::Call { call_id: String::new(), is_search: false }
            }
            Kind::Other => Content::Other,
        };
        let id = which.id.to_owned();
        answer.begin_part();
        let (index, is_done, is_final) = (which.index, false, false);
        self.begun.push(PartialItem { index, id, is_done, is_final, content });
        position
    }

    /// Adds the parts of an item that have not been received.
    fn take(
        &mut self,
        position: usize,
        item: &Item<'_>,
        whole: Option<&dyn Fn() -> Option<Value>>,
        answer: &mut Answer,
    ) {
        let Some(begun) = self.begun.get_mut(position) else { return };
        let id = item.id.text();
        if !id.is_empty() {
            id.clone_into(&mut begun.id);
        }
        match &mut begun.content {
            Content::Message { phase, .. } => {
                if let Some(said) = &item.phase.0 {
                    *phase = Some(said.clone().into_owned());
                }
            }
            Content::Call { call_id, is_search } => {
                if !item.call_id.text().is_empty() {
                    item.call_id.text().clone_into(call_id);
                }
                *is_search |= item.kind.text() == TOOL_SEARCH;
                if let Some(call) = answer.call(number(position)) {
                    update_call(call, item);
                }
            }
            Content::Reasoning { item: known, .. } => {
                if let Some(Value::Object(fields)) = whole.and_then(|whole| whole()) {
                    *known = merged(known.take(), fields);
                }
            }
            Content::Other => {}
        }
        for MaybeList(parts) in [&item.summary, &item.content] {
            for (index, MaybeObject(said)) in (0..).zip(parts) {
                if let Some((part, said)) = said.as_ref().and_then(|said| Part::of(said, index)) {
                    self.add(position, part, &TextUpdate::Whole(said), answer);
                }
            }
        }
    }

    fn add(&mut self, position: usize, part: Part, said: &TextUpdate<'_>, answer: &mut Answer) {
        let content = self.begun.get_mut(position).map(|begun| &mut begun.content);
        let Some(Content::Message { parts, .. } | Content::Reasoning { parts, .. }) = content
        else {
            return;
        };
        let so_far = parts.0.entry(part).or_default();
        let piece = match said {
            TextUpdate::More(piece) => piece,
            // If the whole text differs from the pieces, the pieces win: they were already shown.
            TextUpdate::Whole(all) => all.strip_prefix(so_far.as_str()).unwrap_or_default(),
        };
        if piece.is_empty() {
            return;
        }
        let is_first = so_far.is_empty();
        so_far.push_str(piece);
        match part {
            Part::Text(_) => answer.text(piece),
            Part::Refusal(_) => self.declined.push_str(piece),
            Part::Summary(_) | Part::Thought(_) => {
                // Each part is a separate paragraph.
                if is_first && self.has_thought {
                    answer.reasoning("\n\n");
                }
                self.has_thought = true;
                answer.reasoning(piece);
            }
        }
    }
}

/// Adds the parts of a call that have not been received.
fn update_call(call: &mut PartialCall, item: &Item<'_>) {
    if item.kind.text() == TOOL_SEARCH {
        SEARCH_TOOLS.clone_into(&mut call.name);
        // Complete in each event.
        if let TextOrObject::Object(arguments) = &item.arguments {
            call.arguments = arguments.to_string();
        }
    }
    let arguments = match &item.arguments {
        TextOrObject::Text(arguments) => arguments,
        _ => "",
    };
    for (field, said) in [
        (&mut call.id, item.call_id.text()),
        (&mut call.name, item.name.text()),
        (&mut call.arguments, arguments),
    ] {
        if !said.is_empty() {
            said.clone_into(field);
        }
    }
}

impl PartialItem {
    fn kept(&self) -> Option<StoredItem<'_>> {
        let id = Some(self.id.as_str()).filter(|id| !id.is_empty());
        match &self.content {
            Content::Message { phase, parts } => {
                Some(StoredItem::Message { id, phase: phase.as_deref(), bytes: parts.text_bytes() })
            }
            Content::Call { is_search, .. } => Some(StoredItem::Call { id, is_search: *is_search }),
            Content::Reasoning { item: Some(item), .. } if can_go_back(item) => {
                Some(StoredItem::Reasoning(item))
            }
            Content::Reasoning { .. } | Content::Other => None,
        }
    }
}

impl Content {
    /// Whether it is the call with this id.
    fn is_call(&self, id: &str) -> bool {
        matches!(self, Self::Call { call_id, .. } if !id.is_empty() && call_id == id)
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Message { .. } => Kind::Message,
            Self::Call { .. } => Kind::Call,
            Self::Reasoning { .. } => Kind::Reasoning,
            Self::Other => Kind::Other,
        }
    }
}

impl Kind {
    fn of(item: &Item<'_>) -> Self {
        match item.kind.text() {
            "message" => Self::Message,
            "function_call" => Self::Call,
            // Others are executed by the vendor.
            TOOL_SEARCH if item.execution.text() == "client" => Self::Call,
            // The vendor's summary of the conversation so far, encrypted as reasoning is.
            "reasoning" | "compaction" => Self::Reasoning,
            _ => Self::Other,
        }
    }
}

impl Part {
    /// A part in an item, and its text.
    pub(super) fn of<'p>(part: &'p ItemPart<'_>, index: u64) -> Option<(Self, &'p str)> {
        Some(match part.kind.text() {
            "output_text" => (Self::Text(index), part.text.text()),
            "summary_text" => (Self::Summary(index), part.text.text()),
            "reasoning_text" => (Self::Thought(index), part.text.text()),
            "refusal" => (Self::Refusal(index), part.refusal.text()),
            _ => return None,
        })
    }

    fn kind(self) -> Kind {
        match self {
            Self::Text(_) | Self::Refusal(_) => Kind::Message,
            Self::Summary(_) | Self::Thought(_) => Kind::Reasoning,
        }
    }
}

impl Parts {
    fn text_bytes(&self) -> usize {
        let texts = self.0.iter().filter(|(part, _)| matches!(part, Part::Text(_)));
        texts.map(|(_, text)| text.len()).sum()
    }
}

/// Merges the fields of an item: later ones win.
fn merged(earlier: Option<Value>, fields: Map<String, Value>) -> Option<Value> {
    let Value::Object(mut item) = without_nulls(fields) else { return earlier };
    if let Some(Value::Object(earlier)) = earlier {
        for (key, value) in earlier {
            item.entry(key).or_insert(value);
        }
    }
    Some(Value::Object(item))
}

/// Whether the vendor can read the reasoning again: encrypted, or in the form of open models.
fn can_go_back(item: &Value) -> bool {
    let is_encrypted =
        item.get("encrypted_content").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    is_encrypted
        || item.get("content").and_then(Value::as_array).is_some_and(|parts| !parts.is_empty())
}

fn number(position: usize) -> u64 {
    u64::try_from(position).unwrap_or(u64::MAX)
}
