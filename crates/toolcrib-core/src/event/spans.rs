//! Spans of the crate `tracing`, made from events. The only file with names of attributes.
//!
//! Names are those of OpenTelemetry's semantic conventions for generative AI and MCP, as of version 1.39.
//! The other ones begin with `toolcrib.`.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tracing::{Span, field::Empty, info_span};

use super::{Event, EventKind, Events, Subscription};
use crate::{internal::lru_cache::LruCache, messages::message::Usage};

/// Turns with open spans. Beyond it the spans of the least recently used turn are closed: a turn whose
/// future was dropped has no last event.
const MAX_TURNS: usize = 4096;

/// The prefix of the origin of a tool of an MCP server.
const MCP: &str = "mcp:";

/// The method of a call in MCP.
const CALL: &str = "tools/call";

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

/// Connects spans with those of other processes: the bridge to an exporter of traces.
pub trait SpanLink: Send + Sync + 'static {
    /// Makes a new span the child of a remote one, given as W3C `traceparent`. The value comes from a
    /// client: ignore a malformed one.
    fn adopt(&self, span: &Span, traceparent: &str);

    /// A span as W3C `traceparent`; `None` if it is not exported.
    fn traceparent(&self, span: &Span) -> Option<String>;
}

impl Events {
    /// Writes a span of the crate `tracing` for each turn, iteration, discovery, model call and tool call.
    ///
    /// | span | within | fields |
    /// |---|---|---|
    /// | `request`, a gateway's `tools/call` | the client's span | `mcp.method.name`, `mcp.session.id`, `mcp.protocol.version`, `jsonrpc.request.id`, `gen_ai.operation.name`, `gen_ai.tool.name`, `toolcrib.tool.origin` |
    /// | `turn` | the caller's current span; for a child agent, its parent turn | `gen_ai.operation.name`, `gen_ai.agent.name`, `gen_ai.conversation.id`, `gen_ai.request.model`, `toolcrib.stopped`, `toolcrib.iterations` |
    /// | `iteration` | `turn` | `toolcrib.iteration`, `toolcrib.tool_calls` |
    /// | `discovery` | `iteration` | `toolcrib.provider`, `toolcrib.attempt`, `toolcrib.tool_count` |
    /// | `model_call` | `iteration` | `gen_ai.operation.name`, `gen_ai.request.model`, `toolcrib.messages`, `toolcrib.tools`, `toolcrib.request_bytes`, `toolcrib.response_bytes`, `toolcrib.tool_calls` |
    /// | `tool_call` | `iteration` | `gen_ai.operation.name`, `gen_ai.tool.name`, `gen_ai.tool.call.id`, `mcp.method.name`, `toolcrib.tool.origin`, `toolcrib.produced_bytes` |
    ///
    /// All have the target `toolcrib` and the level INFO. `otel.name` and `otel.kind` are for exporters.
    /// `request` and `turn` also have `toolcrib.turn_id`, `toolcrib.tenant` and `toolcrib.principal`; `turn`
    /// and `model_call` have `gen_ai.usage.input_tokens` and `gen_ai.usage.output_tokens`. A failure sets
    /// `error.type` and `otel.status_code`, and outside calls of tools `otel.status_description`. No span
    /// contains messages, arguments, results or answers. Without an enclosing turn or iteration, as in a
    /// gateway, a span is within the nearest one that exists.
    ///
    /// Only `request` is entered: `tracing` events of a tool's body are not within its `tool_call`.
    /// [`Subscription::unsubscribe`] ends it. The spans of a turn whose future is dropped are closed
    /// when 4,096 later turns have spans.
    pub fn write_spans(&self) -> Subscription {
        self.write(None)
    }

    /// The same, connected with the spans of other processes: the `traceparent` of a gateway's request is
    /// the parent of `request`, and the server that a call reaches receives that of `tool_call`.
    pub fn write_linked_spans(&self, link: impl SpanLink) -> Subscription {
        self.write(Some(Box::new(link)))
    }

    fn write(&self, link: Option<Box<dyn SpanLink>>) -> Subscription {
        let open = Mutex::new(LruCache::new(MAX_TURNS));
        let writer = Arc::new(SpanWriter { open, link });
        self.set_spans(&writer);
        self.listen("*".into(), move |event| {
            // Dropped after the lock is released: a span that closes runs the subscriber's code.
            let _closed = OpenSpans(&mut writer.open.lock()).note(event);
        })
    }
}

/// The spans of a hub.
pub(super) struct SpanWriter {
    open: Mutex<LruCache<Arc<str>, Spans>>,
    link: Option<Box<dyn SpanLink>>,
}

impl SpanWriter {
    /// The span of a call, for the server that it reaches.
    pub(super) fn traceparent(&self, turn: &str, call_id: &str) -> Option<Arc<str>> {
        let link = self.link.as_ref()?;
        let span = self.open.lock().get(turn)?.get(&Key::Call(call_id.into()))?.clone();
        link.traceparent(&span).map(Into::into)
    }
}

/// For gateways: the span of a `tools/call` request, within which its call runs.
#[derive(Debug)]
pub struct RequestSpan(Span);

impl RequestSpan {
    /// Opens it, as a child of the client's span; disabled unless the hub's spans are written.
    pub fn open(
        events: &Events,
        id: &impl fmt::Display,
        session: Option<&str>,
        protocol: &str,
        traceparent: Option<&str>,
    ) -> Self {
        let Some(writer) = events.spans() else { return Self(Span::none()) };
        let span = info_span!(
            target: "toolcrib", "request",
            otel.name = CALL, otel.kind = "server",
            mcp.method.name = CALL,
            mcp.session.id = session,
            mcp.protocol.version = protocol,
            jsonrpc.request.id = %id,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = Empty, toolcrib.tool.origin = Empty, toolcrib.turn_id = Empty,
            toolcrib.tenant = Empty, toolcrib.principal = Empty,
            error.type = Empty, otel.status_code = Empty,
        );
        if let (Some(link), Some(traceparent)) = (&writer.link, traceparent) {
            link.adopt(&span, traceparent);
        }
        Self(span)
    }

    /// The span, to be entered.
    pub fn span(&self) -> &Span {
        &self.0
    }

    /// Records whose call it is, and the tool that was found with its origin.
    pub fn found(
        &self,
        tenant: Option<&str>,
        principal: Option<&str>,
        turn: Option<&str>,
        tool: Option<(&str, &str)>,
    ) {
        let Self(span) = self;
        span.record("toolcrib.turn_id", turn);
        span.record("toolcrib.tenant", tenant);
        span.record("toolcrib.principal", principal);
        if let Some((tool, origin)) = tool {
            span.record("gen_ai.tool.name", tool).record("toolcrib.tool.origin", origin);
        }
    }

    /// Records the class of a failure.
    pub fn failed(&self, class: &str) {
        fail(&self.0, class, None);
    }
}

struct OpenSpans<'a>(&'a mut LruCache<Arc<str>, Spans>);

impl OpenSpans<'_> {
    /// Opens or closes a span; returns what is to be dropped.
    fn note(&mut self, event: &Event) -> (Option<Spans>, Option<Span>) {
        let (turn, iteration) = (&event.turn_id, event.iteration);
        match &event.kind {
            EventKind::TurnEnd { stopped, iterations, usage, error, .. } => {
                let spans = self.0.remove(turn);
                if let Some(span) = spans.as_ref().and_then(|spans| spans.get(&Key::Turn)) {
                    span.record("toolcrib.stopped", &**stopped);
                    span.record("toolcrib.iterations", number(*iterations));
                    spend(span, *usage);
                    if let Some(error) = error {
                        fail(span, stopped, Some(error));
                    }
                }
                (spans, None)
            }
            EventKind::IterationEnd { tool_calls } => {
                self.close(turn, &Key::Iteration(iteration), |span| {
                    span.record("toolcrib.tool_calls", number(*tool_calls));
                })
            }
            EventKind::DiscoveryCompleted { provider, tool_count, .. } => {
                self.close(turn, &Key::Discovery(iteration, Arc::clone(provider)), |span| {
                    span.record("toolcrib.tool_count", number(*tool_count));
                })
            }
            EventKind::DiscoveryFailed { provider, error, error_class, .. } => {
                let key = self.asked(turn, iteration, provider);
                self.close(turn, &key, |span| fail(span, error_class.as_str(), Some(error)))
            }
            EventKind::ModelEnd { calls, usage, bytes, error, error_class, .. } => {
                self.close(turn, &Key::Model(iteration), |span| {
                    span.record("toolcrib.tool_calls", number(*calls));
                    span.record("toolcrib.response_bytes", number(*bytes));
                    spend(span, *usage);
                    if let Some(error) = error {
                        let class = error_class.map_or("cancelled", |class| class.as_str());
                        fail(span, class, Some(error));
                    }
                })
            }
            EventKind::ToolEnd { call_id, code, produced_bytes, .. } => {
                self.close(turn, &Key::Call(Arc::clone(call_id)), |span| {
                    span.record("toolcrib.produced_bytes", number(*produced_bytes));
                    if let Some(code) = code {
                        // The cause may quote the tool's result.
                        fail(span, code.as_str(), None);
                    }
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
        let parent = match &event.kind {
            EventKind::TurnStart { parent_turn: Some(parent), .. } => self.parent(parent, None),
            _ => self.parent(turn, iteration),
        };
        // An absent parent is the caller's current span.
        let current = Span::current();
        let parent = parent.as_ref().unwrap_or(&current);
        let (key, span) = match &event.kind {
            EventKind::TurnStart { model, personality, .. } => {
                let identity = &event.identity;
                let span = info_span!(
                    target: "toolcrib", parent: parent, "turn",
                    otel.name = format!("invoke_agent {personality}"), otel.kind = "internal",
                    toolcrib.turn_id = &**turn,
                    toolcrib.tenant = identity.tenant.as_deref(),
                    toolcrib.principal = identity.principal.as_deref(),
                    gen_ai.operation.name = "invoke_agent",
                    gen_ai.agent.name = &**personality,
                    gen_ai.conversation.id = &*identity.conversation,
                    gen_ai.request.model = &**model,
                    gen_ai.usage.input_tokens = Empty,
                    gen_ai.usage.output_tokens = Empty,
                    toolcrib.stopped = Empty, toolcrib.iterations = Empty, error.type = Empty,
                    otel.status_code = Empty, otel.status_description = Empty,
                );
                (Key::Turn, span)
            }
            EventKind::IterationStart => {
                let span = info_span!(
                    target: "toolcrib", parent: parent, "iteration",
                    toolcrib.iteration = iteration.map(number), toolcrib.tool_calls = Empty,
                );
                (Key::Iteration(iteration), span)
            }
            EventKind::DiscoveryStarted { provider, attempt } => {
                let span = info_span!(
                    target: "toolcrib", parent: parent, "discovery",
                    toolcrib.provider = &**provider, toolcrib.attempt = number(*attempt),
                    toolcrib.tool_count = Empty, error.type = Empty,
                    otel.status_code = Empty, otel.status_description = Empty,
                );
                (Key::Discovery(iteration, Arc::clone(provider)), span)
            }
            EventKind::ModelStart { model, messages, tools, bytes, .. } => {
                let span = info_span!(
                    target: "toolcrib", parent: parent, "model_call",
                    otel.name = format!("chat {model}"), otel.kind = "client",
                    gen_ai.operation.name = "chat",
                    gen_ai.request.model = &**model,
                    gen_ai.usage.input_tokens = Empty,
                    gen_ai.usage.output_tokens = Empty,
                    toolcrib.messages = number(*messages), toolcrib.tools = number(*tools),
                    toolcrib.request_bytes = number(*bytes), toolcrib.response_bytes = Empty,
                    toolcrib.tool_calls = Empty, error.type = Empty,
                    otel.status_code = Empty, otel.status_description = Empty,
                );
                (Key::Model(iteration), span)
            }
            EventKind::ToolStart { call_id, tool, origin, .. } => {
                let is_remote = origin.as_ref().is_some_and(|origin| origin.starts_with(MCP));
                // A name that no tool has may be any text.
                let known = origin.as_ref().map(|_| &**tool);
                let name =
                    known.map_or("execute_tool".into(), |name| format!("execute_tool {name}"));
                let span = info_span!(
                    target: "toolcrib", parent: parent, "tool_call",
                    otel.name = name,
                    otel.kind = if is_remote { "client" } else { "internal" },
                    mcp.method.name = is_remote.then_some(CALL),
                    gen_ai.operation.name = "execute_tool",
                    gen_ai.tool.name = known,
                    gen_ai.tool.call.id = &**call_id,
                    toolcrib.tool.origin = origin.as_deref(), toolcrib.produced_bytes = Empty,
                    error.type = Empty, otel.status_code = Empty,
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

/// A number for exporters: that of OpenTelemetry writes unsigned ones as text.
fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

fn spend(span: &Span, usage: Usage) {
    span.record("gen_ai.usage.input_tokens", number(usage.input_tokens));
    span.record("gen_ai.usage.output_tokens", number(usage.output_tokens));
}

fn fail(span: &Span, class: &str, description: Option<&str>) {
    span.record("error.type", class).record("otel.status_code", "ERROR");
    if let Some(description) = description {
        span.record("otel.status_description", description);
    }
}
