//! What the model has been told of sources that fail.

use toolcrib_core::Message;
use toolcrib_engine::Notice;

/// What a model is told once no source fails any more.
const ALL_WELL: &str = "All tools that you are offered can be used again.";

/// The last notice of a conversation. A notice says how all sources are, not what changed, so that
/// the history alone tells what the model knows, in the next run too.
pub(super) struct Noticed(Option<String>);

impl Noticed {
    pub(super) fn in_history(messages: &[Message]) -> Self {
        Self(messages.iter().rev().find_map(Message::as_notice).map(str::to_owned))
    }

    /// The message that tells it, if the model has not been told so last.
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
