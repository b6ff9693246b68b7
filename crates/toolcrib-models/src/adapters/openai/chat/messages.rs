//! The conversation, as the vendor's messages.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::{ContentBlock, Message, ToolCall, VendorContent};

use super::{
    super::{
        super::{
            alternating::{alternating, no_answer},
            protocol::RequestInput,
            sent_parts::Part as First,
        },
        own::is_own,
        sent::{arguments, failed, id_of_at_most, name},
    },
    kept::ReasoningFields,
    media::{Part, parts},
};

/// Maximum length of a call's id with OpenAI's own models.
const MAX_ID: usize = 40;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum RequestMessage<'a> {
    System { content: &'a str },
    User { content: Content<'a> },
    Assistant(Assistant<'a>),
    Tool { tool_call_id: Cow<'a, str>, content: Cow<'a, str> },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
pub(super) struct Assistant<'a> {
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

/// All messages. Each depends only on itself, so earlier ones keep their bytes.
pub(super) fn messages<'a>(input: &RequestInput<'a>) -> Vec<First<RequestMessage<'a>>> {
    let mut writing = MessageWriter {
        input,
        own: is_own(input.model),
        // A tool message contains only text. A tool's blocks could be sent as a user message, which
        // models trust more, so this requires the setting.
        shows_blocks: input.settings.result_blocks == Some(true),
        sent: Vec::with_capacity(input.request.messages.len() + 1),
        shown: Vec::new(),
        results: Vec::new(),
    };
    if !input.request.system.is_empty() {
        writing.sent.push(RequestMessage::System { content: &input.request.system }.into());
    }
    for message in alternating(&input.request.messages) {
        writing.add(message);
    }
    writing.show();
    writing.sent
}

struct MessageWriter<'a, 'input> {
    input: &'input RequestInput<'a>,
    own: bool,
    shows_blocks: bool,
    sent: Vec<First<RequestMessage<'a>>>,
    /// The blocks of the last calls' results. They are sent after all results: no other message may
    /// be between those.
    shown: Vec<Part<'a>>,
    /// Those results.
    results: Vec<&'a Message>,
}

impl<'a> MessageWriter<'a, '_> {
    fn add(&mut self, message: &'a Message) {
        match message {
            Message::Tool { call_id, name, text, blocks, is_error, .. } => {
                let sent = self.input.first.of_message(message, &[], || {
                    let content = if *is_error { failed(text) } else { Cow::Borrowed(&**text) };
                    vec![RequestMessage::Tool { tool_call_id: self.id(call_id), content }]
                });
                self.sent.extend(sent);
                if self.shows_blocks {
                    self.shown.extend(shown(call_id, name, blocks));
                    self.results.push(message);
                }
            }
            Message::User { text } => {
                self.show();
                let user = || vec![RequestMessage::User { content: Content::Text(text) }];
                self.sent.extend(self.input.first.of_message(message, &[], user));
            }
            Message::Assistant { text, calls, vendor } => {
                self.show();
                let sent = self.input.first.of_message(message, &[], || {
                    vec![RequestMessage::Assistant(self.assistant(text, calls, vendor.as_deref()))]
                });
                self.sent.extend(sent);
            }
            _ => {}
        }
    }

    fn assistant(
        &self,
        text: &'a str,
        calls: &'a [ToolCall],
        vendor: Option<&'a VendorContent>,
    ) -> Assistant<'a> {
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
    fn id(&self, id: &'a str) -> Cow<'a, str> {
        if self.own { id_of_at_most(id, MAX_ID) } else { Cow::Borrowed(id) }
    }

    fn show(&mut self) {
        let results = std::mem::take(&mut self.results);
        if !self.shown.is_empty() {
            let parts = std::mem::take(&mut self.shown);
            // They are a user's message, and the calls follow one.
            self.add(no_answer());
            let shown = || vec![RequestMessage::User { content: Content::Parts(parts) }];
            self.sent.extend(self.input.first.of_messages(&results, &["shown"], shown));
        }
    }
}

/// The blocks of a result, with its origin.
fn shown<'a>(id: &str, name: &str, blocks: &'a [ContentBlock]) -> Vec<Part<'a>> {
    let mut shown = parts(blocks);
    if !shown.is_empty() {
        shown.insert(
            0,
            Part::text(format!("Output of call {id} of {name}, not written by the user:")),
        );
    }
    shown
}
