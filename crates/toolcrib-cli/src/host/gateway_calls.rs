//! The calls of a gateway in a separate store, so that `runs` and `trace` look back at them like at
//! the runs of an agent: each call is a turn of its caller, and ended by the gateway's log.

use std::{
    collections::{HashMap, HashSet},
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib_core::{
    Arguments, CallIntent, CallOutcome, ErrorCode, Event, EventKind, Message, NewSession,
    SessionLease, SessionOwner, SessionRecord, SessionRetention, SessionStore as _,
    SessionStoreError, ToolCall, TracedEvent, Usage,
};
use toolcrib_engine::DEFAULT_PERSONALITY;
use toolcrib_gateway::AccessEntry;
use toolcrib_project::Project;
use toolcrib_store::SqliteStore;

use crate::{output, problem::Problem};

/// The file in the state folder.
const FILE: &str = "gateway-calls.db";

/// What `runs` shows as the model.
const GATEWAY: &str = "gateway";

/// How long calls stay, and how many bytes of them.
const RETENTION: SessionRetention =
    SessionRetention { keep_for: Duration::from_hours(30 * 24), max_bytes: 1024 * 1024 * 1024 };

/// The entries on their way to the store. A caller waits while it is full: no call is lost.
const QUEUE: usize = 1_024;

/// The calls of one session, which `show` prints at once.
const CALLS_OF_SESSION: u32 = 200;

/// The most events of a call, and bytes of its result.
const MOST_EVENTS: usize = 256;
const MOST_BYTES: usize = 64 * 1024;

/// The file with the calls of the gateways of a project.
pub(crate) fn file(project: &Project) -> PathBuf {
    project.state().join(FILE)
}

/// The writer of the calls of a gateway.
#[derive(Clone)]
pub(crate) struct GatewayCalls {
    entries: SyncSender<Entry>,
    /// The turns of child agents: their calls belong to the call that began them.
    of_agents: Arc<Mutex<HashSet<Arc<str>>>>,
}

enum Entry {
    Began { turn: Arc<str>, owner: SessionOwner, conversation: Arc<str>, call: ToolCall },
    Event { turn: Arc<str>, event: TracedEvent },
    Result { turn: Arc<str>, result: Message },
    Ended { turn: Arc<str>, entry: Box<AccessEntry> },
    Flush(SyncSender<()>),
}

impl GatewayCalls {
    /// Opens the store. Blocks.
    pub(crate) fn open(project: &Project) -> Result<Self, Problem> {
        let state = project.state();
        DirBuilder::new().recursive(true).mode(0o700).create(state).map_err(|error| {
            Problem::usage(format!(
                "`--store-calls`: {} cannot be created: {error}",
                state.display()
            ))
        })?;
        let store = SqliteStore::open(file(project))?;
        store.prune(&RETENTION)?;
        let (entries, received) = sync_channel(QUEUE);
        let writer =
            Writer { store, open: HashMap::new(), free: HashMap::new(), has_failed: false };
        let work = move || writer.write_all(&received);
        thread::Builder::new().name("gateway-calls".into()).spawn(work).map_err(|error| {
            Problem::usage(format!("`--store-calls`: no thread can be started: {error}"))
        })?;
        Ok(Self { entries, of_agents: Arc::default() })
    }

    /// Notes an event of the engine.
    pub(crate) fn event(&self, event: &Event) {
        let turn = &event.turn_id;
        match &event.kind {
            EventKind::TurnStart { .. } => drop(self.of_agents.lock().insert(Arc::clone(turn))),
            EventKind::TurnEnd { .. } => drop(self.of_agents.lock().remove(turn)),
            kind if self.of_agents.lock().contains(turn) || is_of_listing(kind) => {}
            EventKind::ToolStart { call_id, tool, args, .. } => {
                self.send(Entry::Began {
                    turn: Arc::clone(turn),
                    owner: SessionOwner::from(&*event.identity),
                    conversation: Arc::clone(&event.identity.conversation),
                    call: ToolCall::new(Arc::clone(call_id), Arc::clone(tool), args.clone()),
                });
                self.keep(event);
            }
            EventKind::ToolEnd { call_id, tool, ok, value, .. } => {
                let mut text = value.to_string();
                if text.len() > MOST_BYTES {
                    text.truncate(text.floor_char_boundary(MOST_BYTES));
                    text.push_str("… (the rest is not stored)");
                }
                let result = Message::Tool {
                    call_id: Arc::clone(call_id),
                    name: Arc::clone(tool),
                    text: text.into(),
                    blocks: Arc::default(),
                    is_error: !ok,
                    untrusted: false,
                };
                self.keep(event);
                self.send(Entry::Result { turn: Arc::clone(turn), result });
            }
            _ => self.keep(event),
        }
    }

    fn keep(&self, event: &Event) {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(&event.kind) else { return };
        // The messages have them.
        for field in ["type", "args", "value"] {
            fields.remove(field);
        }
        let (name, iteration, at_ms) = (event.kind.name().into(), event.iteration, event.at_ms);
        let event_of = TracedEvent { name, iteration, at_ms, fields };
        self.send(Entry::Event { turn: Arc::clone(&event.turn_id), event: event_of });
    }

    /// Notes the end of a request.
    pub(crate) fn ended(&self, entry: &AccessEntry) {
        if let Some(turn) = &entry.turn_id {
            self.send(Entry::Ended { turn: Arc::clone(turn), entry: Box::new(entry.clone()) });
        }
    }

    /// Waits until all is written. Blocks.
    pub(crate) fn flush(&self) {
        let (done, is_done) = sync_channel(1);
        self.send(Entry::Flush(done));
        let _ = is_done.recv();
    }

    fn send(&self, entry: Entry) {
        // The writer ends with the last sender only.
        let _ = self.entries.send(entry);
    }
}

/// Whether an event is about the menu, which is the same for all calls of a caller.
fn is_of_listing(kind: &EventKind) -> bool {
    kind.name().starts_with("tools.") || matches!(kind, EventKind::ToolProgress { .. })
}

/// The sessions of the store: one for each call at a time of an owner.
struct Writer {
    store: SqliteStore,
    open: HashMap<Arc<str>, OpenCall>,
    free: HashMap<SessionOwner, Vec<Lane>>,
    /// Whether the last write failed, which is printed once.
    has_failed: bool,
}

/// A session that has no open call.
struct Lane {
    lease: SessionLease,
    /// The number of its last write.
    seen: u64,
    calls: u32,
}

struct OpenCall {
    owner: SessionOwner,
    lane: Lane,
    call: ToolCall,
    events: Vec<SessionRecord>,
    result: Option<Message>,
}

impl Writer {
    fn write_all(mut self, entries: &Receiver<Entry>) {
        while let Ok(entry) = entries.recv() {
            let written = match entry {
                Entry::Began { turn, owner, conversation, call } => {
                    self.began(turn, owner, &conversation, call)
                }
                Entry::Event { turn, event } => {
                    if let Some(open) = self.open.get_mut(&turn)
                        && open.events.len() < MOST_EVENTS
                    {
                        open.events.push(SessionRecord::Event(event));
                    }
                    Ok(())
                }
                Entry::Result { turn, result } => {
                    if let Some(open) = self.open.get_mut(&turn) {
                        open.result = Some(result);
                    }
                    Ok(())
                }
                Entry::Ended { turn, entry } => match self.open.remove(&turn) {
                    Some(open) => self.ended(open, &entry),
                    None => Ok(()),
                },
                Entry::Flush(done) => {
                    let _ = done.send(());
                    Ok(())
                }
            };
            match written {
                Err(error) if !self.has_failed => {
                    self.has_failed = true;
                    output::calls_not_stored(&error);
                }
                Err(_) => {}
                Ok(()) => {}
            }
        }
    }

    fn began(
        &mut self,
        turn: Arc<str>,
        owner: SessionOwner,
        conversation: &str,
        call: ToolCall,
    ) -> Result<(), SessionStoreError> {
        let mut lane = match self.free.get_mut(&owner).and_then(Vec::pop) {
            Some(lane) => lane,
            None => self.lane(&owner)?,
        };
        let asked = format!("tools/call {} in the conversation {conversation}", call.name);
        lane.seen = self.store.write(
            &lane.lease,
            lane.seen,
            &[
                SessionRecord::TurnBegan {
                    model: GATEWAY.into(),
                    title: Arc::clone(&call.name),
                    skills: Vec::new(),
                },
                SessionRecord::Message(Message::user(asked)),
                SessionRecord::Message(Message::assistant("", [call.clone()])),
            ],
        )?;
        let open = OpenCall { owner, lane, call, events: Vec::new(), result: None };
        self.open.insert(turn, open);
        Ok(())
    }

    fn lane(&self, owner: &SessionOwner) -> Result<Lane, SessionStoreError> {
        self.store.prune(&RETENTION)?;
        let new = NewSession {
            owner: owner.clone(),
            name: None,
            personality: DEFAULT_PERSONALITY.into(),
        };
        let session = self.store.create(&new)?;
        // No other process writes to this session, because it has no name and no list shows it.
        let lease = self.store.acquire(owner, &session.id, Duration::from_secs(1))?;
        Ok(Lane { lease, seen: 0, calls: 0 })
    }

    fn ended(&mut self, open: OpenCall, entry: &AccessEntry) -> Result<(), SessionStoreError> {
        let OpenCall { owner, mut lane, call, events, result } = open;
        let outcome = CallOutcome::of(entry.code);
        // A check or a rule refuses with these codes before the body.
        let refused = [
            ErrorCode::InputInvalid,
            ErrorCode::Denied,
            ErrorCode::NotAvailable,
            ErrorCode::AwaitingApproval,
        ];
        let is_made = result.is_some() && entry.code.is_none_or(|code| !refused.contains(&code));
        let intent = entry.read_only.filter(|_| is_made).map(|read_only| {
            SessionRecord::Intent(CallIntent {
                call_id: Arc::clone(&call.id),
                tool: entry.tool.clone().unwrap_or_else(|| Arc::clone(&call.name)),
                arguments: match &call.arguments {
                    Arguments::Json(json) => json.clone(),
                    Arguments::Text(text) => Value::from(text.as_str()),
                },
                read_only,
                idempotent: false,
            })
        });
        let call_id = Arc::clone(&call.id);
        let mut records: Vec<_> = intent.into_iter().chain(events).collect();
        records.push(SessionRecord::Outcome { call_id, outcome, result: None });
        records.extend(result.map(SessionRecord::Message));
        let has_failed = entry.code.is_some() || entry.error.is_some();
        records.push(SessionRecord::TurnEnded {
            stopped: match (entry.code, has_failed) {
                (Some(code), _) => code.as_str().into(),
                (None, true) => "failed".into(),
                (None, false) => "answered".into(),
            },
            error: entry.error.clone(),
            usage: Usage::NOTHING,
        });
        lane.seen = self.store.write(&lane.lease, lane.seen, &records)?;
        self.has_failed = false;
        lane.calls += 1;
        if lane.calls < CALLS_OF_SESSION {
            self.free.entry(owner).or_default().push(lane);
        }
        Ok(())
    }
}
