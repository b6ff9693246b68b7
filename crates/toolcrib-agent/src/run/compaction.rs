//! A conversation that exceeds the context window: which messages are left out.

use std::sync::Arc;

use toolcrib_core::{Arguments, EventKind, Message, ModelErrorClass, SEARCH_TOOLS, ToolCall};
use toolcrib_engine::READ_SKILL;

use crate::outcome::RunEnd;

/// The beginning of the notice to the model.
const NOTICE: &str = "The context window was full.";

/// Whether a request failed because the conversation exceeds the context window.
pub(super) fn is_overflow(end: &RunEnd) -> bool {
    let class = end.error.as_ref().and_then(|error| error.class);
    class == Some(ModelErrorClass::ContextOverflow)
}

/// The messages that are left out: the oldest responses of the model, each with the results of its
/// calls, until half of the conversation remains. The user's messages stay, and so do responses that
/// read a skill or searched for tools, because their results are instructions and definitions. The
/// last response stays.
pub(super) struct Compaction {
    left_out: Vec<usize>,
    remaining: usize,
    bytes_before: u64,
    bytes_after: u64,
}

impl Compaction {
    /// `None` if no message can be left out.
    pub(super) fn of(messages: &[Message]) -> Option<Self> {
        let sizes: Vec<_> = messages.iter().map(bytes).collect();
        let bytes_before: u64 = sizes.iter().sum();
        let mut bytes_after = bytes_before;
        let mut left_out = Vec::new();
        let last = messages.iter().rposition(is_said)?;
        for (position, message) in messages.iter().enumerate().take(last) {
            if bytes_after <= bytes_before / 2 {
                break;
            }
            if !is_said(message) || is_pinned(message) {
                continue;
            }
            let after = messages.iter().skip(position + 1);
            let results = after.take_while(|message| matches!(message, Message::Tool { .. }));
            let exchange = position..=position + results.count();
            let size: u64 = sizes.get(exchange.clone()).unwrap_or_default().iter().sum();
            bytes_after -= size;
            left_out.extend(exchange);
        }
        let remaining = messages.len() - left_out.len();
        (!left_out.is_empty()).then_some(Self { left_out, remaining, bytes_before, bytes_after })
    }

    /// The positions, in order.
    pub(super) fn left_out(&self) -> &[usize] {
        &self.left_out
    }

    /// The ids of the calls that are left out.
    pub(super) fn call_ids(&self, messages: &[Message]) -> Vec<Arc<str>> {
        let left_out = self.left_out.iter().filter_map(|position| messages.get(*position));
        left_out.flat_map(Message::calls).map(|call| Arc::clone(&call.id)).collect()
    }

    /// The other messages.
    pub(super) fn remaining(&self, messages: Vec<Message>) -> Vec<Message> {
        let all = messages.into_iter().enumerate();
        let stays = |position: &usize| self.left_out.binary_search(position).is_err();
        all.filter(|(position, _)| stays(position)).map(|(_, message)| message).collect()
    }

    pub(super) fn event(&self) -> EventKind {
        EventKind::ContextCompacted {
            left_out: self.left_out.len(),
            remaining: self.remaining,
            bytes_before: self.bytes_before,
            bytes_after: self.bytes_after,
        }
    }

    /// For the model.
    pub(super) fn notice(&self) -> Message {
        Message::notice(&format!(
            "{NOTICE} The {} oldest messages of yours and results of your calls \
             are left out of this conversation; all messages of the user are still here. Those calls \
             were made: do not repeat one that changes something. Read again what you need.",
            self.left_out.len()
        ))
    }
}

/// Whether a notice is about messages that are left out.
pub(super) fn is_notice(notice: &str) -> bool {
    notice.starts_with(NOTICE)
}

fn is_said(message: &Message) -> bool {
    matches!(message, Message::Assistant { .. })
}

fn is_pinned(message: &Message) -> bool {
    let is_pinned = |call: &ToolCall| [READ_SKILL, SEARCH_TOOLS].contains(&&*call.name);
    message.calls().iter().any(is_pinned)
}

/// The size of a message, with the vendor's content and the bytes of media.
fn bytes(message: &Message) -> u64 {
    let of_call = |call: &ToolCall| match &call.arguments {
        Arguments::Text(text) => text.len(),
        Arguments::Json(json) => json.to_string().len(),
    };
    let bytes = match message {
        Message::User { text, blocks } | Message::Tool { text, blocks, .. } => {
            text.len()
                + blocks.iter().map(|block| block.data().len() + block.chars()).sum::<usize>()
        }
        Message::Assistant { text, calls, vendor } => {
            let vendor = vendor.as_ref().map_or(0, |vendor| vendor.content.to_string().len());
            text.len() + vendor + calls.iter().map(of_call).sum::<usize>()
        }
        _ => 0,
    };
    bytes as u64
}
