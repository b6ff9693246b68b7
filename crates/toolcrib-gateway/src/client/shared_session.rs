//! The part of a session that all replicas of a gateway share: a row in their store, which exists once
//! something of it differs from a session that has just begun.
//!
//! A replica reads the row before a request if a rule or the menu may depend on it, and otherwise once a
//! second, so that an end at another replica is noticed.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::model::RequestId;
use serde::{Deserialize, Serialize};
use tokio::{task::spawn_blocking, time::Instant};
use toolcrib_core::{KvArea, KvError, KvStore, KvWrite, SkillId, ToolName};
use toolcrib_engine::{HaltedByRule, RevealedTools, Turn};

use super::callers::Restrictions;
use crate::access::replicas::Replicas;

/// How long a replica trusts what it has read of a session that its rules and menu do not depend on.
pub(crate) const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// How long a session can be continued after it began.
pub(crate) const LASTS: Duration = Duration::from_hours(24);

/// How long the row is kept after its last change: clocks of machines may differ.
const KEPT_FOR: Duration = Duration::from_hours(48);

/// How often a row is written again that another replica changed meanwhile.
const ATTEMPTS: usize = 32;

/// The area of a session's row begins with this, which no tool can be called.
const AREA: &str = "toolcrib:session";

const KEY: &str = "state";

/// The maximum number of cancellations in a row, and of their bytes; the oldest make room.
const MAX_CANCELLED: usize = 256;
const MAX_CANCELLED_BYTES: usize = 16 * 1024;

/// The state of a session that the replicas share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SharedState {
    /// Its client has ended it.
    pub(crate) ended: bool,
    pub(crate) tainted: bool,
    pub(crate) halted: Option<HaltedByRule>,
    /// The number of its iterations, if a rule depends on it.
    pub(crate) iterations: u32,
    /// `None` until a call has changed it.
    pub(crate) menu: Option<SessionMenu>,
    /// The level of log messages that its client has set.
    pub(crate) log: Option<Arc<str>>,
    /// Requests in progress at other replicas that its client has cancelled, numbered from one.
    cancelled: VecDeque<(RequestId, u64)>,
}

/// The part of a menu that calls of its session have changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionMenu {
    /// The active skills. Each begins with its first step at another replica.
    pub(crate) skills: Vec<SkillId>,
    /// The deferred tools that it has found.
    found: Vec<Arc<str>>,
}

/// The shared part of one session, as this replica sees it.
pub(crate) struct SharedSession {
    replicas: Replicas,
    area: KvArea,
    seen: Mutex<Option<Seen>>,
}

/// A row that was read or written.
#[derive(Clone)]
struct Seen {
    /// A moment at which it was the present one.
    at: Instant,
    text: Option<Arc<str>>,
    state: Arc<SharedState>,
}

impl SharedState {
    /// The cancelled requests, with the number of the cancellation.
    pub(crate) fn cancelled(&self) -> impl Iterator<Item = (&RequestId, u64)> {
        self.cancelled.iter().map(|(id, number)| (id, *number))
    }

    /// The number of the last cancellation of requests with an id; 0 without one.
    pub(crate) fn last_cancellation(&self, id: &RequestId) -> u64 {
        self.cancelled()
            .filter(|(other, _)| *other == id)
            .map(|(_, number)| number)
            .max()
            .unwrap_or(0)
    }

    fn cancel(&mut self, id: &RequestId) {
        let number = self.cancelled.back().map_or(0, |(_, last)| *last) + 1;
        self.cancelled.push_back((id.clone(), number));
        let bytes =
            |(id, _): &(RequestId, u64)| serde_json::to_string(id).map_or(0, |id| id.len() + 24);
        let mut all: usize = self.cancelled.iter().map(bytes).sum();
        while self.cancelled.len() > MAX_CANCELLED || all > MAX_CANCELLED_BYTES {
            let Some(oldest) = self.cancelled.pop_front() else { break };
            all -= bytes(&oldest);
        }
    }

    /// The restrictions of its turn at a replica that continues it.
    pub(crate) fn restrictions(&self) -> Restrictions {
        Restrictions {
            tainted: self.tainted,
            halted: self.halted.clone(),
            iterations: self.iterations.saturating_sub(1),
            noted_ms: 0,
            is_unread: false,
        }
    }
}

impl SessionMenu {
    pub(crate) fn of(turn: &Turn) -> Self {
        let found = turn.revealed().names().map(|name| Arc::from(&**name)).collect();
        Self { skills: turn.active_skills().to_vec(), found }
    }

    /// This menu with the changes that lead from one menu to another.
    pub(crate) fn changed(&self, from: &Self, to: &Self) -> Self {
        Self {
            skills: changed(&self.skills, &from.skills, &to.skills),
            found: changed(&self.found, &from.found, &to.found),
        }
    }

    pub(crate) fn revealed(&self) -> RevealedTools {
        RevealedTools::named(
            self.found.iter().filter_map(|name| ToolName::new(Arc::clone(name)).ok()),
        )
    }
}

/// A list with the changes that lead from one list to another: elements that were removed, and those that
/// were added or moved to the end.
fn changed<T: Clone + PartialEq>(list: &[T], from: &[T], to: &[T]) -> Vec<T> {
    let remaining = from.iter().filter(|one| to.contains(one));
    let same = remaining.zip(to).take_while(|(before, now)| before == now).count();
    let newer = to.get(same..).unwrap_or_default();
    let is_kept = |one: &&T| !newer.contains(one) && (to.contains(one) || !from.contains(one));
    list.iter().filter(is_kept).chain(newer).cloned().collect()
}

impl SharedSession {
    pub(crate) fn new(replicas: &Replicas, id: &str) -> Self {
        let area = KvArea::Tool { tenant: None, tool: format!("{AREA}/{id}").into() };
        Self { replicas: replicas.clone(), area, seen: Mutex::default() }
    }

    /// The state as it was at most this time ago.
    ///
    /// # Errors
    /// A failure of the store.
    pub(crate) async fn read(&self, trusted_for: Duration) -> Result<Arc<SharedState>, KvError> {
        if let Some(seen) = &*self.seen.lock()
            && seen.at.elapsed() < trusted_for
        {
            return Ok(Arc::clone(&seen.state));
        }
        let (store, area) = (Arc::clone(self.replicas.store()), self.area.clone());
        let read = spawn_blocking(move || stored(&*store, &area));
        Ok(self.sees(read.await.unwrap_or(Err(KvError::Changed))?))
    }

    /// Whether its row was read or written here: at its beginning, that another replica began it.
    pub(crate) fn is_read(&self) -> bool {
        self.seen.lock().is_some()
    }

    /// The state as it was last read or written here.
    pub(crate) fn last(&self) -> Arc<SharedState> {
        self.seen.lock().as_ref().map(|seen| Arc::clone(&seen.state)).unwrap_or_default()
    }

    /// Changes the state, and returns it: one round trip, unless another replica has changed it.
    ///
    /// # Errors
    /// A failure of the store; nothing has changed then.
    pub(crate) async fn change(
        &self,
        change: impl Fn(&mut SharedState) + Send + 'static,
    ) -> Result<Arc<SharedState>, KvError> {
        let (store, area) = (Arc::clone(self.replicas.store()), self.area.clone());
        let known = self.seen.lock().clone();
        let changed = spawn_blocking(move || written(&*store, &area, known, change));
        Ok(self.sees(changed.await.unwrap_or(Err(KvError::Changed))?))
    }

    /// Tells the other replicas that a request is cancelled.
    ///
    /// # Errors
    /// A failure of the store.
    pub(crate) async fn cancel(&self, id: RequestId) -> Result<(), KvError> {
        self.change(move |state| state.cancel(&id)).await.map(drop)
    }

    fn sees(&self, seen: Seen) -> Arc<SharedState> {
        let state = Arc::clone(&seen.state);
        let mut last = self.seen.lock();
        if last.as_ref().is_none_or(|last| last.at <= seen.at) {
            *last = Some(seen);
        }
        state
    }
}

fn stored(store: &dyn KvStore, area: &KvArea) -> Result<Seen, KvError> {
    let at = Instant::now();
    let text = store.value(area, KEY)?;
    // A row that cannot be read is one of another version, or was damaged: its session is over.
    let ended = || SharedState { ended: true, ..SharedState::default() };
    let state = text.as_deref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| ended()));
    Ok(Seen { at, text, state: Arc::new(state.unwrap_or_default()) })
}

fn written(
    store: &dyn KvStore,
    area: &KvArea,
    mut known: Option<Seen>,
    change: impl Fn(&mut SharedState),
) -> Result<Seen, KvError> {
    for _ in 0..ATTEMPTS {
        let before = match known.take() {
            Some(seen) => seen,
            None => stored(store, area)?,
        };
        let mut state = SharedState::clone(&before.state);
        change(&mut state);
        let text = serde_json::to_string(&state).unwrap_or_default();
        let expected = Some(before.text.as_deref());
        let write = KvWrite { key: KEY, value: Some(&text), expected, lives_for: KEPT_FOR };
        let at = Instant::now();
        match store.put(area, write) {
            Ok(()) => {
                return Ok(Seen { at, text: Some(text.into()), state: Arc::new(state) });
            }
            Err(KvError::Changed) => {}
            Err(error) => return Err(error),
        }
    }
    Err(KvError::Changed)
}

#[cfg(test)]
mod tests {
    use rmcp::model::RequestId;

    use super::{MAX_CANCELLED, MAX_CANCELLED_BYTES, SharedState, changed};

    #[test]
    fn the_oldest_cancellations_make_room() {
        let mut state = SharedState::default();
        let numbered = RequestId::Number;
        (0..1_000).for_each(|id| state.cancel(&numbered(id)));
        assert_eq!(state.cancelled().count(), MAX_CANCELLED);
        assert_eq!(state.last_cancellation(&numbered(999)), 1_000);
        assert_eq!(state.last_cancellation(&numbered(0)), 0);
        // The longest ids that requests have, each byte of which is six in JSON.
        (0..100).for_each(|_| state.cancel(&RequestId::String("\u{1}".repeat(256).into())));
        assert!(serde_json::to_string(&state).unwrap().len() < MAX_CANCELLED_BYTES + 200);
        assert!(state.cancelled().count() > 5);
    }

    #[test]
    fn what_another_replica_has_added_or_removed_stays_so() {
        let list = |from: &str, to: &str, others: &str| {
            let [from, to, others] =
                [from, to, others].map(|text| text.chars().collect::<Vec<_>>());
            changed(&others, &from, &to).into_iter().collect::<String>()
        };
        assert_eq!(list("", "a", "b"), "ba", "added to an addition");
        assert_eq!(list("ab", "b", "abc"), "bc", "removed beside an addition");
        assert_eq!(list("ab", "ba", "abc"), "cba", "moved to the end");
        assert_eq!(list("a", "ab", ""), "b", "added beside a removal");
        assert_eq!(list("ab", "ab", "c"), "c");
    }
}
