//! Notices to the model about failed sources.

use toolcrib_core::Message;
use toolcrib_engine::Notice;

use super::compaction;

/// The notice after all sources work again.
const ALL_WELL: &str = "All offered tools work again.";

/// The last notice of a conversation. A notice contains the state of all sources, not the changes,
/// so that the conversation alone shows what the model knows, in the next run too.
pub(super) struct LastNotice(Option<String>);

impl LastNotice {
    pub(super) fn in_history(messages: &[Message]) -> Self {
        let mut notices = messages.iter().rev().filter_map(Message::as_notice);
        Self(notices.find(|notice| !compaction::is_notice(notice)).map(str::to_owned))
    }

    /// The message with another text.
    pub(super) fn tell(&mut self, text: &str) -> Message {
        self.0 = Some(text.to_owned());
        Message::notice(text)
    }

    /// The message for the current notices, if it differs from the last one.
    pub(super) fn now(&mut self, notices: &[Notice]) -> Option<Message> {
        if notices.is_empty() && self.0.is_none() {
            return None;
        }
        let text = match notices {
            [] => ALL_WELL.to_owned(),
            notices => notices.iter().map(Notice::model_text).collect::<Vec<_>>().join(" "),
        };
        if self.0.as_ref() == Some(&text) {
            return None;
        }
        let message = Message::notice(&text);
        self.0 = Some(text);
        Some(message)
    }
}
