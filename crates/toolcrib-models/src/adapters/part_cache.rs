//! The messages that a model was sent, as written: the next request of a conversation writes only what
//! is new.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use toolcrib_core::Message;

use super::sent_parts::Part;

/// The limit of the remembered JSON of a model, in bytes. Beyond it, all of it is forgotten: few
/// conversations are so long.
const MOST_BYTES: usize = 8 * 1024 * 1024;

/// The parts of messages, by message.
#[derive(Default)]
pub(super) struct PartCache(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    entries: BTreeMap<usize, Entry>,
    bytes: usize,
}

struct Entry {
    /// The version of the session's parts.
    version: Option<u64>,
    messages: Vec<Message>,
    words: Vec<Box<str>>,
    parts: Vec<Arc<RawValue>>,
}

impl PartCache {
    /// The parts of messages that depend on nothing but these words and a version.
    pub(super) fn get<T>(
        &self,
        version: Option<u64>,
        messages: &[&Message],
        words: &[&str],
    ) -> Option<Vec<Part<T>>> {
        let memory = self.0.lock();
        let entry = memory.entries.get(&place(messages))?;
        let is_same = entry.version == version
            && entry.words.len() == words.len()
            && entry.words.iter().zip(words).all(|(one, other)| **one == **other)
            && entry.messages.len() == messages.len()
            && entry.messages.iter().zip(messages).all(|(one, other)| one == *other);
        is_same.then(|| entry.parts.iter().map(|part| Part::First(Arc::clone(part))).collect())
    }

    pub(super) fn set(
        &self,
        version: Option<u64>,
        messages: &[&Message],
        words: &[&str],
        parts: Vec<Arc<RawValue>>,
    ) {
        let bytes: usize = parts.iter().map(|part| part.get().len()).sum();
        if bytes > MOST_BYTES {
            return;
        }
        let mut memory = self.0.lock();
        if memory.bytes + bytes > MOST_BYTES {
            *memory = Entries::default();
        }
        memory.bytes += bytes;
        let entry = Entry {
            version,
            messages: messages.iter().map(|message| (*message).clone()).collect(),
            words: words.iter().map(|word| (*word).into()).collect(),
            parts,
        };
        memory.entries.insert(place(messages), entry);
    }
}

/// The key of messages: the addresses of texts that clones of a message share. The comparison decides
/// whether it is the same message.
fn place(messages: &[&Message]) -> usize {
    let address = |message: &&Message| match message {
        Message::User { text, .. } => Arc::as_ptr(text).addr(),
        Message::Assistant { text, calls, .. } => {
            Arc::as_ptr(calls.first().map_or(text, |call| &call.id)).addr()
        }
        // The id is the call's.
        Message::Tool { text, .. } => Arc::as_ptr(text).addr(),
        _ => 0,
    };
    messages.iter().map(address).fold(0, |key, address| key.rotate_left(7) ^ address)
}
