//! The common prefix of consecutive requests, as cached by vendors.

use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use toolcrib_core::{
    __internal::LruCache, ContentBlock, Digest, EventKind, Identity, Menu, Message, SentPart,
    SentParts, ToolChoice, ToolName,
};

use super::{recording::Recording, report::Report};

/// The maximum number of remembered conversations; the least recently used is evicted. Vendors'
/// prompt caches expire within minutes.
const MAX_CONVERSATIONS: usize = 32;

/// The prefix of the last request of each named conversation, so that changes between two runs are
/// detected like those between two iterations. Keyed by tenant and principal too, so that no
/// identity learns of another's tools.
pub(crate) struct Conversations(Mutex<LruCache<Arc<Identity>, SentRequest>>);

/// A request, reduced to the parts that vendors cache.
struct SentRequest {
    system: Arc<str>,
    menu: Arc<Menu>,
    tool_choice: ToolChoice,
    /// The number of its run.
    run: u64,
    /// One per message: conversations may be long, and are owned by the caller.
    messages: Vec<Digest>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MAX_CONVERSATIONS)))
    }
}

/// The prefix of a run's requests. Within a run the system text is constant and messages are only
/// appended, so that between iterations only menu and tool choice are compared.
pub(super) struct Prefix {
    system: Arc<str>,
    last: Option<(Arc<Menu>, ToolChoice)>,
    /// The number of messages of the last request.
    sent: usize,
    /// The last request of the session, if another process sent it.
    stored: Option<StoredPrefix>,
    sent_parts: Option<Arc<SentParts>>,
    /// The changes since the last run of the conversation, until the first request reports them.
    since_last_run: Change,
    /// The number of the run.
    run: u64,
    /// The digests of the first messages, which are those of the last run.
    digests: Vec<Digest>,
}

/// A number that no other run of this process has.
fn next_run() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[derive(Default)]
struct Change {
    system: bool,
    messages_from: Option<usize>,
}

impl Prefix {
    /// The prefix of a run, compared with the last one of its conversation. A recording knows which
    /// messages are those of an earlier run.
    pub(super) fn new(
        conversations: &Conversations,
        whose: Option<&Identity>,
        system: &Arc<str>,
        messages: &[Message],
        recording: Option<&Recording>,
    ) -> Self {
        let sent_parts = recording.map(|recording| Arc::clone(recording.sent_parts()));
        let settled = recording.map(Recording::settled_before).unwrap_or_default();
        let mut before = whose.and_then(|whose| conversations.0.lock().remove(whose));
        let of_run = before.as_mut().filter(|before| before.run == settled.run);
        let mut digests = of_run.map(|before| mem::take(&mut before.messages)).unwrap_or_default();
        let others = digests.split_off(settled.messages.min(digests.len()));
        let since_last_run = before.as_ref().map(|before| Change {
            system: before.system != *system,
            messages_from: others
                .iter()
                .chain(&before.messages)
                .zip(digests.len()..)
                .map(|(known, at)| (at, known))
                .find(|(at, known)| messages.get(*at).is_none_or(|now| digest(now) != **known))
                .map(|(at, _)| at),
        });
        let stored = sent_parts.as_ref().filter(|_| before.is_none());
        Self {
            system: Arc::clone(system),
            stored: stored.and_then(|sent| StoredPrefix::of(sent)),
            sent_parts,
            last: before.map(|before| (before.menu, before.tool_choice)),
            sent: 0,
            since_last_run: since_last_run.unwrap_or_default(),
            run: next_run(),
            digests,
        }
    }

    /// Before a request: reports changes that miss the prompt cache, if any.
    pub(super) fn next(
        &mut self,
        menu: &Arc<Menu>,
        tool_choice: &ToolChoice,
        messages: usize,
        report: &Report,
    ) {
        self.sent = messages;
        let Change { system, messages_from } = mem::take(&mut self.since_last_run);
        let Some((before, choice)) = self.last.replace((Arc::clone(menu), tool_choice.clone()))
        else {
            let stored = self.stored.take();
            self.store(menu);
            if let Some(stored) = stored {
                self.compare(&stored, menu, report);
            }
            return;
        };
        let tool_choice_changed = choice != *tool_choice;
        let same_menu = before.fingerprint() == menu.fingerprint();
        if same_menu && !tool_choice_changed && !system && messages_from.is_none() {
            return;
        }
        if !same_menu || system {
            self.store(menu);
        }
        report.emit(|| {
            let tools = match same_menu {
                true => Tools::default(),
                false => Tools::between(&listed(&before), &listed(menu)),
            };
            EventKind::PrefixChanged {
                tools_added: tools.added,
                tools_removed: tools.removed,
                tools_changed: tools.changed,
                tools_reordered: tools.reordered,
                system_changed: system,
                tool_choice_changed,
                messages_from,
            }
        });
    }

    /// Stores the tools and the system text with the session.
    fn store(&self, menu: &Menu) {
        let Some(sent) = &self.sent_parts else { return };
        let prefix = StoredPrefix {
            system: Digest::of(&*self.system),
            menu: menu.fingerprint(),
            tools: menu
                .tools()
                .iter()
                .map(|tool| (tool.name().to_string(), tool.digest()))
                .collect(),
        };
        if let Ok(json) = serde_json::to_string(&prefix) {
            let part = SentPart { key: StoredPrefix::key(), json: json.into() };
            if sent.get(&part.key).as_deref() != Some(&*part.json) {
                sent.set(part);
            }
        }
    }

    /// Reports what has changed since another process sent the last request of the session.
    fn compare(&self, before: &StoredPrefix, menu: &Menu, report: &Report) {
        let system_changed = before.system != Digest::of(&*self.system);
        let same_menu = before.menu == menu.fingerprint();
        if same_menu && !system_changed {
            return;
        }
        report.emit(|| {
            let tools = match same_menu {
                true => Tools::default(),
                false => Tools::between(&before.listed(), &listed(menu)),
            };
            EventKind::PrefixChanged {
                tools_added: tools.added,
                tools_removed: tools.removed,
                tools_changed: tools.changed,
                tools_reordered: tools.reordered,
                system_changed,
                tool_choice_changed: false,
                messages_from: None,
            }
        });
    }

    /// The number of the run.
    pub(super) fn run(&self) -> u64 {
        self.run
    }

    /// Notes that only this number of messages at the beginning are those of the last run.
    pub(super) fn unchanged(&mut self, messages: usize) {
        self.digests.truncate(messages);
    }

    /// Stores the last request, for the next run of the conversation.
    pub(super) fn keep(
        self,
        conversations: &Conversations,
        whose: Option<Arc<Identity>>,
        messages: &[Message],
    ) {
        let (mut digests, run) = (self.digests, self.run);
        if let (Some(whose), Some((menu, tool_choice))) = (whose, self.last) {
            digests.truncate(self.sent);
            digests.extend(messages.iter().take(self.sent).skip(digests.len()).map(digest));
            let messages = digests;
            let asked = SentRequest { system: self.system, menu, tool_choice, run, messages };
            let evicted = conversations.0.lock().insert(whose, asked);
            drop(evicted);
        }
    }
}

/// The digest of a message, including the bytes of images and the like.
fn digest(message: &Message) -> Digest {
    let mut parts = vec![Digest::of(serde_json::to_string(message).unwrap_or_default())];
    let data = message.blocks().iter().map(ContentBlock::data);
    parts.extend(data.filter(|data| !data.is_empty()).map(Digest::of));
    Digest::of_all(&parts)
}

/// The tools and the system text of the last request of a session, as they are stored with it.
#[derive(Serialize, Deserialize)]
struct StoredPrefix {
    system: Digest,
    menu: Digest,
    tools: Vec<(String, Digest)>,
}

impl StoredPrefix {
    fn key() -> Digest {
        Digest::of("the prefix of the last request")
    }

    fn of(sent: &SentParts) -> Option<Self> {
        serde_json::from_str(&sent.get(&Self::key())?).ok()
    }

    fn listed(&self) -> Vec<(ToolName, Digest)> {
        let named =
            |(name, digest): &(String, Digest)| Some((ToolName::new(name.as_str()).ok()?, *digest));
        self.tools.iter().filter_map(named).collect()
    }
}

/// The tools of a menu, in order, with their digests.
fn listed(menu: &Menu) -> Vec<(ToolName, Digest)> {
    menu.tools().iter().map(|tool| (tool.name().clone(), tool.digest())).collect()
}

/// The differences between two lists of tools.
#[derive(Default)]
struct Tools {
    added: Vec<ToolName>,
    removed: Vec<ToolName>,
    changed: Vec<ToolName>,
    reordered: bool,
}

impl Tools {
    fn between(before: &[(ToolName, Digest)], after: &[(ToolName, Digest)]) -> Self {
        let old: HashMap<_, _> = before.iter().map(|(name, digest)| (name, digest)).collect();
        let new: HashMap<_, _> = after.iter().map(|(name, digest)| (name, digest)).collect();
        let names = |list: &[(ToolName, Digest)], is: &dyn Fn(&ToolName) -> bool| {
            let names = list.iter().map(|(name, _)| name).filter(|name| is(name));
            names.cloned().collect::<Vec<_>>()
        };
        let stayed = names(after, &|name| old.contains_key(name));
        Self {
            added: names(after, &|name| !old.contains_key(name)),
            removed: names(before, &|name| !new.contains_key(name)),
            reordered: names(before, &|name| new.contains_key(name)) != stayed,
            changed: names(after, &|name| {
                old.get(name).is_some_and(|old| new.get(name) != Some(old))
            }),
        }
    }
}
