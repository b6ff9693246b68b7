//! The records of a session, as they are written and as they are read.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::SessionInfo;
use crate::{
    messages::{
        message::{Message, Usage},
        sent_parts::SentPart,
        usage_entry::UsageEntry,
    },
    names::{name::SkillId, owner::SessionOwner},
    tool::output::ErrorCode,
};

/// A record of the session's last turn. A turn begins, has messages and calls, and ends.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SessionRecord {
    /// A turn begins. Only after the end of the last one.
    TurnBegan {
        /// The name of the first model.
        model: Arc<str>,
        /// The first words of the user's message. Those of the first turn are the session's title.
        title: Arc<str>,
        /// The skills that the caller activated.
        skills: Vec<SkillId>,
    },
    /// The turn that begins in this write runs the [submitted](crate::SessionStore::submit) message of this
    /// number, which is removed. A write fails if the message is not the first that waits.
    Taken(u64),
    /// Usage and cost of one model request or of calls, added to those of the turn.
    Used(Usage),
    /// The next message of the conversation.
    Message(Message),
    /// A call is about to be made. A second intent of the same id is another attempt.
    Intent(CallIntent),
    /// The end of a call. Without effect if the call has no intent. Of several outcomes the first
    /// is kept, and of several results.
    Outcome {
        /// The call's id.
        call_id: Arc<str>,
        /// Its outcome.
        outcome: CallOutcome,
        /// The message with its result, if it is complete. Kept until the turn ends.
        result: Option<Message>,
    },
    /// An event of the turn.
    Event(TracedEvent),
    /// These messages are left out of later requests, because the context window was full. Their
    /// positions, from 0, among those that were not left out before.
    LeftOut(Vec<usize>),
    /// This message replaces the one at a position, from 0, among those that are not left out: a vendor
    /// refused its images.
    Replaced {
        /// The position.
        position: usize,
        /// The message.
        message: Message,
    },
    /// A part of a request, as it was sent. Replaces the part of the same key.
    Sent(SentPart),
    /// Usage of models and tools, added to the [sums](crate::UsageStore) of the session's owner. Only
    /// for a store with a [`usage_store_id`](crate::SessionStore::usage_store_id); at any time.
    Spent(Vec<UsageEntry>),
    /// The turn ends.
    TurnEnded {
        /// How, as one word: `answered`, `failed`, `interrupted`.
        stopped: Arc<str>,
        /// The error, for the operator.
        error: Option<Arc<str>>,
        /// Usage and cost of the whole turn; replaces the sum so far.
        usage: Usage,
    },
}

/// A call before its effect.
#[derive(Debug, Clone, PartialEq)]
pub struct CallIntent {
    /// The call's id, unique within the session.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments that run, without secrets.
    pub arguments: Value,
    /// Whether the tool declares that it changes nothing.
    pub read_only: bool,
    /// Whether the tool declares that a repeated call has no further effect.
    pub idempotent: bool,
}

impl CallIntent {
    /// Whether a second call might do harm. Its intent must then survive the loss of power.
    pub fn is_unrepeatable(&self) -> bool {
        !self.read_only && !self.idempotent
    }
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed(ErrorCode),
}

impl CallOutcome {
    /// The outcome of a call with an error code; `None` is success.
    pub fn of(code: Option<ErrorCode>) -> Self {
        code.map_or(Self::Succeeded, Self::Failed)
    }

    /// The outcome as written: `ok` or the error code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "ok",
            Self::Failed(code) => code.as_str(),
        }
    }

    /// The outcome of a word that [`as_str`](Self::as_str) has written.
    pub fn from_word(word: &str) -> Option<Self> {
        if word == Self::Succeeded.as_str() {
            return Some(Self::Succeeded);
        }
        ErrorCode::ALL.into_iter().find(|code| code.as_str() == word).map(Self::Failed)
    }
}

impl Serialize for CallOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An event of a turn, as it is stored. It lacks the texts that the messages and calls of the turn
/// contain.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TracedEvent {
    /// The event's [name](crate::EventKind::name).
    #[serde(rename = "type")]
    pub name: Arc<str>,
    /// The iteration, from 1; `None` outside of iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Milliseconds since the turn began.
    pub at_ms: u64,
    /// The fields of the event: a JSON object.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// A turn with its session, without contents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredRun {
    /// The session's id.
    pub session: Arc<str>,
    /// The session's name, if it has one.
    pub name: Option<Arc<str>>,
    /// The session's owner.
    pub owner: SessionOwner,
    /// The turn.
    #[serde(flatten)]
    pub turn: StoredTurn,
    /// The number of calls whose intent was written.
    pub calls: u32,
}

impl StoredRun {
    /// A turn of a session.
    pub fn new(info: &SessionInfo, turn: StoredTurn, calls: u32) -> Self {
        Self {
            session: Arc::clone(&info.id),
            name: info.name.clone(),
            owner: info.owner.clone(),
            turn,
            calls,
        }
    }
}

/// A message that a search has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundMessage {
    /// The session's id.
    pub session: Arc<str>,
    /// The session's name, if it has one.
    pub name: Option<Arc<str>>,
    /// The number of the turn.
    pub turn: u32,
    /// The beginning of the turn, in milliseconds since 1970.
    pub at_ms: u64,
    /// The author: `user` or `assistant`.
    pub role: Arc<str>,
    /// The part of the text around the found words.
    pub excerpt: Arc<str>,
}

/// The state of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TurnState {
    /// It has no end: it runs, or its process was killed.
    Running,
    /// It ended.
    Ended {
        /// How, as one word.
        stopped: Arc<str>,
        /// The error, for the operator.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
    },
}

/// The contents of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredSession {
    /// The session.
    pub info: SessionInfo,
    /// The turns, in order.
    pub turns: Vec<StoredTurn>,
    /// The messages of all turns, in order.
    pub messages: Vec<StoredMessage>,
    /// The calls of all turns, in the order of their first intents.
    pub calls: Vec<StoredCall>,
}

/// The contents of a session that its next request needs.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHistory {
    /// The last turn; `None` without turns.
    pub last_turn: Option<StoredTurn>,
    /// The messages that are not [left out](SessionRecord::LeftOut) of requests, and all of the last
    /// turn unless it has ended, in order.
    pub messages: Vec<StoredMessage>,
    /// The calls of the last turn unless it has ended, in the order of their first intents.
    pub calls: Vec<StoredCall>,
    /// The ids of the calls in messages that are left out, in any order.
    pub left_out_calls: Vec<Arc<str>>,
    /// Whether a message that is left out has [content of an unknown author](Message::is_untrusted).
    pub left_out_untrusted: bool,
}

impl From<StoredSession> for SessionHistory {
    fn from(session: StoredSession) -> Self {
        let StoredSession { info: _, mut turns, mut messages, mut calls } = session;
        let last_turn = turns.pop();
        let running = last_turn.as_ref().filter(|turn| turn.state == TurnState::Running);
        let running = running.map(|turn| turn.number);
        let left_out = messages.iter().filter(|stored| stored.left_out);
        let of_left_out = left_out.clone().flat_map(|stored| stored.message.calls());
        let left_out_calls = of_left_out.map(|call| Arc::clone(&call.id)).collect();
        let left_out_untrusted = left_out.clone().any(|stored| stored.message.is_untrusted());
        messages.retain(|stored| !stored.left_out || Some(stored.turn) == running);
        calls.retain(|call| Some(call.turn) == running);
        Self { last_turn, messages, calls, left_out_calls, left_out_untrusted }
    }
}

/// A turn as the store has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredTurn {
    /// The number, from 1.
    pub number: u32,
    /// The name of its first model.
    pub model: Arc<str>,
    /// The first words of the user's message; empty in a session of an older program.
    pub title: Arc<str>,
    /// Its beginning, in milliseconds since 1970.
    pub began_ms: u64,
    /// Its end, in milliseconds since 1970.
    pub ended_ms: Option<u64>,
    /// The skills that the caller activated.
    pub skills: Vec<SkillId>,
    /// Its state.
    #[serde(flatten)]
    pub state: TurnState,
    /// Usage and cost; those so far until it ends.
    pub usage: Usage,
}

/// A message with its turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredMessage {
    /// The number of the turn.
    pub turn: u32,
    /// Whether it is [left out](SessionRecord::LeftOut) of requests.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
    /// The message, equal to the one that was written.
    #[serde(flatten)]
    pub message: Message,
}

/// A call whose intent was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredCall {
    /// The number of the turn.
    pub turn: u32,
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The arguments, without secrets.
    pub arguments: Value,
    /// Whether the tool declares that it changes nothing.
    pub read_only: bool,
    /// Whether the tool declares that a repeated call has no further effect.
    pub idempotent: bool,
    /// The number of intents.
    pub attempts: u32,
    /// The number of intents that had no outcome when the next one was written: attempts that a
    /// crash has cut off.
    pub cut_off: u32,
    /// The time of the first intent, in milliseconds since 1970.
    pub began_ms: u64,
    /// The outcome; `None` if none was written.
    pub outcome: Option<CallOutcome>,
    /// The message with the result, as far as it is complete and the turn has not ended.
    #[serde(skip)]
    pub result: Option<Message>,
}
