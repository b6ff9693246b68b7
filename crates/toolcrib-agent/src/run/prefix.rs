//! The common prefix of consecutive requests, as cached by vendors.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;

use toolcrib_core::{
    __internal::Bounded, ContentBlock, Digest, EventKind, Identity, Menu, Message, ToolChoice,
    ToolName,
};

use super::report::Report;

/// The maximum number of remembered conversations; the least recently used is evicted. Vendors'
/// prompt caches expire within minutes.
const MAX_CONVERSATIONS: usize = 32;

/// The prefix of the last request of each named conversation, so that changes between two runs are
/// detected like those between two iterations. Keyed by tenant and principal too, so that no
/// identity learns of another's tools.
pub(crate) struct Conversations(Mutex<Bounded<Arc<Identity>, SentRequest>>);

/// A request, reduced to the parts that vendors cache.
struct SentRequest {
    system: Arc<str>,
    menu: Arc<Menu>,
    tool_choice: ToolChoice,
    /// One per message: conversations may be long, and are owned by the caller.
    messages: Vec<Digest>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self(Mutex::new(Bounded::new(MAX_CONVERSATIONS)))
    }
}

/// The prefix of a run's requests. Within a run the system text is constant and messages are only
/// appended, so that between iterations only menu and tool choice are compared.
pub(super) struct Prefix {
    system: Arc<str>,
    last: Option<(Arc<Menu>, ToolChoice)>,
    /// The number of messages of the last request.
    sent: usize,
    /// The changes since the last run of the conversation, until the first request reports them.
    since_last_run: Change,
}

#[derive(Default)]
struct Change {
    system: bool,
    messages_from: Option<usize>,
}

impl Prefix {
    /// The prefix of a run, compared with the last one of its conversation.
    pub(super) fn new(
        conversations: &Conversations,
        whose: Option<&Identity>,
        system: &Arc<str>,
        messages: &[Message],
    ) -> Self {
        let before = whose.and_then(|whose| conversations.0.lock().remove(whose));
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

    /// Before a request: reports changes that miss the prompt cache, if any.
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

    /// Stores the last request, for the next run of the conversation.
    pub(super) fn keep(
        self,
        conversations: &Conversations,
        whose: Option<Arc<Identity>>,
        messages: &[Message],
    ) {
        if let (Some(whose), Some((menu, tool_choice))) = (whose, self.last) {
            let messages = messages.iter().take(self.sent).map(digest).collect();
            let asked = SentRequest { system: self.system, menu, tool_choice, messages };
            let evicted = conversations.0.lock().insert(whose, asked);
            drop(evicted);
        }
    }
}

/// The digest of a message, including the bytes of images and the like.
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

/// The differences between two menus.
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
