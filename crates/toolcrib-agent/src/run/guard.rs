//! The limits of one turn: on its calls, its denials and its cost.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use serde_json::Value;
use toolcrib_core::{Arguments, Digest, ErrorCode, Message, ToolCall, ToolResult, args_digest};

use crate::{limits::TurnLimits, tally::Tally};

/// A limit or budget that a turn has reached.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReachedLimit {
    /// Its name, as in the project file.
    pub(super) limit: Arc<str>,
    /// The tool, if the limit counts its calls.
    pub(super) tool: Option<Arc<str>>,
    /// For the operator, and for the model in a result and in the wrap-up.
    pub(super) message: String,
}

impl ReachedLimit {
    /// A limit of the run, and its value for a reader: `20 calls`.
    pub(super) fn of_run(limit: &str, tool: Option<Arc<str>>, what: &str) -> Self {
        let message = format!("the limit of this run is reached: {what}");
        Self { limit: limit.into(), tool, message }
    }

    /// A budget.
    pub(super) fn of_budget(budget: &str, key: &str, what: &str) -> Self {
        let message = format!("the budget is spent: {what}");
        Self { limit: format!("{budget}.{key}").into(), tool: None, message }
    }
}

/// Counts the calls and denials of a turn.
pub(super) struct Guard {
    limits: TurnLimits,
    /// Counts the calls, those of child agents included.
    tally: Arc<Tally>,
    calls: u32,
    by_tool: HashMap<Arc<str>, u32>,
    /// The last call, and the length of the row of calls that are identical to it, if that is
    /// limited.
    row: Option<(Digest, u32)>,
    denials: u32,
    reached: Option<ReachedLimit>,
}

impl Guard {
    /// A guard that has counted the calls of these messages: those of the turn so far.
    pub(super) fn new(tally: &Arc<Tally>, turn: &[Message]) -> Self {
        let (limits, tally) = (tally.limits().clone(), Arc::clone(tally));
        let (calls, by_tool, row) = (0, HashMap::new(), None);
        let mut guard = Self { limits, tally, calls, by_tool, row, denials: 0, reached: None };
        for message in turn {
            if let Message::Assistant { calls, .. } = message {
                calls.iter().for_each(|call| drop(guard.admit(call)));
            }
        }
        guard
    }

    /// The first limit that was reached.
    pub(super) fn reached(&self) -> Option<&ReachedLimit> {
        self.reached.as_ref()
    }

    /// Counts a call of the model, unless it exceeds a limit.
    pub(super) fn admit(&mut self, call: &ToolCall) -> Result<(), String> {
        let row = self.limits.max_identical_calls.map(|_| {
            let this = digest(call);
            let before = self.row.as_ref().filter(|(last, _)| *last == this);
            (this, before.map_or(1, |(_, length)| length + 1))
        });
        let identical = row.as_ref().map_or(1, |(_, length)| *length);
        let of_tool = self.by_tool.get(&call.name).copied().unwrap_or_default() + 1;
        let limits = &self.limits;
        let over = |limit: Option<u32>, count: u32| limit.filter(|limit| count > *limit);
        let name: String = call.name.chars().take(64).collect();
        let reached = if let Some(limit) = self.tally.over_calls() {
            Some(("max_calls", None, format!("{limit} calls")))
        } else if let Some(limit) = over(limits.max_calls_per_tool, of_tool) {
            let what = format!("{limit} calls of `{name}`");
            Some(("max_calls_per_tool", Some(Arc::clone(&call.name)), what))
        } else if let Some(limit) = over(limits.max_identical_calls, identical) {
            let what = format!("{limit} identical calls of `{name}` in a row");
            Some(("max_identical_calls", Some(Arc::clone(&call.name)), what))
        } else {
            None
        };
        if let Some((limit, tool, what)) = reached {
            let reached = ReachedLimit::of_run(limit, tool, &what);
            let message = reached.message.clone();
            self.reached.get_or_insert(reached);
            return Err(format!("not made: {message}"));
        }
        self.calls += 1;
        self.tally.called();
        self.by_tool.insert(Arc::clone(&call.name), of_tool);
        self.row = row;
        Ok(())
    }

    /// Counts the denials among results.
    pub(super) fn count(&mut self, results: &[ToolResult]) {
        let denied = results.iter().filter(|result| result.code == Some(ErrorCode::Denied)).count();
        self.denials = self.denials.saturating_add(u32::try_from(denied).unwrap_or(u32::MAX));
        if let Some(limit) = self.limits.max_denials.filter(|limit| self.denials >= *limit) {
            let what = format!("{limit} denied calls");
            self.reached.get_or_insert_with(|| ReachedLimit::of_run("max_denials", None, &what));
        }
    }

    /// Notes that a limit of tokens or money is reached.
    pub(super) fn spent(&mut self, reached: Option<ReachedLimit>) {
        if self.reached.is_none() {
            self.reached = reached;
        }
    }

    /// Notes the limit or budget that forbade a request.
    pub(super) fn replace(&mut self, reached: ReachedLimit) {
        self.reached = Some(reached);
    }

    /// The answer without another request, if the limit is one of the cost.
    pub(super) fn answer(&self, last_text: &str) -> Option<Arc<str>> {
        let reached = self.reached.as_ref()?;
        let is_cost =
            reached.limit.ends_with("max_tokens") || reached.limit.ends_with("max_cost_usd");
        if !is_cost {
            return None;
        }
        let mut answer = format!("I stopped before I had an answer: {}.", reached.message);
        let _ = match self.calls {
            0 => write!(answer, " I made no calls."),
            1 => write!(answer, " I made 1 call; its result is in the conversation."),
            calls => {
                write!(answer, " I made {calls} calls; their results are in the conversation.")
            }
        };
        if !last_text.trim().is_empty() {
            let _ = write!(answer, "\n\nMy last words were: {last_text}");
        }
        Some(answer.into())
    }
}

fn digest(call: &ToolCall) -> Digest {
    match &call.arguments {
        Arguments::Json(json) => args_digest(&call.name, json),
        Arguments::Text(text) => {
            let json = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()));
            args_digest(&call.name, &json)
        }
    }
}
