//! A conversation in which messages of the user and answers alternate.

use std::sync::LazyLock;

use toolcrib_core::Message;

use super::conversation::MessageList;

/// The note, in place of an answer.
static NO_ANSWER: LazyLock<Message> =
    LazyLock::new(|| Message::assistant("[note of the tool layer: there is no answer here]", []));

/// A message, with a fixed note of the assistant wherever two messages of the user would follow
/// each other, calls and results aside: after a turn that ended without an answer, between a message
/// and a notice, and where an answer was left out. An answer without text is such a note too. Chat
/// templates of many models refuse a conversation that does not alternate, and vendors an empty
/// answer.
///
/// Each note depends only on earlier messages, so those that were sent keep their bytes.
///
/// Each message is returned with its position, the notes with [`NOTE`]. The conversation so far is
/// written in the list.
pub(super) fn alternating<'a>(
    list: &mut MessageList,
    at: usize,
    message: &'a Message,
) -> impl Iterator<Item = (usize, &'a Message)> + use<'a> {
    let (note, message) = match message {
        Message::User { .. } => {
            let is_second = std::mem::replace(&mut list.is_user_last, true);
            (is_second.then(no_answer), message)
        }
        Message::Assistant { text, calls, .. } if calls.is_empty() => {
            list.is_user_last = false;
            (None, if text.trim().is_empty() { no_answer() } else { message })
        }
        _ => (None, message),
    };
    note.map(|note| (NOTE, note)).into_iter().chain([(at, message)])
}

/// The position of a note, which no message has.
pub(super) const NOTE: usize = usize::MAX;

/// The note.
pub(super) fn no_answer() -> &'static Message {
    &NO_ANSWER
}
