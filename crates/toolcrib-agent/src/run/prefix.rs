//! What the next request has in common with the one before, as far as vendors cache it.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use toolcrib_core::{
    ContentBlock, Digest, EventKind, Identity, Menu, Message, ToolChoice, ToolName,
};

use super::report::Report;

/// How many conversations an agent remembers; the one that was used longest ago makes room. Vendors
/// forget what they cached within minutes.
const MAX_CONVERSATIONS: usize = 32;

/// How the last request of each conversation began that a caller named: a change between two runs
/// is noticed as one between two iterations is. A conversation is one of a tenant's and principal's:
/// nobody is told of another's tools.
#[derive(Default)]
pub(crate) struct Conversations(Mutex<VecDeque<(Arc<Identity>, Asked)>>);

/// A request, as far as vendors cache it.
struct Asked {
    system: Arc<str>,
    menu: Arc<Menu>,
    tool_choice: ToolChoice,
    /// One per message: histories may be long, and are kept by whoever holds the conversation.
    messages: Vec<Digest>,
}

impl Conversations {
    fn take(&self, whose: &Identity) -> Option<Asked> {
        let mut known = self.known();
        let position = known.iter().position(|(known, _)| **known == *whose)?;
        known.remove(position).map(|(_, asked)| asked)
    }

    fn put(&self, whose: Arc<Identity>, asked: Asked) {
        let mut known = self.known();
        known.retain(|(known, _)| *known != whose);
        if known.len() >= MAX_CONVERSATIONS {
            known.pop_front();
        }
        known.push_back((whose, asked));
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<(Arc<Identity>, Asked)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The beginning of a run's requests. Within a run the system text stands and messages are only
/// added, so that between iterations nothing but menu and choice of tools are looked at.
pub(super) struct Prefix {
    system: Arc<str>,
    last: Option<(Arc<Menu>, ToolChoice)>,
    /// How many messages the last request had.
    sent: usize,
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
        whose: Option<&Identity>,
        system: &Arc<str>,
        messages: &[Message],
    ) -> Self {
        let before = whose.and_then(|whose| conversations.take(whose));
        let since_last_run = before.as_ref().map(|before| Change {
            system: before.system != *system,
            messages_from: before
                .messages
                .iter()
                .enumerate()
                .find(|(at, known)| messages.get(*at).is_none_or(|now| digest(now) != **known))
                .map(|(at, _)| at),
        });
        Self {
            system: Arc::clone(system),
            last: before.map(|before| (before.menu, before.tool_choice)),
            sent: 0,
            since_last_run: since_last_run.unwrap_or_default(),
        }
    }

    /// The next request goes out: says what busts the cache, if anything does.
    pub(super) fn next(
        &mut self,
        menu: &Arc<Menu>,
        tool_choice: &ToolChoice,
        messages: usize,
        report: &Report,
    ) {
        self.sent = messages;
        let Change { system, messages_from } = std::mem::take(&mut self.since_last_run);
        let Some((before, choice)) = self.last.replace((Arc::clone(menu), tool_choice.clone()))
        else {
            return;
        };
        let tool_choice_changed = choice != *tool_choice;
        let same_menu = before.fingerprint() == menu.fingerprint();
        if same_menu && !tool_choice_changed && !system && messages_from.is_none() {
            return;
        }
        report.emit(|| {
            let tools = if same_menu { Tools::default() } else { Tools::between(&before, menu) };
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

    /// Remembers what was sent last, for the next run of the conversation.
    pub(super) fn keep(
        self,
        conversations: &Conversations,
        whose: Option<Arc<Identity>>,
        messages: &[Message],
    ) {
        if let (Some(whose), Some((menu, tool_choice))) = (whose, self.last) {
            let messages = messages.iter().take(self.sent).map(digest).collect();
            conversations.put(whose, Asked { system: self.system, menu, tool_choice, messages });
        }
    }
}

/// What a message says, bytes of images and the like included.
fn digest(message: &Message) -> Digest {
    let mut parts = vec![Digest::of(serde_json::to_string(message).unwrap_or_default())];
    if let Message::Tool { blocks, .. } = message {
        parts.extend(blocks.iter().filter_map(|block| match block {
            ContentBlock::Image { data, .. }
            | ContentBlock::Audio { data, .. }
            | ContentBlock::Binary { data, .. } => Some(Digest::of(data)),
            _ => None,
        }));
    }
    Digest::of_all(&parts)
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
