//! Joins events, messages and calls of a turn.

use std::{collections::HashMap, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolcrib_core::{
    Arguments, Message, StoredCall, StoredSession, StoredTurn, ToolCall, TracedEvent,
};

use super::{Note, Trace, TracedCall, TracedIteration, TracedMenu, TracedRequest};

/// The trace of a turn; `None` if the session has no such turn.
pub(crate) fn trace(session: &StoredSession, turn: u32, events: Vec<TracedEvent>) -> Option<Trace> {
    let stored = session.turns.iter().find(|stored| stored.number == turn)?;
    let messages = session.messages.iter().filter(|message| message.turn == turn);
    let messages: Vec<_> = messages.map(|stored| &stored.message).collect();
    let calls = session.calls.iter().filter(|call| call.turn == turn);
    let mut builder = Builder::new(&messages, calls);
    let mut is_partial = events.is_empty();
    for event in events {
        is_partial |= event.fields.contains_key("trace_is_full");
        builder.event(event);
    }
    Some(whole(session, stored, &messages, builder.end(&messages), is_partial))
}

fn whole(
    session: &StoredSession,
    stored: &StoredTurn,
    messages: &[&Message],
    (iterations, notes, end): (Vec<TracedIteration>, Vec<Note>, Option<Note>),
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
        iterations,
        notes,
        end,
        is_partial,
    }
}

struct Builder<'a> {
    /// The model's arguments, by the call's id.
    written: HashMap<&'a str, &'a ToolCall>,
    /// The result as the model read it, by the call's id.
    results: HashMap<&'a str, (&'a Arc<str>, bool)>,
    made: HashMap<&'a str, &'a StoredCall>,
    iterations: Vec<TracedIteration>,
    /// The index of each iteration, by its number.
    places: HashMap<Option<u32>, usize>,
    /// The iteration of each call, and its index there, by its id.
    calls: HashMap<Box<str>, (usize, usize)>,
    notes: Vec<Note>,
    ended: Option<Note>,
    /// The tools of each menu, by fingerprint, and its withheld ones.
    menus: HashMap<String, TracedMenu>,
}

impl<'a> Builder<'a> {
    fn new(messages: &[&'a Message], calls: impl Iterator<Item = &'a StoredCall>) -> Self {
        let (mut written, mut results) = (HashMap::new(), HashMap::new());
        for message in messages {
            match message {
                Message::Assistant { calls, .. } => {
                    written.extend(calls.iter().map(|call| (&*call.id, call)));
                }
                Message::Tool { call_id, text, untrusted, .. } => {
                    results.insert(&**call_id, (text, *untrusted));
                }
                _ => {}
            }
        }
        Self {
            written,
            results,
            made: calls.map(|call| (&*call.call_id, call)).collect(),
            iterations: Vec::new(),
            places: HashMap::new(),
            calls: HashMap::new(),
            notes: Vec::new(),
            ended: None,
            menus: HashMap::new(),
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

    fn event(&mut self, event: TracedEvent) {
        let call_id = event.fields.get("call_id").and_then(Value::as_str).map(str::to_owned);
        match (&*event.name, call_id) {
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
            ("tool.end", Some(id)) => {
                if let Some(call) = self.call(&id) {
                    call.end = Some(read(&event.fields));
                }
            }
            ("policy.checked", Some(id)) => {
                if let Some(call) = self.call(&id) {
                    call.policy.push(read(&event.fields));
                }
            }
            ("agent.turn_end", _) => self.ended = Some(Note::of(event)),
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

    fn call_began(&mut self, id: &str, event: &TracedEvent) {
        let text = |field: &str| event.fields.get(field)?.as_str().map(str::to_owned);
        let tool = text("tool").unwrap_or_default();
        let written = self.written.get(id).copied();
        let made = self.made.get(id).copied();
        let result = self.results.get(id).copied();
        let as_json = |arguments: &Arguments| match arguments {
            Arguments::Json(json) => Some(json.clone()),
            Arguments::Text(text) => serde_json::from_str(text).ok(),
        };
        let ran_with = made.map(|made| made.arguments.clone()).filter(|ran| {
            written.is_none_or(|call| as_json(&call.arguments).as_ref() != Some(ran))
        });
        let call = TracedCall {
            call_id: id.into(),
            called: written.map(|call| call.name.to_string()).filter(|called| *called != tool),
            tool,
            origin: text("origin"),
            arguments: written.map(|call| call.arguments.clone()),
            ran_with,
            read_only: made.map(|made| made.read_only),
            at_ms: event.at_ms,
            end: None,
            result: result.map(|(text, _)| Arc::clone(text)),
            untrusted: result.is_some_and(|(_, untrusted)| untrusted),
            policy: Vec::new(),
            notes: Vec::new(),
        };
        if let Some(at) = self.place_at(event)
            && let Some(place) = self.iterations.get_mut(at)
        {
            self.calls.insert(id.into(), (at, place.calls.len()));
            place.calls.push(call);
        }
    }

    fn call(&mut self, id: &str) -> Option<&mut TracedCall> {
        let (iteration, index) = *self.calls.get(id)?;
        self.iterations.get_mut(iteration)?.calls.get_mut(index)
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

    /// Gives each iteration the text of its response.
    fn end(self, messages: &[&Message]) -> (Vec<TracedIteration>, Vec<Note>, Option<Note>) {
        let Self { mut iterations, notes, ended, .. } = self;
        let mut of_call: HashMap<Arc<str>, usize> = HashMap::new();
        for (at, iteration) in iterations.iter().enumerate() {
            for call in &iteration.calls {
                of_call.entry(Arc::clone(&call.call_id)).or_insert(at);
            }
        }
        let mut next = 0;
        for message in messages {
            let Message::Assistant { text, calls, .. } = message else { continue };
            let of_calls = calls.first().and_then(|first| of_call.get(&first.id).copied());
            let answered = |iteration: &TracedIteration| {
                let mut responses = iteration.requests.iter().filter_map(|r| r.response.as_ref());
                responses.any(|response| response.error.is_none())
            };
            let rest = iterations.iter().enumerate().skip(next);
            let by_order = rest.clone().find(|(_, i)| answered(i)).or(rest.clone().next());
            let at = of_calls.or(by_order.map(|(at, _)| at));
            if let Some((at, iteration)) = at.and_then(|at| Some((at, iterations.get_mut(at)?))) {
                iteration.text = Arc::clone(text);
                next = at + 1;
            }
        }
        (iterations, notes, ended)
    }
}

/// The known fields of an event; those that are missing or of another kind are left out.
fn read<T: DeserializeOwned + Default>(fields: &Map<String, Value>) -> T {
    serde_json::from_value(Value::Object(fields.clone())).unwrap_or_default()
}
