//! What the next request has in common with the one before, as far as vendors cache it.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolcrib_core::{EventKind, Menu, Message, ToolName};

use super::report::Report;

/// How many conversations an agent remembers; the one that was used longest ago makes room. Vendors
/// forget what they cached within minutes.
const MAX_CONVERSATIONS: usize = 32;

/// How the last request of each conversation began that a caller named: a change between two runs
/// is noticed as one between two iterations is.
#[derive(Default)]
pub(crate) struct Conversations(Mutex<VecDeque<(Arc<str>, Asked)>>);

/// A request, as far as vendors cache it.
struct Asked {
    system: Arc<str>,
    menu: Arc<Menu>,
    messages: Arc<Vec<Message>>,
}

impl Conversations {
    fn take(&self, conversation: &str) -> Option<Asked> {
        let mut known = self.known();
        let position = known.iter().position(|(known, _)| **known == *conversation)?;
        known.remove(position).map(|(_, asked)| asked)
    }

    fn put(&self, conversation: Arc<str>, asked: Asked) {
        let mut known = self.known();
        known.retain(|(known, _)| *known != conversation);
        if known.len() >= MAX_CONVERSATIONS {
            known.pop_front();
        }
        known.push_back((conversation, asked));
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<(Arc<str>, Asked)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of a run's requests. Within a run the system text stands and messages are only
/// added, so that between iterations nothing but the menu is looked at.
pub(super) struct Prefix {
    system: Arc<str>,
    menu: Option<Arc<Menu>>,
    /// What differs from the last run of the conversation, until the first request says it.
    since_last_run: Change,
}

#[derive(Default)]
struct Change {
    system: bool,
    messages_from: Option<usize>,
}

impl Prefix {
    /// The beginning of a run, seen against the last one of its conversation.
    pub(super) fn new(
        conversations: &Conversations,
        conversation: Option<&Arc<str>>,
        system: &Arc<str>,
        messages: &[Message],
    ) -> Self {
        let before = conversation.and_then(|conversation| conversations.take(conversation));
        let since_last_run = before.as_ref().map(|before| Change {
            system: before.system != *system,
            messages_from: before
                .messages
                .iter()
                .enumerate()
                .find(|(at, message)| messages.get(*at) != Some(message))
                .map(|(at, _)| at),
        });
        Self {
            system: Arc::clone(system),
            menu: before.map(|before| before.menu),
            since_last_run: since_last_run.unwrap_or_default(),
        }
    }

    /// The next request goes out: says what busts the cache, if anything does.
    pub(super) fn next(&mut self, menu: &Arc<Menu>, report: &Report) {
        let Change { system, messages_from } = std::mem::take(&mut self.since_last_run);
        let before = self.menu.replace(Arc::clone(menu));
        let before = before.filter(|before| before.fingerprint() != menu.fingerprint());
        if before.is_none() && !system && messages_from.is_none() {
            return;
        }
        report.emit(|| {
            let tools = before.map(|before| Tools::between(&before, menu)).unwrap_or_default();
            EventKind::PrefixChanged {
                tools_added: tools.added,
                tools_removed: tools.removed,
                tools_changed: tools.changed,
                tools_reordered: tools.reordered,
                system_changed: system,
                messages_from,
            }
        });
    }

    /// Remembers how the run ended, for the next one of its conversation.
    pub(super) fn keep(
        self,
        conversations: &Conversations,
        conversation: Option<&Arc<str>>,
        messages: &Arc<Vec<Message>>,
    ) {
        if let (Some(conversation), Some(menu)) = (conversation, self.menu) {
            let asked = Asked { system: self.system, menu, messages: Arc::clone(messages) };
            conversations.put(Arc::clone(conversation), asked);
        }
    }
}

/// How two menus differ.
#[derive(Default)]
struct Tools {
    added: Vec<ToolName>,
    removed: Vec<ToolName>,
    changed: Vec<ToolName>,
    reordered: bool,
}

impl Tools {
    fn between(before: &Menu, after: &Menu) -> Self {
        let names = |menu: &Menu| menu.names().cloned().collect::<HashSet<_>>();
        let (old, new) = (names(before), names(after));
        let missing = |menu: &Menu, from: &HashSet<ToolName>| {
            menu.names().filter(|name| !from.contains(*name)).cloned().collect::<Vec<_>>()
        };
        let stayed = |menu: &Menu, other: &HashSet<ToolName>| {
            menu.names().filter(|name| other.contains(*name)).cloned().collect::<Vec<_>>()
        };
        let both = stayed(after, &old);
        let digest = |menu: &Menu, name: &ToolName| menu.get(name).map(|tool| tool.digest());
        Self {
            added: missing(after, &old),
            removed: missing(before, &new),
            reordered: stayed(before, &new) != both,
            changed: both
                .into_iter()
                .filter(|name| digest(before, name) != digest(after, name))
                .collect(),
        }
    }
}
