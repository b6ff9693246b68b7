//! The conversations that a model was sent, as written: the next request of a conversation writes only
//! what is new, and copies the rest.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use serde::Serialize;
use toolcrib_core::{
    Arguments, ContentBlock, Menu, Message, ModelRequest, SEARCH_TOOLS, ToolCall, ToolName,
};

use super::{prompt_prefix::PromptPrefix, protocol::Offer, sent_parts::Part};

/// The limit of the remembered conversations of a model, in bytes of their JSON and their messages.
/// A vendor accepts requests of up to 50 MB, most of them images.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The limit of their number: each request is compared with the first message of all of them.
const MOST_CONVERSATIONS: usize = 256;

/// The most recently sent conversations of a model, the last one at the end.
#[derive(Default)]
pub(super) struct Conversations(Mutex<Known>);

#[derive(Default)]
struct Known {
    conversations: VecDeque<Conversation>,
    bytes: usize,
}

impl Conversations {
    /// Takes the conversation that a request continues, or begins one. Another request of the same
    /// conversation at the same time begins one too.
    pub(super) fn take(
        &self,
        request: &ModelRequest,
        offer: Offer<'_>,
        version: Option<u64>,
    ) -> Conversation {
        let mut known = self.0.lock();
        let goes_on = |known: &Conversation| known.goes_on_in(request, offer, version);
        let position = known.conversations.iter().rposition(goes_on);
        match position.and_then(|position| known.conversations.remove(position)) {
            Some(conversation) => {
                known.bytes = known.bytes.saturating_sub(conversation.bytes());
                conversation
            }
            None => Conversation::new(request, offer, version),
        }
    }

    /// Remembers a conversation, in place of those that were not sent for the longest time.
    pub(super) fn put(&self, conversation: Conversation) {
        if conversation.bytes() > MOST_BYTES {
            return;
        }
        let mut known = self.0.lock();
        known.bytes += conversation.bytes();
        known.conversations.push_back(conversation);
        while known.bytes > MOST_BYTES || known.conversations.len() > MOST_CONVERSATIONS {
            let Some(oldest) = known.conversations.pop_front() else { return };
            known.bytes = known.bytes.saturating_sub(oldest.bytes());
        }
    }
}

/// A conversation as written, and everything that decided how.
pub(super) struct Conversation {
    /// The version of the session's parts.
    version: Option<u64>,
    /// Whether the vendor loaded found tools.
    loads: bool,
    menu: Arc<Menu>,
    /// The positions of results of searches, and the tools that were found in them.
    searches: Vec<(usize, Vec<ToolName>)>,
    /// The tools and the system text, if there are messages that only go back under the same ones.
    pub(super) under: Option<PromptPrefix>,
    /// The messages that are written. Their texts are kept, so each address stays that of one text.
    messages: Vec<Message>,
    message_bytes: usize,
    pub(super) list: MessageList,
    /// A key that depends only on the system text and the first message.
    key: Option<(Arc<str>, Arc<str>)>,
}

impl Conversation {
    fn new(request: &ModelRequest, offer: Offer<'_>, version: Option<u64>) -> Self {
        Self {
            version,
            loads: offer.loads(),
            menu: Arc::clone(&request.menu),
            searches: Vec::new(),
            under: None,
            messages: Vec::new(),
            message_bytes: 0,
            list: MessageList::default(),
            key: None,
        }
    }

    /// The number of messages that are written.
    pub(super) fn written(&self) -> usize {
        self.messages.len()
    }

    /// The position of the first message that is still needed.
    pub(super) fn from(&self) -> usize {
        self.messages.len().saturating_sub(self.list.results)
    }

    /// Notes that all messages of a request are written.
    pub(super) fn wrote(&mut self, request: &ModelRequest, offer: Offer<'_>) {
        self.menu = Arc::clone(&request.menu);
        for (at, message) in request.messages.iter().enumerate().skip(self.messages.len()) {
            if self.loads && is_search(message) {
                self.searches.push((at, offer.names_found_in(message)));
            }
            self.message_bytes += bytes(message);
            self.messages.push(message.clone());
        }
    }

    /// A key that depends only on the system text and the first message of the request.
    pub(super) fn key(&mut self, system: &Arc<str>, make: impl FnOnce() -> String) -> Arc<str> {
        match &self.key {
            Some((of, key)) if Arc::ptr_eq(of, system) && !self.messages.is_empty() => {
                Arc::clone(key)
            }
            _ => {
                let key: Arc<str> = make().into();
                self.key = Some((Arc::clone(system), Arc::clone(&key)));
                key
            }
        }
    }

    /// Whether a request continues it, written in the same form.
    fn goes_on_in(&self, request: &ModelRequest, offer: Offer<'_>, version: Option<u64>) -> bool {
        let begins_with = |known: &[Message]| {
            known.len() <= request.messages.len()
                && known.iter().zip(request.messages.iter()).all(|(one, other)| is_same(one, other))
        };
        let has_same_found = || {
            Arc::ptr_eq(&self.menu, &request.menu)
                || self.searches.iter().all(|(at, found)| {
                    let message = self.messages.get(*at);
                    message.is_some_and(|message| offer.names_found_in(message) == *found)
                })
        };
        let is_under_same = || {
            self.under.as_ref().is_none_or(|under| under.is_same(&PromptPrefix::of(request, offer)))
        };
        self.version == version
            && self.loads == offer.loads()
            && begins_with(&self.messages)
            && has_same_found()
            && is_under_same()
    }

    fn bytes(&self) -> usize {
        self.list.json.len() + self.message_bytes
    }
}

/// Messages as the elements of a list in JSON.
#[derive(Default)]
pub(super) struct MessageList {
    /// The elements, without the brackets of the list.
    json: Vec<u8>,
    /// The end of the last element, if further results may be added to it.
    open: Option<&'static str>,
    /// Whether the last message is the user's, calls and results aside.
    pub(super) is_user_last: bool,
    /// The number of results at the end whose blocks are sent after all of them.
    pub(super) results: usize,
    /// Where fields can be added to the last parts of the last two marked messages.
    marks: [Option<usize>; 2],
}

impl MessageList {
    /// Adds elements.
    pub(super) fn extend<T: Serialize>(&mut self, parts: &[Part<T>]) -> serde_json::Result<()> {
        for part in parts {
            self.separate();
            serde_json::to_writer(&mut self.json, part)?;
        }
        Ok(())
    }

    /// Begins an element with this text, which ends with the bracket of a list of parts.
    pub(super) fn begin(&mut self, text: &str) {
        self.separate();
        self.json.extend_from_slice(text.as_bytes());
    }

    /// The same, with a mark.
    pub(super) fn begin_marked(&mut self, text: &str) {
        self.begin(text);
        self.marks = [self.marks[1], None];
    }

    /// Adds parts to the last element.
    pub(super) fn parts<T: Serialize>(&mut self, parts: &[Part<T>]) -> serde_json::Result<()> {
        for part in parts {
            // No value ends with it.
            if !self.json.ends_with(b"[") {
                self.json.push(b',');
            }
            serde_json::to_writer(&mut self.json, part)?;
        }
        Ok(())
    }

    /// Ends the last element with this text.
    pub(super) fn end(&mut self, text: &str) {
        self.json.extend_from_slice(text.as_bytes());
    }

    /// Begins an element of results, unless the last one is such. Further results may be added before
    /// its end.
    pub(super) fn begin_results(&mut self, text: &str, end: &'static str) {
        if self.open.is_none() {
            self.begin_marked(text);
            self.open = Some(end);
        }
    }

    /// Ends an element of results.
    pub(super) fn end_results(&mut self) {
        if let Some(end) = self.open.take() {
            self.end(end);
        }
    }

    /// Marks the end of the last part, if it is an object with fields.
    pub(super) fn mark(&mut self) {
        let fields = self.json.strip_suffix(b"}");
        let has_fields = |fields: &&[u8]| !fields.trim_ascii_end().ends_with(b"{");
        self.marks[1] = fields.filter(has_fields).map(<[u8]>::len);
    }

    /// Appends the elements to a body, with a text at the marks.
    pub(super) fn write(&self, body: &mut Vec<u8>, text: &str) {
        let mut from = 0;
        for mark in self.marks.iter().flatten() {
            body.extend_from_slice(self.json.get(from..*mark).unwrap_or_default());
            body.extend_from_slice(text.as_bytes());
            from = *mark;
        }
        body.extend_from_slice(self.json.get(from..).unwrap_or_default());
        body.extend_from_slice(self.open.unwrap_or_default().as_bytes());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.json.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.json.len()
    }

    fn separate(&mut self) {
        if !self.json.is_empty() {
            self.json.push(b',');
        }
    }
}

/// Whether a message is another one or a clone of it: both share their texts and blocks, and have equal
/// arguments.
#[inline]
fn is_same(one: &Message, other: &Message) -> bool {
    match (one, other) {
        (Message::User { text, blocks }, Message::User { text: other, blocks: other_blocks }) => {
            is_shared(text, other) && has_same_blocks(blocks, other_blocks)
        }
        (
            Message::Assistant { text, calls, vendor },
            Message::Assistant { text: other, calls: other_calls, vendor: other_vendor },
        ) => {
            let content = |vendor: &Option<Arc<_>>| vendor.as_ref().map(Arc::as_ptr);
            content(vendor) == content(other_vendor)
                && is_shared(text, other)
                && calls.len() == other_calls.len()
                && calls.iter().zip(other_calls).all(|(one, other)| is_same_call(one, other))
        }
        (
            Message::Tool { call_id, name, text, blocks, is_error, untrusted: _ },
            Message::Tool {
                call_id: other_id,
                name: other_name,
                text: other,
                blocks: other_blocks,
                is_error: is_other_error,
                untrusted: _,
            },
        ) => {
            is_shared(text, other)
                && is_shared(call_id, other_id)
                && is_shared(name, other_name)
                && has_same_blocks(blocks, other_blocks)
                && is_error == is_other_error
        }
        _ => false,
    }
}

/// A message owns the arguments of its calls, and they can be replaced.
#[inline]
fn is_same_call(one: &ToolCall, other: &ToolCall) -> bool {
    is_shared(&one.id, &other.id)
        && is_shared(&one.name, &other.name)
        && one.arguments == other.arguments
}

#[inline]
fn is_shared(one: &Arc<str>, other: &Arc<str>) -> bool {
    Arc::ptr_eq(one, other) || (one.is_empty() && other.is_empty())
}

#[inline]
fn has_same_blocks(one: &Arc<[ContentBlock]>, other: &Arc<[ContentBlock]>) -> bool {
    Arc::ptr_eq(one, other) || (one.is_empty() && other.is_empty())
}

fn is_search(message: &Message) -> bool {
    matches!(message, Message::Tool { name, .. } if **name == *SEARCH_TOOLS)
}

/// The memory of a message, about.
fn bytes(message: &Message) -> usize {
    let text = match message {
        Message::User { text, .. }
        | Message::Assistant { text, .. }
        | Message::Tool { text, .. } => text.len(),
        _ => 0,
    };
    let blocks: usize = message.blocks().iter().map(|block| block.data().len()).sum();
    let arguments = message.calls().iter().map(|call| match &call.arguments {
        Arguments::Text(text) => text.len(),
        Arguments::Json(json) => json.to_string().len(),
    });
    size_of::<Message>() + text + blocks + arguments.sum::<usize>()
}
