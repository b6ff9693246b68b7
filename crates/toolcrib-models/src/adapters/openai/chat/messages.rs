//! The conversation, as the vendor's messages.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::{Message, ToolCall, VendorContent};

use super::{
    super::{
        super::{
            alternating::{NOTE, alternating, no_answer},
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
pub(super) enum RequestMessage<'a> {
    System { content: &'a str },
    User { content: Content<'a> },
    Assistant(Assistant<'a>),
    Tool { tool_call_id: Cow<'a, str>, content: Cow<'a, str> },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
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
        sent: Vec::with_capacity(input.request.messages.len() + 1),
        shown: Vec::new(),
        results: Vec::new(),
    };
    if !input.request.system.is_empty() {
        writing.sent.push(RequestMessage::System { content: &input.request.system }.into());
    }
    for (at, message) in alternating(&input.request.messages) {
        writing.add(at, message);
    }
    writing.show();
    writing.sent
}

struct MessageWriter<'a, 'input> {
    input: &'input RequestInput<'a>,
    own: bool,
    sent: Vec<First<RequestMessage<'a>>>,
    /// The blocks of the last calls' results. They are sent after all results: no other message may
    /// be between those.
    shown: Vec<Part<'a>>,
    /// Those results.
    results: Vec<&'a Message>,
}

impl<'a> MessageWriter<'a, '_> {
    fn add(&mut self, at: usize, message: &'a Message) {
        let images = self.input.images;
        let note = images.note(at);
        match message {
            Message::Tool { call_id, name, text, blocks, is_error, .. } => {
                let sent = self.input.first.of_message(message, note.as_slice(), || {
                    let text = images.noted(at, text);
                    let content = if *is_error { failed(&text).into_owned().into() } else { text };
                    vec![RequestMessage::Tool { tool_call_id: self.id(call_id), content }]
                });
                self.sent.extend(sent);
                if images.in_results {
                    let media = images.sent(at, blocks).filter_map(media::of).map(Part::from);
                    self.shown.extend(shown(call_id, name, media.collect()));
                    self.results.push(message);
                }
            }
            Message::User { text, blocks } => {
                self.show();
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
                self.sent.extend(self.input.first.of_message(message, note.as_slice(), user));
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
            self.add(NOTE, no_answer());
            let shown = || vec![RequestMessage::User { content: Content::Parts(parts) }];
            self.sent.extend(self.input.first.of_messages(&results, &["shown"], shown));
        }
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
