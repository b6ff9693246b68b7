//! Joins a turn's messages and calls with its events. Messages and calls are the journal, which
//! decides: each call is shown once, with the outcome and the result that the session has. Events
//! add what was measured, as far as they were written before a process died.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolcrib_core::{
    Arguments, CallOutcome, Message, StoredCall, StoredSession, StoredTurn, ToolCall, TracedEvent,
    TurnState,
};

use super::{
    InterruptedCalls, Interruption, InterruptionReason, Note, OK, Trace, TracedCall,
    TracedDecision, TracedEnd, TracedIteration, TracedMenu, TracedRequest,
};

/// How a turn ends that was neither finished nor resumed.
const INTERRUPTED: &str = "interrupted";

/// The trace of a turn; `None` if the session has no such turn.
pub(crate) fn trace(session: &StoredSession, turn: u32, events: Vec<TracedEvent>) -> Option<Trace> {
    let stored = session.turns.iter().find(|stored| stored.number == turn)?;
    let messages = session.messages.iter().filter(|message| message.turn == turn);
    let messages: Vec<_> = messages.map(|stored| &stored.message).collect();
    let calls = session.calls.iter().filter(|call| call.turn == turn);
    let mut builder = Builder::new(Journal::of(stored, &messages, calls));
    let mut is_partial = events.is_empty();
    for event in events {
        is_partial |= event.fields.contains_key("trace_is_full");
        builder.event(event);
    }
    if !is_partial {
        builder.last_interruption(&stored.state);
    }
    builder.responses(&messages);
    Some(whole(session, stored, &messages, builder, is_partial))
}

fn whole(
    session: &StoredSession,
    stored: &StoredTurn,
    messages: &[&Message],
    builder: Builder<'_>,
    is_partial: bool,
) -> Trace {
    let info = &session.info;
    let asked = messages.iter().find_map(|message| match message {
        Message::User { text, .. } if message.as_notice().is_none() => Some(Arc::clone(text)),
        _ => None,
    });
    let answer = messages.last().and_then(|message| match message {
        Message::Assistant { text, calls, .. } if calls.is_empty() => Some(Arc::clone(text)),
        _ => None,
    });
    Trace {
        run: format!("{}/{}", info.id, stored.number),
        session: Arc::clone(&info.id),
        session_name: info.name.clone(),
        turn: stored.number,
        owner: info.owner.clone(),
        personality: Arc::clone(&info.personality),
        model: Arc::clone(&stored.model),
        began_ms: stored.began_ms,
        ended_ms: stored.ended_ms,
        state: stored.state.clone(),
        usage: stored.usage,
        message: asked.unwrap_or_default(),
        answer,
        iterations: builder.iterations,
        notes: builder.notes,
        interruptions: builder.interruptions,
        end: builder.ended,
        is_partial,
    }
}

/// A turn's messages and calls, by the ids of the calls.
struct Journal<'a> {
    began_ms: u64,
    /// The calls as the model wrote them.
    written: HashMap<&'a str, &'a ToolCall>,
    /// The result as the model read it, whether it is an error, and whether it is untrusted.
    results: HashMap<&'a str, (&'a Arc<str>, bool, bool)>,
    made: HashMap<&'a str, &'a StoredCall>,
}

impl<'a> Journal<'a> {
    fn of(
        turn: &StoredTurn,
        messages: &[&'a Message],
        calls: impl Iterator<Item = &'a StoredCall>,
    ) -> Self {
        let made: HashMap<_, _> = calls.map(|call| (&*call.call_id, call)).collect();
        let (mut written, mut results) = (HashMap::new(), HashMap::new());
        // Results whose messages wait for those of other calls.
        let waiting = made.values().filter_map(|call| call.result.as_ref());
        for message in waiting.chain(messages.iter().copied()) {
            match message {
                Message::Assistant { calls, .. } => {
                    written.extend(calls.iter().map(|call| (&*call.id, call)));
                }
                Message::Tool { call_id, text, is_error, untrusted, .. } => {
                    results.insert(&**call_id, (text, *is_error, *untrusted));
                }
                _ => {}
            }
        }
        Self { began_ms: turn.began_ms, written, results, made }
    }

    /// A call, without what was measured.
    fn call(&self, id: &str, tool: Option<String>, at_ms: u64) -> TracedCall {
        let written = self.written.get(id).copied();
        let made = self.made.get(id).copied();
        let result = self.results.get(id).copied();
        let name = made.map(|made| &made.tool).or(written.map(|written| &written.name));
        let tool = tool.or_else(|| name.map(ToString::to_string)).unwrap_or_default();
        let as_json = |arguments: &Arguments| match arguments {
            Arguments::Json(json) => Some(json.clone()),
            Arguments::Text(text) => serde_json::from_str(text).ok(),
        };
        let ran_with = made.map(|made| made.arguments.clone()).filter(|ran| {
            written.is_none_or(|call| as_json(&call.arguments).as_ref() != Some(ran))
        });
        TracedCall {
            call_id: id.into(),
            called: written.map(|call| call.name.to_string()).filter(|called| *called != tool),
            tool,
            origin: None,
            arguments: written.map(|call| call.arguments.clone()),
            ran_with,
            read_only: made.map(|made| made.read_only),
            at_ms,
            cut_off: made.map_or(0, |made| made.cut_off),
            outcome: None,
            end: None,
            result: result.map(|(text, ..)| Arc::clone(text)),
            untrusted: result.is_some_and(|(.., untrusted)| untrusted),
            policy: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// How a call ended. The record of the call decides; a call that was refused before its effect
    /// has none.
    fn outcome(&self, call: &TracedCall) -> Option<Arc<str>> {
        let recorded = self.made.get(&*call.call_id).and_then(|made| made.outcome);
        let measured = || {
            let TracedEnd { ok, code, .. } = call.end.as_ref()?;
            Some(if *ok { OK } else { code.as_deref().unwrap_or("failed") }.into())
        };
        let read = || {
            let (text, is_error, _) = self.results.get(&*call.call_id)?;
            let code = text.split(':').next().and_then(CallOutcome::from_word);
            let code = code.filter(|code| *code != CallOutcome::Succeeded);
            let error = code.map_or("failed", CallOutcome::as_str);
            Some(if *is_error { error } else { OK }.into())
        };
        recorded.map(|outcome| outcome.as_str().into()).or_else(measured).or_else(read)
    }

    /// The time of a call's intent in the turn.
    fn began(&self, id: &str) -> Option<u64> {
        self.made.get(id).map(|made| made.began_ms.saturating_sub(self.began_ms))
    }
}

struct Builder<'a> {
    journal: Journal<'a>,
    iterations: Vec<TracedIteration>,
    /// The index of each iteration, by its number.
    places: HashMap<Option<u32>, usize>,
    /// The calls with events, and the iteration of each.
    calls: HashMap<Arc<str>, (usize, TracedCall)>,
    /// Their ids, in the order of their beginnings.
    order: Vec<Arc<str>>,
    notes: Vec<Note>,
    interruptions: Vec<Interruption>,
    ended: Option<Note>,
    /// The tools of each menu, by fingerprint, and its withheld ones.
    menus: HashMap<String, TracedMenu>,
    clock: Clock,
}

/// One clock over all processes of a run.
#[derive(Default)]
struct Clock {
    /// The last event so far.
    last_ms: u64,
    /// The last event of the process before, and the first one of this process.
    process: Option<(u64, u64)>,
    /// Added to the times of this process: the clock of its system may be behind that of the last.
    ahead_ms: u64,
}

impl Clock {
    fn set(&mut self, event: &mut TracedEvent) {
        let begins = &*event.name == "agent.turn_start";
        if begins && self.process.is_none() {
            self.process = Some((0, event.at_ms));
        } else if begins {
            self.ahead_ms = (self.last_ms + 1).saturating_sub(event.at_ms);
            self.process = Some((self.last_ms, event.at_ms.saturating_add(self.ahead_ms)));
        }
        event.at_ms = event.at_ms.saturating_add(self.ahead_ms);
        // The skills of the caller precede the beginning.
        if event.iteration.is_some() || !event.name.starts_with("skill.") {
            self.last_ms = self.last_ms.max(event.at_ms);
        }
    }
}

impl<'a> Builder<'a> {
    fn new(journal: Journal<'a>) -> Self {
        Self {
            journal,
            iterations: Vec::new(),
            places: HashMap::new(),
            calls: HashMap::new(),
            order: Vec::new(),
            notes: Vec::new(),
            interruptions: Vec::new(),
            ended: None,
            menus: HashMap::new(),
            clock: Clock::default(),
        }
    }

    /// The place of an event; `None` before the first iteration. A request outside of iterations is
    /// the wrap-up.
    fn place(&mut self, event: &TracedEvent) -> Option<&mut TracedIteration> {
        let at = self.place_at(event)?;
        self.iterations.get_mut(at)
    }

    fn place_at(&mut self, event: &TracedEvent) -> Option<usize> {
        let number = event.iteration;
        let is_request = &*event.name == "model.start";
        if number.is_none() && !is_request {
            let last = self.iterations.len().checked_sub(1)?;
            return self.iterations.get(last)?.number.is_none().then_some(last);
        }
        let next = self.iterations.len();
        let at = *self.places.entry(number).or_insert(next);
        if at == next {
            self.iterations.push(TracedIteration {
                number,
                at_ms: event.at_ms,
                ..TracedIteration::default()
            });
        }
        Some(at)
    }

    fn event(&mut self, mut event: TracedEvent) {
        self.clock.set(&mut event);
        let call_id = event.fields.get("call_id").and_then(Value::as_str).map(str::to_owned);
        match (&*event.name, call_id) {
            ("agent.turn_resumed", _) => self.resumed(&event),
            ("tools.offered", _) => self.offered(&event),
            ("tools.discovery_completed", _) if event.iteration.is_some() => {
                if let Some(place) = self.place(&event) {
                    place.discovery.push(read(&event.fields));
                }
                // The error of an older listing is news.
                if event.fields.contains_key("error") {
                    self.note(event, false);
                }
            }
            ("model.start", _) => {
                let mut request: TracedRequest = read(&event.fields);
                request.at_ms = event.at_ms;
                let bytes = event.fields.get("bytes").and_then(Value::as_u64);
                request.request_bytes = bytes.unwrap_or_default();
                if let Some(place) = self.place(&event) {
                    place.requests.push(request);
                }
            }
            ("model.end", _) => {
                if let Some(request) =
                    self.place(&event).and_then(|place| place.requests.last_mut())
                {
                    request.response = Some(read(&event.fields));
                }
            }
            ("tool.start", Some(id)) => self.call_began(&id, &event),
            ("tool.end", Some(id)) => self.call_ended(&id, &event),
            ("policy.checked", Some(id)) => {
                let decision: TracedDecision = read(&event.fields);
                if let Some(call) = self.call(&id) {
                    // A call that is made again is decided again.
                    call.policy.retain(|earlier| *earlier != decision);
                    call.policy.push(decision);
                }
            }
            ("agent.turn_end", _) => self.ended = Some(Note::of(event)),
            ("approval.settled", Some(id)) => {
                // What follows the wait is the call.
                if let Some(call) = self.call(&id) {
                    call.at_ms = event.at_ms;
                }
                self.note(event, true);
            }
            (_, id) => {
                let in_call = id.is_some_and(|id| self.call(&id).is_some());
                self.note(event, in_call);
            }
        }
    }

    fn offered(&mut self, event: &TracedEvent) {
        let mut menu: TracedMenu = read(&event.fields);
        if let Some(known) = self.menus.get(&menu.fingerprint) {
            if menu.tools.is_empty() {
                menu.tools.clone_from(&known.tools);
                menu.origins.clone_from(&known.origins);
            }
            if menu.withheld_tools.is_empty() && menu.withheld > 0 {
                menu.withheld_tools.clone_from(&known.withheld_tools);
            }
        }
        self.menus.insert(menu.fingerprint.clone(), menu.clone());
        if let Some(place) = self.place(event) {
            place.menu = Some(menu);
        }
    }

    /// Another process goes on.
    fn resumed(&mut self, event: &TracedEvent) {
        let (at_ms, resumed_ms) = self.clock.process.unwrap_or((event.at_ms, event.at_ms));
        let why = self.why_ended(InterruptionReason::Died);
        self.ended = None;
        self.interrupted(Interruption {
            why,
            at_ms,
            resumed_ms: Some(resumed_ms),
            calls: read(&event.fields),
        });
    }

    /// Whether the last process ended before its run, and none has gone on.
    fn last_interruption(&mut self, state: &TurnState) {
        let otherwise = match state {
            TurnState::Running => InterruptionReason::Open,
            TurnState::Ended { stopped, .. } if **stopped == *INTERRUPTED => {
                InterruptionReason::Died
            }
            TurnState::Ended { .. } => return,
        };
        let (why, at_ms) = (self.why_ended(otherwise), self.clock.last_ms);
        let calls = InterruptedCalls::default();
        self.interrupted(Interruption { why, at_ms, resumed_ms: None, calls });
    }

    fn why_ended(&self, otherwise: InterruptionReason) -> InterruptionReason {
        match self.ended.as_ref().is_some_and(Note::awaits_approval) {
            true => InterruptionReason::AwaitingApproval,
            false => otherwise,
        }
    }

    fn interrupted(&mut self, interruption: Interruption) {
        match self.iterations.last_mut() {
            Some(last) => last.interruptions.push(interruption),
            None => self.interruptions.push(interruption),
        }
    }

    /// A call begins, perhaps once more in another process.
    fn call_began(&mut self, id: &str, event: &TracedEvent) {
        if let Some(call) = self.call(id) {
            (call.at_ms, call.end) = (event.at_ms, None);
            return;
        }
        let text = |field: &str| event.fields.get(field)?.as_str().map(str::to_owned);
        let Some(at) = self.place_at(event) else { return };
        let mut call = self.journal.call(id, text("tool"), event.at_ms);
        call.origin = text("origin");
        self.order.push(Arc::clone(&call.call_id));
        self.calls.insert(Arc::clone(&call.call_id), (at, call));
    }

    fn call_ended(&mut self, id: &str, event: &TracedEvent) {
        let end: TracedEnd = read(&event.fields);
        if self.call(id).is_none() {
            // The beginning did not fit into the trace.
            self.call_began(id, event);
            if let Some(call) = self.call(id) {
                call.at_ms = call.at_ms.saturating_sub(end.duration_ms);
            }
        }
        if let Some(call) = self.call(id) {
            call.end = Some(end);
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut TracedCall> {
        self.calls.get_mut(id).map(|(_, call)| call)
    }

    fn note(&mut self, event: TracedEvent, in_call: bool) {
        let id = event.fields.get("call_id").and_then(Value::as_str).map(str::to_owned);
        if in_call && let Some(call) = id.and_then(|id| self.call(&id)) {
            return call.notes.push(Note::of(event));
        }
        let has_place = self.place(&event).is_some();
        let notes = match self.place(&event) {
            Some(place) if has_place => &mut place.notes,
            _ => &mut self.notes,
        };
        notes.push(Note::of(event));
    }

    /// Gives each iteration its response: the text and all calls, also those without events.
    fn responses(&mut self, messages: &[&Message]) {
        let mut next = 0;
        let mut placed = HashSet::new();
        for message in messages {
            let Message::Assistant { text, calls, .. } = message else { continue };
            let known = calls.iter().find_map(|call| Some(self.calls.get(&call.id)?.0));
            let at = known.unwrap_or_else(|| self.next_answered(next));
            next = at + 1;
            let calls: Vec<_> =
                calls.iter().map(|call| self.take(&call.id, at, &mut placed)).collect();
            if let Some(iteration) = self.iterations.get_mut(at) {
                iteration.text = Arc::clone(text);
                iteration.calls.extend(calls);
            }
        }
        for id in std::mem::take(&mut self.order) {
            if !placed.contains(&id)
                && let Some(at) = self.calls.get(&id).map(|(at, _)| *at)
            {
                let call = self.take(&id, at, &mut placed);
                if let Some(iteration) = self.iterations.get_mut(at) {
                    iteration.calls.push(call);
                }
            }
        }
    }

    /// The index of the next iteration with a response, from one on. Without events of it, a new one.
    fn next_answered(&mut self, from: usize) -> usize {
        let answered = |iteration: &TracedIteration| {
            let mut responses = iteration.requests.iter().filter_map(|r| r.response.as_ref());
            responses.any(|response| response.error.is_none())
        };
        let mut rest = self.iterations.iter().enumerate().skip(from);
        if let Some((at, _)) = rest.clone().find(|(_, one)| answered(one)).or(rest.next()) {
            return at;
        }
        let at = self.iterations.len();
        let number = u32::try_from(at + 1).ok();
        self.iterations.push(TracedIteration {
            number,
            at_ms: self.clock.last_ms,
            ..TracedIteration::default()
        });
        at
    }

    /// A call, with its outcome.
    fn take(&mut self, id: &Arc<str>, at: usize, placed: &mut HashSet<Arc<str>>) -> TracedCall {
        placed.insert(Arc::clone(id));
        let mut call = self.calls.remove(id).map_or_else(
            || {
                let of_iteration = self.iterations.get(at).map(|iteration| iteration.at_ms);
                let at_ms = self.journal.began(id).or(of_iteration);
                self.journal.call(id, None, at_ms.unwrap_or_default())
            },
            |(_, call)| call,
        );
        call.outcome = self.journal.outcome(&call);
        call
    }
}

/// The known fields of an event; those that are missing or of another kind are left out.
fn read<T: DeserializeOwned + Default>(fields: &Map<String, Value>) -> T {
    serde_json::from_value(Value::Object(fields.clone())).unwrap_or_default()
}
