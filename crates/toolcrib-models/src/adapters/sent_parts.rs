//! Parts of a body that are sent again as they were first sent.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use toolcrib_core::{Arguments, ContentBlock, Digest, Message, SentPart, SentParts};

/// A part of a body: as this program writes it, or as it was first sent.
pub(super) enum Part<T> {
    Now(T),
    First(Box<RawValue>),
}

impl<T: Serialize> Serialize for Part<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Now(part) => part.serialize(serializer),
            Self::First(json) => RawValue::serialize(json, serializer),
        }
    }
}

/// The first sent parts of one form, of a protocol, a model and a server; none without a session.
pub(super) struct SentForm(Option<(Arc<SentParts>, Digest)>);

impl SentForm {
    /// The parts of a form. Everything that decides how a message is written, beside the message,
    /// belongs to it.
    pub(super) fn new(sent: Option<&Arc<SentParts>>, form: impl FnOnce() -> Digest) -> Self {
        Self(sent.map(|sent| (Arc::clone(sent), form())))
    }

    /// The version of the parts; `None` without a session.
    pub(super) fn version(&self) -> Option<u64> {
        self.0.as_ref().map(|(sent, _)| sent.version())
    }

    /// The state that a text of known parts depends on, beside its source; `None` without a session.
    pub(super) fn digest(&self) -> Option<Digest> {
        let (sent, form) = self.0.as_ref()?;
        Some(Digest::of_all([form, &Digest::of(sent.version().to_le_bytes())]))
    }

    /// The parts of a message, which depend on nothing but the form, the message and these words.
    pub(super) fn of_message<T: Serialize>(
        &self,
        message: &Message,
        words: &[&str],
        now: impl FnOnce() -> Vec<T>,
    ) -> Vec<Part<T>> {
        self.of_messages(&[message], words, now)
    }

    /// The common parts of messages.
    pub(super) fn of_messages<T: Serialize>(
        &self,
        messages: &[&Message],
        words: &[&str],
        now: impl FnOnce() -> Vec<T>,
    ) -> Vec<Part<T>> {
        let source = || {
            let sources = messages.iter().map(|message| source(message));
            let words = words.iter().map(Digest::of);
            [Digest::of("message")].into_iter().chain(words).chain(sources).collect()
        };
        self.of(source, now)
    }

    /// The definition of a tool, which depends on nothing but the form, the tool and these words.
    pub(super) fn of_tool<T: Serialize>(
        &self,
        tool: Digest,
        words: &[&str],
        now: impl FnOnce() -> T,
    ) -> Option<Part<T>> {
        let source = || {
            let words = words.iter().map(Digest::of);
            [Digest::of("tool"), tool].into_iter().chain(words).collect()
        };
        self.of(source, || vec![now()]).pop()
    }

    fn of<T: Serialize>(
        &self,
        source: impl FnOnce() -> Vec<Digest>,
        now: impl FnOnce() -> Vec<T>,
    ) -> Vec<Part<T>> {
        let Some((sent, form)) = &self.0 else { return now().into_iter().map(Part::Now).collect() };
        let source = source();
        let key = Digest::of_all([form].into_iter().chain(&source));
        // A text that is not the JSON of parts is replaced: the store was damaged.
        let read = |json: Arc<str>| serde_json::from_str::<Vec<Box<RawValue>>>(&json).ok();
        if let Some(first) = sent.get(&key).and_then(read) {
            return first.into_iter().map(Part::First).collect();
        }
        let parts = now();
        if let Ok(json) = serde_json::to_string(&parts) {
            sent.set(SentPart { key, json: json.into() });
        }
        parts.into_iter().map(Part::Now).collect()
    }
}

/// The digest of a message with everything in it. Its JSON lacks the bytes of images, and whether
/// arguments are a text.
fn source(message: &Message) -> Digest {
    let mut parts = vec![Digest::of(serde_json::to_string(message).unwrap_or_default())];
    match message {
        Message::User { blocks, .. } | Message::Tool { blocks, .. } => {
            let data = blocks.iter().map(ContentBlock::data);
            parts.extend(data.filter(|data| !data.is_empty()).map(Digest::of));
        }
        Message::Assistant { calls, .. } => {
            let is_text = |arguments: &Arguments| matches!(arguments, Arguments::Text(_));
            parts.extend(calls.iter().map(|call| match is_text(&call.arguments) {
                true => Digest::of("text"),
                false => Digest::of("json"),
            }));
        }
        _ => {}
    }
    Digest::of_all(&parts)
}
