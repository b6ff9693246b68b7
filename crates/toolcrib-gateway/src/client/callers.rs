//! The restrictions of a caller beyond a request and a session: untrusted content that it has read, a rule
//! that halted it, and the number of its iterations.
//!
//! A request without a session is a conversation by itself only for the protocol: its client may
//! have read anything before. So what restricts belongs to the tenant and the principal, whatever the
//! personality, and callers without a principal share it. It is kept in a store, if there is one.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use toolcrib_core::{
    __internal::{millis, now_ms},
    KvArea, KvError, KvStore, KvWrite, SessionOwner,
};
use toolcrib_engine::HaltedByRule;

/// How long a caller is restricted after it last read untrusted content, or was halted.
const RESTRICTED_FOR: Duration = Duration::from_hours(24);

/// How long the iterations of a caller without requests are remembered: as long as an idle session.
const COUNTED_FOR: Duration = Duration::from_secs(30 * 60);

/// Untrusted content that follows other content within this time is not noted again: nearly every
/// result of a remote tool is untrusted, and a note is a write to the store.
const NOTED_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// How often a record is written again that another process changed meanwhile.
const ATTEMPTS: usize = 32;

/// The limit of callers whose restrictions are trusted for a while.
const MOST_READ: usize = 1_024;

/// The tool whose keys these are: a name that no tool can have, so no tool reads or writes them.
const AREA: &str = "toolcrib:caller";

/// The key of a caller's record.
const KEY: &str = "restrictions";

/// The restrictions of a caller of a gateway, for operators.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CallerRestrictions {
    /// Until when its conversation counts as one that has read untrusted content, in milliseconds
    /// since 1970.
    pub tainted_until_ms: Option<u64>,
    /// The call at which a rule halted it.
    pub halted: Option<HaltedByRule>,
    /// Until when its calls are refused because of that.
    pub halted_until_ms: Option<u64>,
}

impl CallerRestrictions {
    /// The restrictions of a caller, by the store of its [gateway](crate::gateway::GatewayBuilder::remember_in).
    /// Blocks.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn read(store: &dyn KvStore, caller: &SessionOwner) -> Result<Self, KvError> {
        let (record, _) = stored(store, caller)?;
        let now = now_ms();
        let halt = record.halted.filter(|halt| is_within(halt.at_ms, RESTRICTED_FOR, now));
        let until = |at_ms: u64| at_ms.saturating_add(millis(RESTRICTED_FOR));
        Ok(Self {
            tainted_until_ms: record.tainted_ms.map(until).filter(|until| *until > now),
            halted_until_ms: halt.as_ref().map(|halt| until(halt.at_ms)),
            halted: halt.map(|halt| halt.by),
        })
    }

    /// Lifts what restricts a caller. The gateway sees it at the caller's next request; a session in
    /// progress stays as it is. Blocks.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn lift(store: &dyn KvStore, caller: &SessionOwner) -> Result<(), KvError> {
        let write = KvWrite { key: KEY, value: None, expected: None, lives_for: Duration::ZERO };
        store.put(&area(caller), write)
    }

    /// Whether nothing restricts the caller.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The restrictions of a turn that begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restrictions {
    pub(crate) tainted: bool,
    pub(crate) halted: Option<HaltedByRule>,
    /// The number of iterations before.
    pub(crate) iterations: u32,
    /// When untrusted content was noted last.
    pub(crate) noted_ms: u64,
    /// Whether the store could not be read: a halt may be missing, and the number of iterations too small.
    pub(crate) is_unread: bool,
}

/// The record of a caller, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Record {
    /// When it last read untrusted content.
    tainted_ms: Option<u64>,
    halted: Option<Halt>,
    iterations: u32,
    /// When the last iteration began.
    counted_ms: u64,
    /// When a restricted session was ended by the gateway and not by its client, which may continue
    /// its conversation in another session.
    lost_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Halt {
    by: HaltedByRule,
    at_ms: u64,
}

/// The callers of a gateway.
pub(crate) struct Callers {
    /// Their records without a store, and those that could not be written to it yet.
    known: Mutex<HashMap<SessionOwner, Record>>,
    /// The number of these: mostly none, and then no lock is needed.
    count: AtomicUsize,
    /// The last readings of callers whose restrictions no rule depends on.
    read: Mutex<HashMap<SessionOwner, (Instant, Restrictions)>>,
    /// The number of records that could not be written to the store.
    pub(crate) unsaved: AtomicUsize,
    /// When the process began: its sessions began later.
    began_ms: u64,
}

impl Default for Callers {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            count: AtomicUsize::new(0),
            read: Mutex::default(),
            unsaved: AtomicUsize::new(0),
            began_ms: now_ms(),
        }
    }
}

/// An event of a caller.
#[derive(Debug, Clone)]
pub(crate) enum Noted {
    /// It has read untrusted content.
    Tainted,
    Halted(HaltedByRule),
    /// Its restricted session was ended by the gateway.
    Lost,
    /// An iteration begins.
    Iteration,
}

impl Callers {
    /// The restrictions of a request without a session. With `counts`, its iteration is counted. If no rule
    /// depends on them, they are `trusted_for` this time after they were read.
    pub(crate) async fn of_request(
        &self,
        store: Option<&Arc<dyn KvStore>>,
        owner: SessionOwner,
        counts: bool,
        trusted_for: Duration,
    ) -> Restrictions {
        if store.is_none() && !counts && self.count.load(Ordering::Acquire) == 0 {
            return Restrictions::default();
        }
        if trusted_for.is_zero() {
            return self.read_of_request(store, owner, counts).await;
        }
        if let Some((at, restrictions)) = self.read.lock().get(&owner)
            && at.elapsed() < trusted_for
        {
            return restrictions.clone();
        }
        let began = Instant::now();
        let restrictions = self.read_of_request(store, owner.clone(), counts).await;
        // A store that does not answer is not asked again at once: its timeout may be long.
        let at = if restrictions.is_unread { Instant::now() } else { began };
        let mut read = self.read.lock();
        if read.len() >= MOST_READ {
            read.clear();
        }
        read.insert(owner, (at, restrictions.clone()));
        restrictions
    }

    async fn read_of_request(
        &self,
        store: Option<&Arc<dyn KvStore>>,
        owner: SessionOwner,
        counts: bool,
    ) -> Restrictions {
        if counts && !self.note(store, owner.clone(), Noted::Iteration).await && store.is_some() {
            return self.unread(&owner);
        }
        let record = self.record(store, owner.clone()).await;
        record.map_or_else(|_| self.unread(&owner), |record| record.restricts(now_ms()))
    }

    /// The restrictions of a caller whose record cannot be read: it may have read anything.
    fn unread(&self, owner: &SessionOwner) -> Restrictions {
        let known = self.known_of(owner).unwrap_or_default().restricts(now_ms());
        Restrictions { tainted: true, is_unread: true, ..known }
    }

    /// The restrictions of a session that begins: only if one of the same caller was ended by the gateway,
    /// or by the end of an earlier process. Otherwise its conversation is a new one.
    pub(crate) async fn of_session(
        &self,
        store: Option<&Arc<dyn KvStore>>,
        owner: SessionOwner,
    ) -> Restrictions {
        if store.is_none() && self.count.load(Ordering::Acquire) == 0 {
            return Restrictions::default();
        }
        let record = self.record(store, owner.clone()).await;
        let fail = |_| Restrictions { iterations: 0, ..self.unread(&owner) };
        record.map_or_else(fail, |record| {
            let continues = record.continues(self.began_ms, now_ms());
            let restricts = record.restricts(now_ms());
            let restricts = Restrictions { iterations: 0, ..restricts };
            if continues { restricts } else { Restrictions::default() }
        })
    }

    /// Notes an event. If the store fails, it is remembered here. Returns whether the store has it.
    pub(crate) async fn note(
        &self,
        store: Option<&Arc<dyn KvStore>>,
        owner: SessionOwner,
        noted: Noted,
    ) -> bool {
        self.read.lock().remove(&owner);
        if let Some(store) = store {
            let event = noted.clone();
            let note = move |record: &mut Record| record.note(&event, now_ms());
            if self.write(store, &owner, note).await.is_ok() {
                return true;
            }
            self.unsaved.fetch_add(1, Ordering::Relaxed);
        }
        let mut known = self.known.lock();
        let now = now_ms();
        // Records that restrict nothing any more make room when one is added.
        if !known.contains_key(&owner) {
            known.retain(|_, record| !record.is_over(now));
        }
        known.entry(owner).or_default().note(&noted, now);
        self.count.store(known.len(), Ordering::Release);
        false
    }

    /// Writes what could not be written before of a caller. Returns whether the store has all of it.
    pub(crate) async fn save(&self, store: Option<&Arc<dyn KvStore>>, owner: SessionOwner) -> bool {
        self.known_of(&owner).is_none() || self.record(store, owner).await.is_ok()
    }

    /// The record of a caller. The store has all of it then.
    async fn record(
        &self,
        store: Option<&Arc<dyn KvStore>>,
        owner: SessionOwner,
    ) -> Result<Record, KvError> {
        let known = self.known_of(&owner);
        match (store, known) {
            (None, known) => Ok(known.unwrap_or_default()),
            (Some(store), Some(_)) => self.write(store, &owner, |_| {}).await,
            (Some(store), None) => {
                let store = Arc::clone(store);
                let read = move || stored(&*store, &owner).map(|(record, _)| record);
                // A panic of the store is a failure of it.
                spawn_blocking(read).await.unwrap_or(Err(KvError::Changed))
            }
        }
    }

    /// Changes the record of a caller in the store, and adds what could not be written before.
    async fn write(
        &self,
        store: &Arc<dyn KvStore>,
        owner: &SessionOwner,
        edit: impl Fn(&mut Record) + Send + 'static,
    ) -> Result<Record, KvError> {
        let unsaved = self.known_of(owner);
        let (store, caller, added) = (Arc::clone(store), owner.clone(), unsaved.clone());
        let edit = move |record: Record| {
            let mut record = added.iter().fold(record, Record::with);
            edit(&mut record);
            record
        };
        let written = spawn_blocking(move || change(&*store, &caller, edit)).await;
        let written = written.unwrap_or(Err(KvError::Changed))?;
        let mut known = self.known.lock();
        // Unless another request has added to it meanwhile.
        if unsaved.is_some() && known.get(owner) == unsaved.as_ref() {
            known.remove(owner);
            self.count.store(known.len(), Ordering::Release);
        }
        Ok(written)
    }

    fn known_of(&self, owner: &SessionOwner) -> Option<Record> {
        (self.count.load(Ordering::Acquire) > 0).then(|| self.known.lock().get(owner).cloned())?
    }
}

impl Restrictions {
    /// Whether untrusted content was noted so long ago that it must be noted again.
    pub(crate) fn is_to_be_noted(&self) -> bool {
        !is_within(self.noted_ms, NOTED_AGAIN_AFTER, now_ms())
    }
}

impl Record {
    fn note(&mut self, noted: &Noted, now: u64) {
        match noted {
            Noted::Tainted => self.tainted_ms = Some(now),
            Noted::Halted(by) => self.halted = Some(Halt { by: by.clone(), at_ms: now }),
            Noted::Lost => self.lost_ms = Some(now),
            Noted::Iteration => {
                let before = match is_within(self.counted_ms, COUNTED_FOR, now) {
                    true => self.iterations,
                    false => 0,
                };
                (self.iterations, self.counted_ms) = (before.saturating_add(1), now);
            }
        }
    }

    /// The stricter of both, part by part.
    fn with(mut self, other: &Self) -> Self {
        self.tainted_ms = self.tainted_ms.max(other.tainted_ms);
        let halts = [self.halted, other.halted.clone()].into_iter().flatten();
        self.halted = halts.max_by_key(|halt| halt.at_ms);
        self.iterations = self.iterations.max(other.iterations);
        self.counted_ms = self.counted_ms.max(other.counted_ms);
        self.lost_ms = self.lost_ms.max(other.lost_ms);
        self
    }

    fn restricts(self, now: u64) -> Restrictions {
        let tainted_ms = self.tainted_ms.filter(|at| is_within(*at, RESTRICTED_FOR, now));
        let halted = self.halted.filter(|halt| is_within(halt.at_ms, RESTRICTED_FOR, now));
        let is_counted = is_within(self.counted_ms, COUNTED_FOR, now);
        Restrictions {
            tainted: tainted_ms.is_some(),
            halted: halted.map(|halt| halt.by),
            // The last one is that of the request itself.
            iterations: if is_counted { self.iterations.saturating_sub(1) } else { 0 },
            noted_ms: tainted_ms.unwrap_or_default(),
            is_unread: false,
        }
    }

    /// Whether a session that begins may continue a conversation that was restricted.
    fn continues(&self, began_ms: u64, now: u64) -> bool {
        let is_lost = self.lost_ms.is_some_and(|at| is_within(at, RESTRICTED_FOR, now));
        let halted_ms = self.halted.as_ref().map(|halt| halt.at_ms);
        is_lost || self.tainted_ms.into_iter().chain(halted_ms).any(|at| at < began_ms)
    }

    fn is_over(&self, now: u64) -> bool {
        let restricts = self.clone().restricts(now);
        !restricts.tainted
            && restricts.halted.is_none()
            && !is_within(self.counted_ms, COUNTED_FOR, now)
    }
}

/// Whether a time after that moment is not over. A moment in the future, by a clock that was set
/// back, counts.
fn is_within(at_ms: u64, time: Duration, now: u64) -> bool {
    at_ms.saturating_add(millis(time)) > now
}

fn area(caller: &SessionOwner) -> KvArea {
    let tool = match &caller.principal {
        Some(principal) => format!("{AREA}/{principal}"),
        None => AREA.to_owned(),
    };
    KvArea::Tool { tenant: caller.tenant.clone(), tool: tool.into() }
}

/// A caller's record, and its text.
fn stored(
    store: &dyn KvStore,
    caller: &SessionOwner,
) -> Result<(Record, Option<Arc<str>>), KvError> {
    let text = store.value(&area(caller), KEY)?;
    // A record that cannot be read is one of another version, or was damaged: it may say anything.
    let unknown = || Record { tainted_ms: Some(now_ms()), ..Record::default() };
    let record =
        text.as_deref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| unknown()));
    Ok((record.unwrap_or_default(), text))
}

fn change(
    store: &dyn KvStore,
    caller: &SessionOwner,
    edit: impl Fn(Record) -> Record,
) -> Result<Record, KvError> {
    let mut failed = KvError::Changed;
    for _ in 0..ATTEMPTS {
        let (record, text) = stored(store, caller)?;
        let record = edit(record);
        let value = serde_json::to_string(&record).unwrap_or_default();
        let write = KvWrite {
            key: KEY,
            value: Some(&value),
            expected: Some(text.as_deref()),
            lives_for: RESTRICTED_FOR,
        };
        match store.put(&area(caller), write) {
            Ok(()) => return Ok(record),
            Err(KvError::Changed) => {}
            Err(error) => {
                failed = error;
                break;
            }
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60 * 1_000;

    #[test]
    fn taint_lasts_a_day_after_the_last_untrusted_content_and_counts_half_an_hour() {
        let mut record = Record::default();
        record.note(&Noted::Tainted, 0);
        record.note(&Noted::Tainted, 5 * HOUR);
        record.note(&Noted::Iteration, 5 * HOUR);
        record.note(&Noted::Iteration, 5 * HOUR + 1);
        let at = |now: u64| record.clone().restricts(now);
        assert!(at(29 * HOUR - 1).tainted && !at(29 * HOUR).tainted);
        assert_eq!((at(5 * HOUR + 2).iterations, at(6 * HOUR).iterations), (1, 0));
        assert!(!record.is_over(29 * HOUR - 1) && record.is_over(29 * HOUR));
    }

    #[test]
    fn a_session_that_begins_is_restricted_only_if_it_may_continue_one_that_was_lost() {
        let (began, now) = (10 * HOUR, 11 * HOUR);
        let tainted = |at_ms| Record { tainted_ms: Some(at_ms), ..Record::default() };
        assert!(!tainted(began + 1).continues(began, now), "its own conversation is a new one");
        assert!(tainted(began - 1).continues(began, now), "the process has been restarted");
        let lost = Record { lost_ms: Some(began + 2), ..tainted(began + 1) };
        assert!(lost.continues(began, now));
        assert!(!lost.continues(began, began + 2 + 24 * HOUR), "a day later");
    }
}
