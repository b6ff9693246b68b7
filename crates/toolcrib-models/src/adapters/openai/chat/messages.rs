//! The conversation, as the vendor's messages.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::{Message, ToolCall, VendorContent};

use super::{
    super::{
        super::{
            alternating::{NOTE, alternating, no_answer},
            conversation::{Conversation, MessageList},
            protocol::RequestInput,
            sent_parts::Part as First,
        },
        media,
        own::is_own,
        sent::{arguments, failed, id_of_at_most, name},
    },
    kept::ReasoningFields,
    media::Part,
};

/// Maximum length of a call's id with OpenAI's own models.
const MAX_ID: usize = 40;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum RequestMessage<'a> {
    System { content: &'a str },
    User { content: Content<'a> },
    Assistant(Assistant<'a>),
    Tool { tool_call_id: Cow<'a, str>, content: Cow<'a, str> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
struct Assistant<'a> {
    /// Null beside calls without text. Alone it must be a text.
    content: Option<&'a str>,
    #[serde(flatten)]
    returned: ReasoningFields<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: Function<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

/// Writes messages. Each depends only on itself, so earlier ones keep their bytes.
pub(super) struct MessageWriter<'input, 'a> {
    input: &'input RequestInput<'a>,
    own: bool,
}

impl<'input, 'a> MessageWriter<'input, 'a> {
    pub(super) fn new(input: &'input RequestInput<'a>) -> Self {
        Self { input, own: is_own(input.model) }
    }

    /// Writes the messages that the conversation lacks.
    pub(super) fn add_new(&self, conversation: &mut Conversation) -> serde_json::Result<()> {
        let new = self.input.request.messages.iter().enumerate().skip(conversation.written());
        let list = &mut conversation.list;
        for (position, message) in new {
            match message {
                Message::Tool { .. } if self.input.images.in_results => list.results += 1,
                Message::Tool { .. } => {}
                _ => {
                    self.show(position, list.results, list)?;
                    list.results = 0;
                }
            }
            for (at, message) in alternating(list, position, message) {
                self.add(at, message, list)?;
            }
        }
        Ok(())
    }

    /// Appends all messages to a body.
    pub(super) fn write(&self, list: &MessageList, body: &mut Vec<u8>) -> serde_json::Result<()> {
        let system = &*self.input.request.system;
        let mut parts = MessageList::default();
        if !system.is_empty() {
            parts.extend(&[First::Now(RequestMessage::System { content: system })])?;
        }
        let has_system = !parts.is_empty();
        parts.write(body, "");
        if has_system && !list.is_empty() {
            body.push(b',');
        }
        list.write(body, "");
        // Further results may follow, so these blocks are not yet at their place.
        let mut end = MessageList::default();
        self.show(self.input.request.messages.len(), list.results, &mut end)?;
        if !end.is_empty() {
            body.push(b',');
        }
        end.write(body, "");
        Ok(())
    }

    fn add(&self, at: usize, message: &Message, list: &mut MessageList) -> serde_json::Result<()> {
        let images = self.input.images;
        let note = images.note(at);
        let sent = match message {
            Message::Tool { call_id, text, is_error, .. } => {
                self.input.first.of_message(message, note.as_slice(), || {
                    let text = images.noted(at, text);
                    let content = if *is_error { failed(&text).into_owned().into() } else { text };
                    vec![RequestMessage::Tool { tool_call_id: self.id(call_id), content }]
                })
            }
            Message::User { text, blocks } => {
                let user = || {
                    let text = images.noted(at, text);
                    let media = images.sent(at, blocks).filter_map(media::of).map(Part::from);
                    let media: Vec<_> = media.collect();
                    let content = match media.is_empty() {
                        true => Content::Text(text),
                        false => {
                            let text = Part::text(text.into_owned());
                            Content::Parts([text].into_iter().chain(media).collect())
                        }
                    };
                    vec![RequestMessage::User { content }]
                };
                self.input.first.of_message(message, note.as_slice(), user)
            }
            Message::Assistant { text, calls, vendor } => {
                self.input.first.of_message(message, &[], || {
                    vec![RequestMessage::Assistant(self.assistant(text, calls, vendor.as_deref()))]
                })
            }
            _ => Vec::new(),
        };
        list.extend(&sent)
    }

    fn assistant<'m>(
        &self,
        text: &'m str,
        calls: &'m [ToolCall],
        vendor: Option<&'m VendorContent>,
    ) -> Assistant<'m> {
        // OpenAI requires nothing back, and refuses unknown fields.
        let kept = vendor.filter(|_| !self.own);
        let (returned, extra_contents) = ReasoningFields::of(kept, calls.len(), self.input);
        let calls = calls.iter().enumerate().map(|(position, call)| Call {
            id: self.id(&call.id),
            r#type: "function",
            function: Function { name: name(&call.name), arguments: arguments(&call.arguments) },
            extra_content: extra_contents.get(position).filter(|extra| !extra.is_null()),
        });
        let tool_calls: Vec<_> = calls.collect();
        let content = (!text.is_empty() || tool_calls.is_empty()).then_some(text);
        Assistant { content, returned, tool_calls }
    }

    /// A call's id. Ids of other servers can be longer than OpenAI's limit.
    fn id<'m>(&self, id: &'m str) -> Cow<'m, str> {
        if self.own { id_of_at_most(id, MAX_ID) } else { Cow::Borrowed(id) }
    }

    /// Adds the blocks of the results before a position. They are sent after all results: no other
    /// message may be between those.
    fn show(
        &self,
        position: usize,
        results: usize,
        list: &mut MessageList,
    ) -> serde_json::Result<()> {
        let from = position.saturating_sub(results);
        let results = self.input.request.messages.get(from..position).unwrap_or_default();
        let mut parts = Vec::new();
        for (at, message) in (from..).zip(results) {
            if let Message::Tool { call_id, name, blocks, .. } = message {
                let media = self.input.images.sent(at, blocks).filter_map(media::of);
                parts.extend(shown(call_id, name, media.map(Part::from).collect()));
            }
        }
        if parts.is_empty() {
            return Ok(());
        }
        // They are a user's message, and the calls follow one.
        self.add(NOTE, no_answer(), list)?;
        let shown = || vec![RequestMessage::User { content: Content::Parts(parts) }];
        let results: Vec<_> = results.iter().collect();
        list.extend(&self.input.first.of_messages(&results, &["shown"], shown))
    }
}

/// The blocks of a result, with its origin.
fn shown<'a>(id: &str, name: &str, mut shown: Vec<Part<'a>>) -> Vec<Part<'a>> {
    if !shown.is_empty() {
        shown.insert(
            0,
            Part::text(format!("Output of call {id} of {name}, not written by the user:")),
        );
    }
    shown
}
