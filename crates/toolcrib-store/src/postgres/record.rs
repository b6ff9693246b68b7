//! The stored form of a record, and the session that records make.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_core::{
    CallIntent, CallOutcome, SessionRecord, StoredCall, StoredMessage, StoredTurn, TracedEvent,
    TurnState, Usage,
};

use crate::frozen::{FrozenError, FrozenJson, freeze, thaw};

/// The kind of events, which indexes keep apart.
pub(super) const EVENT: i16 = 0;
/// The kind of beginnings of turns.
pub(super) const BEGAN: i16 = 1;
/// The kind of all other records.
const OTHER: i16 = 2;

/// A record as stored.
#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum FrozenRecord {
    Began {
        model: Arc<str>,
        title: Arc<str>,
        skills: Value,
    },
    Used {
        usage: FrozenUsage,
    },
    Message {
        message: String,
    },
    Intent {
        call_id: Arc<str>,
        tool: Arc<str>,
        arguments: FrozenJson,
        read_only: bool,
        idempotent: bool,
    },
    Outcome {
        call_id: Arc<str>,
        outcome: String,
        result: Option<String>,
    },
    Event {
        name: Arc<str>,
        iteration: Option<u32>,
        at_ms: u64,
        fields: Map<String, Value>,
    },
    LeftOut {
        messages: Vec<usize>,
    },
    Replaced {
        position: usize,
        message: String,
    },
    Ended {
        stopped: Arc<str>,
        error: Option<Arc<str>>,
        usage: FrozenUsage,
    },
}

#[derive(Serialize, Deserialize)]
struct FrozenUsage {
    /// Input, cached, written to the cache, output.
    tokens: [u64; 4],
    /// As text: a parser of JSON may return a neighbor of the number that was written.
    cost_usd: Option<String>,
}

impl From<&Usage> for FrozenUsage {
    fn from(usage: &Usage) -> Self {
        let Usage {
            input_tokens,
            cached_input_tokens,
            cache_write_tokens,
            output_tokens,
            cost_usd,
        } = usage;
        Self {
            tokens: [*input_tokens, *cached_input_tokens, *cache_write_tokens, *output_tokens],
            cost_usd: cost_usd.map(|cost| cost.to_string()),
        }
    }
}

impl FrozenUsage {
    fn thaw(self) -> Result<Usage, FrozenError> {
        let [input_tokens, cached_input_tokens, cache_write_tokens, output_tokens] = self.tokens;
        let cost_usd = self.cost_usd.map(|cost| cost.parse()).transpose();
        let cost_usd = cost_usd.map_err(|_| FrozenError::Number)?;
        Ok(Usage { input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, cost_usd })
    }
}

/// The kind and the stored form of a record; `None` for one that is stored elsewhere.
pub(super) fn freeze_record(record: &SessionRecord) -> Result<Option<(i16, String)>, FrozenError> {
    let (kind, frozen) = match record {
        SessionRecord::TurnBegan { model, title, skills } => {
            let (model, title) = (Arc::clone(model), Arc::clone(title));
            (BEGAN, FrozenRecord::Began { model, title, skills: serde_json::to_value(skills)? })
        }
        SessionRecord::Used(usage) => (OTHER, FrozenRecord::Used { usage: usage.into() }),
        SessionRecord::Message(message) => {
            (OTHER, FrozenRecord::Message { message: freeze(message)? })
        }
        SessionRecord::Intent(intent) => (OTHER, intent.into()),
        SessionRecord::Outcome { call_id, outcome, result } => {
            let (call_id, outcome) = (Arc::clone(call_id), outcome.as_str().to_owned());
            let result = result.as_ref().map(freeze).transpose()?;
            (OTHER, FrozenRecord::Outcome { call_id, outcome, result })
        }
        SessionRecord::Event(event) => {
            let TracedEvent { name, iteration, at_ms, fields } = event.clone();
            (EVENT, FrozenRecord::Event { name, iteration, at_ms, fields })
        }
        SessionRecord::LeftOut(messages) => {
            (OTHER, FrozenRecord::LeftOut { messages: messages.clone() })
        }
        SessionRecord::Replaced { position, message } => {
            (OTHER, FrozenRecord::Replaced { position: *position, message: freeze(message)? })
        }
        SessionRecord::TurnEnded { stopped, error, usage } => {
            let (stopped, error) = (Arc::clone(stopped), error.clone());
            (OTHER, FrozenRecord::Ended { stopped, error, usage: usage.into() })
        }
        _ => return Ok(None),
    };
    Ok(Some((kind, serde_json::to_string(&frozen)?)))
}

impl From<&CallIntent> for FrozenRecord {
    fn from(intent: &CallIntent) -> Self {
        Self::Intent {
            call_id: Arc::clone(&intent.call_id),
            tool: Arc::clone(&intent.tool),
            arguments: FrozenJson::from(&intent.arguments),
            read_only: intent.read_only,
            idempotent: intent.idempotent,
        }
    }
}

/// The event of a stored form.
pub(super) fn thaw_event(body: &str) -> Result<TracedEvent, FrozenError> {
    match serde_json::from_str(body)? {
        FrozenRecord::Event { name, iteration, at_ms, fields } => {
            Ok(TracedEvent { name, iteration, at_ms, fields })
        }
        _ => Err(FrozenError::UnknownMessage),
    }
}

/// The message of a stored form, if it is one.
pub(super) fn thaw_message(body: &str) -> Result<Option<toolcrib_core::Message>, FrozenError> {
    match serde_json::from_str(body)? {
        FrozenRecord::Message { message } => thaw(&message).map(Some),
        _ => Ok(None),
    }
}

/// The turns, messages and calls that records make, in the order in which they were written.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) turns: Vec<StoredTurn>,
    pub(super) messages: Vec<StoredMessage>,
    pub(super) calls: Vec<StoredCall>,
    by_id: HashMap<Arc<str>, usize>,
}

impl Recorded {
    /// Applies the next record.
    pub(super) fn apply(&mut self, turn: u32, at_ms: u64, body: &str) -> Result<(), FrozenError> {
        match serde_json::from_str(body)? {
            FrozenRecord::Began { model, title, skills } => self.turns.push(StoredTurn {
                number: turn,
                model,
                title,
                began_ms: at_ms,
                ended_ms: None,
                skills: serde_json::from_value(skills)?,
                state: TurnState::Running,
                usage: Usage { cost_usd: Some(0.0), ..Usage::NOTHING },
            }),
            FrozenRecord::Used { usage } => {
                let usage = usage.thaw()?;
                if let Some(turn) = self.turns.last_mut() {
                    turn.usage = sum(&turn.usage, &usage);
                }
            }
            FrozenRecord::Message { message } => {
                let message = thaw(&message)?;
                self.messages.push(StoredMessage { turn, left_out: false, message });
            }
            FrozenRecord::Intent { call_id, tool, arguments, read_only, idempotent } => {
                let arguments = arguments.thaw()?;
                let intent = CallIntent { call_id, tool, arguments, read_only, idempotent };
                self.intent(turn, at_ms, intent);
            }
            FrozenRecord::Outcome { call_id, outcome, result } => {
                let outcome =
                    CallOutcome::from_word(&outcome).ok_or(FrozenError::UnknownMessage)?;
                let call = self.by_id.get(&call_id).and_then(|at| self.calls.get_mut(*at));
                if let Some(call) = call {
                    call.outcome.get_or_insert(outcome);
                    if let (None, Some(result)) = (&call.result, result) {
                        call.result = Some(thaw(&result)?);
                    }
                }
            }
            FrozenRecord::Event { .. } => {}
            FrozenRecord::LeftOut { messages } => {
                let present = self.present();
                for at in messages.iter().filter_map(|position| present.get(*position)) {
                    if let Some(stored) = self.messages.get_mut(*at) {
                        stored.left_out = true;
                    }
                }
            }
            FrozenRecord::Replaced { position, message } => {
                let at = self.present().get(position).copied();
                if let Some(stored) = at.and_then(|at| self.messages.get_mut(at)) {
                    stored.message = thaw(&message)?;
                }
            }
            FrozenRecord::Ended { stopped, error, usage } => {
                if let Some(turn) = self.turns.last_mut() {
                    turn.ended_ms = Some(at_ms);
                    turn.state = TurnState::Ended { stopped, error };
                    turn.usage = usage.thaw()?;
                }
                // The history has them now.
                let of_turn = self.calls.iter_mut().filter(|call| call.turn == turn);
                of_turn.for_each(|call| call.result = None);
            }
        }
        Ok(())
    }

    fn intent(&mut self, turn: u32, at_ms: u64, intent: CallIntent) {
        let CallIntent { call_id, tool, arguments, read_only, idempotent } = intent;
        let known = self.by_id.get(&call_id).and_then(|at| self.calls.get_mut(*at));
        if let Some(call) = known {
            call.attempts += 1;
            call.cut_off += u32::from(call.outcome.is_none());
            (call.outcome, call.result) = (None, None);
            (call.tool, call.arguments) = (tool, arguments);
            return;
        }
        self.by_id.insert(Arc::clone(&call_id), self.calls.len());
        self.calls.push(StoredCall {
            turn,
            call_id,
            tool,
            arguments,
            read_only,
            idempotent,
            attempts: 1,
            cut_off: 0,
            began_ms: at_ms,
            outcome: None,
            result: None,
        });
    }

    /// The places of the messages that are not left out.
    fn present(&self) -> Vec<usize> {
        let all = self.messages.iter().enumerate();
        all.filter(|(_, stored)| !stored.left_out).map(|(at, _)| at).collect()
    }
}

/// The cost is unknown once a part of it is.
fn sum(so_far: &Usage, more: &Usage) -> Usage {
    let add = u64::saturating_add;
    Usage {
        input_tokens: add(so_far.input_tokens, more.input_tokens),
        cached_input_tokens: add(so_far.cached_input_tokens, more.cached_input_tokens),
        cache_write_tokens: add(so_far.cache_write_tokens, more.cache_write_tokens),
        output_tokens: add(so_far.output_tokens, more.output_tokens),
        cost_usd: so_far.cost_usd.zip(more.cost_usd).map(|(so_far, more)| so_far + more),
    }
}
