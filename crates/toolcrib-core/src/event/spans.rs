//! Spans of the crate `tracing`, made from events.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tracing::{Span, field::Empty, info_span};

use super::{Event, EventKind, Events, Subscription};
use crate::{bounded::Bounded, message::Usage};

/// Turns with open spans. Beyond it the spans of the least recently used turn are closed: a turn whose
/// future was dropped has no last event.
const MAX_TURNS: usize = 4096;

/// A span within its turn. Discoveries and model calls belong to an iteration.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Key {
    Turn,
    Iteration(Option<u32>),
    Discovery(Option<u32>, Arc<str>),
    Model(Option<u32>),
    Call(Arc<str>),
}

type Spans = HashMap<Key, Span>;

impl Events {
    /// Writes a span of the crate `tracing` for each turn, iteration, discovery, model call and tool call.
    ///
    /// | span | within | fields |
    /// |---|---|---|
    /// | `turn` | the caller's current span | `turn_id`, `tenant`, `principal`, `personality`, `gen_ai.request.model`, `stopped`, `iterations` |
    /// | `iteration` | `turn` | `iteration`, `tool_calls` |
    /// | `discovery` | `iteration` | `provider`, `attempt`, `tool_count` |
    /// | `model_call` | `iteration` | `gen_ai.request.model`, `messages`, `tools`, `request_bytes`, `response_bytes`, `calls` |
    /// | `tool_call` | `iteration` | `gen_ai.tool.name`, `gen_ai.tool.call.id`, `origin`, `code`, `produced_bytes` |
    ///
    /// All have the target `toolcrib` and the level INFO. `turn` and `model_call` also have
    /// `gen_ai.usage.input_tokens` and `gen_ai.usage.output_tokens`. A failure sets `error` and
    /// `otel.status_code`. No span contains messages, arguments, results or answers. Without an
    /// enclosing turn or iteration, as in a gateway, a span is within the nearest one that exists.
    ///
    /// The spans are not entered: `tracing` events of a tool's body are not within its `tool_call`.
    /// [`Subscription::unsubscribe`] ends it. The spans of a turn whose future is dropped are closed
    /// when 4,096 later turns have spans.
    pub fn write_spans(&self) -> Subscription {
        let open = Mutex::new(Bounded::<Arc<str>, Spans>::new(MAX_TURNS));
        self.listen("*".into(), move |event| {
            // Dropped after the lock is released: a span that closes runs the subscriber's code.
            let _closed = Open(&mut open.lock()).note(event);
        })
    }
}

/// The spans that are open.
struct Open<'a>(&'a mut Bounded<Arc<str>, Spans>);

impl Open<'_> {
    /// Opens or closes a span; returns what is to be dropped.
    fn note(&mut self, event: &Event) -> (Option<Spans>, Option<Span>) {
        let (turn, iteration) = (&event.turn_id, event.iteration);
        match &event.kind {
            EventKind::TurnEnd { stopped, iterations, usage, error, .. } => {
                let spans = self.0.remove(turn);
                if let Some(span) = spans.as_ref().and_then(|spans| spans.get(&Key::Turn)) {
                    span.record("stopped", &**stopped).record("iterations", *iterations);
                    spend(span, *usage);
                    fail(span, error.as_deref());
                }
                (spans, None)
            }
            EventKind::IterationEnd { tool_calls } => {
                self.close(turn, &Key::Iteration(iteration), |span| {
                    span.record("tool_calls", *tool_calls);
                })
            }
            EventKind::DiscoveryCompleted { provider, tool_count, .. } => {
                self.close(turn, &Key::Discovery(iteration, Arc::clone(provider)), |span| {
                    span.record("tool_count", *tool_count);
                })
            }
            EventKind::DiscoveryFailed { provider, error, .. } => {
                let key = self.asked(turn, iteration, provider);
                self.close(turn, &key, |span| fail(span, Some(error)))
            }
            EventKind::ModelEnd { calls, usage, bytes, error, .. } => {
                self.close(turn, &Key::Model(iteration), |span| {
                    span.record("calls", *calls).record("response_bytes", *bytes);
                    spend(span, *usage);
                    fail(span, error.as_deref());
                })
            }
            EventKind::ToolEnd { call_id, ok, code, cause, produced_bytes, .. } => {
                self.close(turn, &Key::Call(Arc::clone(call_id)), |span| {
                    let code = code.map_or("ok", |code| code.as_str());
                    span.record("code", code).record("produced_bytes", *produced_bytes);
                    fail(span, (!ok).then(|| cause.as_deref().unwrap_or(code)));
                })
            }
            EventKind::TurnStart { .. }
            | EventKind::IterationStart
            | EventKind::DiscoveryStarted { .. }
            | EventKind::ModelStart { .. }
            | EventKind::ToolStart { .. } => (self.open(event), None),
            _ => (None, None),
        }
    }

    /// Opens a span, if the event starts one; returns the spans of a turn that was evicted.
    fn open(&mut self, event: &Event) -> Option<Spans> {
        let (turn, iteration) = (&event.turn_id, event.iteration);
        let parent = self.parent(turn, iteration);
        // An absent parent is the caller's current span.
        let current = Span::current();
        let parent = parent.as_ref().unwrap_or(&current);
        let (key, span) = match &event.kind {
            EventKind::TurnStart { model, personality, .. } => {
                let identity = &event.identity;
                let span = info_span!(
                    target: "toolcrib", parent: parent, "turn",
                    turn_id = &**turn,
                    tenant = identity.tenant.as_deref(),
                    principal = identity.principal.as_deref(),
                    personality = &**personality,
                    gen_ai.operation.name = "invoke_agent",
                    gen_ai.request.model = &**model,
                    gen_ai.usage.input_tokens = Empty,
                    gen_ai.usage.output_tokens = Empty,
                    stopped = Empty, iterations = Empty, error = Empty, otel.status_code = Empty,
                );
                (Key::Turn, span)
            }
            EventKind::IterationStart => {
                let span = info_span!(
                    target: "toolcrib", parent: parent, "iteration",
                    iteration, tool_calls = Empty,
                );
                (Key::Iteration(iteration), span)
            }
            EventKind::DiscoveryStarted { provider, attempt } => {
                let span = info_span!(
                    target: "toolcrib", parent: parent, "discovery",
                    provider = &**provider, attempt,
                    tool_count = Empty, error = Empty, otel.status_code = Empty,
                );
                (Key::Discovery(iteration, Arc::clone(provider)), span)
            }
            EventKind::ModelStart { model, messages, tools, bytes, .. } => {
                let span = info_span!(
                    target: "toolcrib", parent: parent, "model_call",
                    gen_ai.operation.name = "chat",
                    gen_ai.request.model = &**model,
                    gen_ai.usage.input_tokens = Empty,
                    gen_ai.usage.output_tokens = Empty,
                    messages, tools, request_bytes = bytes,
                    response_bytes = Empty, calls = Empty, error = Empty, otel.status_code = Empty,
                );
                (Key::Model(iteration), span)
            }
            EventKind::ToolStart { call_id, tool, origin, .. } => {
                let span = info_span!(
                    target: "toolcrib", parent: parent, "tool_call",
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = &**tool,
                    gen_ai.tool.call.id = &**call_id,
                    origin = origin.as_deref(),
                    code = Empty, produced_bytes = Empty, error = Empty, otel.status_code = Empty,
                );
                (Key::Call(Arc::clone(call_id)), span)
            }
            _ => return None,
        };
        match self.0.get(turn) {
            Some(spans) => {
                spans.insert(key, span);
                None
            }
            None => self.0.insert(Arc::clone(turn), Spans::from([(key, span)])),
        }
    }

    /// Closes a span. The last one of a turn that no runner drives ends the turn.
    fn close(
        &mut self,
        turn: &Arc<str>,
        key: &Key,
        record: impl FnOnce(&Span),
    ) -> (Option<Spans>, Option<Span>) {
        let Some(spans) = self.0.get(turn) else { return (None, None) };
        let span = spans.remove(key);
        if let Some(span) = &span {
            record(span);
        }
        let emptied = spans.is_empty();
        (emptied.then(|| self.0.remove(turn)).flatten(), span)
    }

    /// The nearest open span around an event.
    fn parent(&mut self, turn: &Arc<str>, iteration: Option<u32>) -> Option<Span> {
        let spans = self.0.get(turn)?;
        spans.get(&Key::Iteration(iteration)).or_else(|| spans.get(&Key::Turn)).cloned()
    }

    /// The discovery that failed: the path in the error may be that of a provider within the queried
    /// one.
    fn asked(&mut self, turn: &Arc<str>, iteration: Option<u32>, failed: &Arc<str>) -> Key {
        let exact = Key::Discovery(iteration, Arc::clone(failed));
        let spans = self.0.get(turn).filter(|spans| !spans.contains_key(&exact));
        let around = spans.into_iter().flat_map(|spans| spans.keys()).filter_map(|key| match key {
            Key::Discovery(of, path) if *of == iteration && failed.starts_with(&**path) => {
                Some(path)
            }
            _ => None,
        });
        match around.max_by_key(|path| path.len()) {
            Some(path) => Key::Discovery(iteration, Arc::clone(path)),
            None => exact,
        }
    }
}

fn spend(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input_tokens);
    span.record("gen_ai.usage.output_tokens", usage.output_tokens);
}

fn fail(span: &Span, error: Option<&str>) {
    if let Some(error) = error {
        span.record("error", error).record("otel.status_code", "ERROR");
    }
}
