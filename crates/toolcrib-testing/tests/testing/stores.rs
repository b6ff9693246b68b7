//! The tests of stores find each fault.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use toolcrib_core::{
    ApprovalGrant, ApprovalState, ApprovalStore, ApprovalStoreError, ClaimedSession, FoundMessage,
    KvArea, KvError, KvStore, KvWrite, NewSession, ParkedCall, SentPart, SessionInfo, SessionLease,
    SessionOwner, SessionRecord, SessionRetention, SessionSearch, SessionStore, SessionStoreError,
    Settlement, StoredApproval, StoredRun, StoredSession, TracedEvent,
};
use toolcrib_store::SqliteStore;
use toolcrib_testing::stores::{
    check_approval_store, check_kv_store, check_machines, check_session_store, check_start,
};

/// A store with one fault.
struct Faulty {
    store: SqliteStore,
    fault: Fault,
    writes: Mutex<u64>,
    leases: Arc<Mutex<HashMap<Arc<str>, SessionLease>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    OneOwner,
    NoLease,
    EmptyMessages,
    NoEvents,
    NoSent,
    KeepsAll,
    FindsNothing,
    NoCompare,
    NoNul,
    ForgetsLoss,
    LosesWrite,
    NoLock,
    ForgetsMessage,
    KeepsMessage,
    ClaimsTwice,
    NeverCancels,
    ForgetsSettled,
    SettlesTwice,
    /// Its machine's clock is ahead by an hour: it takes over each lease that seems to have expired.
    Ahead,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        let (writes, leases) = (Mutex::default(), Arc::default());
        Self { store: SqliteStore::in_memory().unwrap(), fault, writes, leases }
    }

    fn owner(&self, owner: &SessionOwner) -> SessionOwner {
        match self.fault {
            Fault::OneOwner => SessionOwner::default(),
            _ => owner.clone(),
        }
    }
}

impl SessionStore for Faulty {
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError> {
        self.store.create(&NewSession { owner: self.owner(&new.owner), ..new.clone() })
    }

    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError> {
        self.store.find(&self.owner(owner), session)
    }

    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        self.store.list(&self.owner(owner), limit)
    }

    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError> {
        let mut session = self.store.read(&self.owner(owner), id)?;
        if self.fault == Fault::EmptyMessages {
            session.messages.clear();
        }
        Ok(session)
    }

    fn runs(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        self.store.runs(&self.owner(owner), limit)
    }

    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        let found = self.store.search(&self.owner(owner), search)?;
        Ok(if self.fault == Fault::FindsNothing { Vec::new() } else { found })
    }

    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        let events = self.store.events(&self.owner(owner), id, turn)?;
        Ok(if self.fault == Fault::NoEvents { Vec::new() } else { events })
    }

    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError> {
        let sent = self.store.sent(&self.owner(owner), id)?;
        Ok(if self.fault == Fault::NoSent { Vec::new() } else { sent })
    }

    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError> {
        let time = if self.fault == Fault::NoLease { Duration::ZERO } else { time };
        if self.fault == Fault::Ahead && time < Duration::from_hours(1) {
            let expired = self.leases.lock().remove(id);
            expired.map(|lease| self.store.release(&lease)).transpose()?;
        }
        let lease = self.store.acquire(&self.owner(owner), id, time)?;
        self.leases.lock().insert(id.into(), lease.clone());
        Ok(lease)
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<bool, SessionStoreError> {
        let is_cancelled = self.store.renew(lease, time)?;
        Ok(is_cancelled && self.fault != Fault::NeverCancels)
    }

    fn submit(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError> {
        match self.fault {
            Fault::ForgetsMessage => self.store.find(&self.owner(owner), id).map(drop),
            _ => self.store.submit(&self.owner(owner), id, message),
        }
    }

    fn claim(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError> {
        let owner = owner.map(|owner| self.owner(owner));
        let claimed = self.store.claim(owner.as_ref(), time)?;
        if let Some(ClaimedSession { lease, .. }) = &claimed
            && self.fault == Fault::ClaimsTwice
        {
            self.store.renew(lease, Duration::ZERO)?;
        }
        Ok(claimed)
    }

    fn cancel(&self, owner: &SessionOwner, id: &str) -> Result<bool, SessionStoreError> {
        self.store.cancel(&self.owner(owner), id)
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        self.store.release(lease)
    }

    fn write(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError> {
        let text = |record: &SessionRecord| match record {
            SessionRecord::TurnBegan { title, .. } => title.contains('\0'),
            _ => false,
        };
        match self.fault {
            Fault::NoNul if records.iter().any(text) => {
                let source = "invalid byte sequence: 0x00".into();
                Err(SessionStoreError::Io { store: "faulty".into(), doing: "written", source })
            }
            Fault::KeepsMessage => {
                let is_kept = |record: &SessionRecord| !matches!(record, SessionRecord::Taken(_));
                let all: Vec<_> = records.iter().filter(|one| is_kept(one)).cloned().collect();
                self.store.write(lease, seen, &all)
            }
            Fault::ForgetsLoss => self.store.write(lease, 0, records),
            Fault::LosesWrite if seen == 40 => Ok(seen),
            Fault::NoLock => {
                let number = *self.writes.lock() + 1;
                thread::sleep(Duration::from_millis(1));
                self.store.write(lease, seen.min(1), records)?;
                *self.writes.lock() = number;
                Ok(number)
            }
            _ => self.store.write(lease, seen, records),
        }
    }

    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        self.store.remove(&self.owner(owner), id)
    }

    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError> {
        match self.fault {
            Fault::KeepsAll => Ok(0),
            _ => self.store.prune(retention),
        }
    }
}

impl KvStore for Faulty {
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError> {
        self.store.value(&self.area(area), key)
    }

    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError> {
        self.store.keys(&self.area(area), prefix)
    }

    fn put(&self, area: &KvArea, write: KvWrite<'_>) -> Result<(), KvError> {
        let write = match self.fault {
            Fault::KeepsAll => KvWrite { lives_for: Duration::from_hours(1), ..write },
            Fault::NoCompare => KvWrite { expected: None, ..write },
            _ => write,
        };
        self.store.put(&self.area(area), write)
    }
}

impl Faulty {
    fn area(&self, area: &KvArea) -> KvArea {
        match self.fault {
            Fault::OneOwner => KvArea::Tool { tenant: None, tool: "all".into() },
            _ => area.clone(),
        }
    }
}

#[test]
fn the_suite_of_keys_finds_each_fault() {
    for (fault, clause) in [
        (Fault::OneOwner, "keys must be unknown to"),
        (Fault::KeepsAll, "an expired value does not exist"),
        (Fault::NoCompare, "a write that expects another value must be refused"),
    ] {
        let faulty = Faulty::new(fault);
        let broken = check_kv_store(&faulty).unwrap_err();
        assert!(broken.iter().any(|found| found.starts_with(clause)), "{broken}");
    }
}

#[test]
fn the_suite_finds_each_fault() {
    for (fault, clause) in [
        (Fault::OneOwner, "a session of one owner must be unknown to"),
        (Fault::NoLease, "a leased session must not be leased again"),
        (Fault::EmptyMessages, "messages must be read as they were written"),
        (Fault::NoEvents, "events must be read as they were written"),
        (Fault::NoSent, "parts of requests must be read as they were written"),
        (Fault::FindsNothing, "a search must find the messages with all words"),
        (Fault::KeepsAll, "expired sessions must be removed"),
        (Fault::NoNul, "contents: unexpected error"),
        (Fault::ForgetsLoss, "a writer that has seen more writes than there are must learn it"),
        (Fault::LosesWrite, "a store must keep each write that it has acknowledged"),
        (Fault::ForgetsMessage, "submitted messages must be counted and listed"),
        (Fault::KeepsMessage, "a turn must not take a message before its time"),
        (Fault::ClaimsTwice, "a claimed session must not be claimed again"),
        (Fault::NeverCancels, "a renewal must tell of a cancellation"),
        (Fault::NoLock, "each of several concurrent writes must have its number"),
    ] {
        let faulty = Faulty::new(fault);
        let broken = check_session_store(&faulty).unwrap_err();
        assert!(broken.iter().any(|found| found.starts_with(clause)), "{broken}");
    }
}

impl ApprovalStore for Faulty {
    fn park(&self, call: &ParkedCall, limit: usize) -> Result<StoredApproval, ApprovalStoreError> {
        self.store.park(call, limit)
    }

    fn approval(&self, id: &str) -> Result<StoredApproval, ApprovalStoreError> {
        self.store.approval(id)
    }

    fn approvals(&self, with_closed: bool) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        self.store.approvals(with_closed)
    }

    fn settle(&self, id: &str, settlement: &Settlement) -> Result<(), ApprovalStoreError> {
        let is_open = self.store.approval(id)?.state == ApprovalState::Open;
        thread::sleep(Duration::from_millis(1));
        let settled = self.store.settle(id, settlement);
        if self.fault == Fault::ForgetsSettled
            && let Some(session) = &self.store.approval(id)?.call.session
            && let Some(claimed) = self.store.claim(None, Duration::ZERO)?
            && claimed.info.id == *session
        {
            self.store.release(&claimed.lease)?;
        }
        match settled {
            Err(ApprovalStoreError::NotOpen { .. })
                if is_open && self.fault == Fault::SettlesTwice =>
            {
                Ok(())
            }
            settled => settled,
        }
    }

    fn close(&self, id: &str, how: &str) -> Result<bool, ApprovalStoreError> {
        self.store.close(id, how)
    }

    fn add_grant(&self, grant: &ApprovalGrant) -> Result<(), ApprovalStoreError> {
        self.store.add_grant(grant)
    }

    fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalStoreError> {
        self.store.grants()
    }

    fn remove_grant(&self, id: &str) -> Result<bool, ApprovalStoreError> {
        self.store.remove_grant(id)
    }

    fn prune_approvals(&self, before_ms: u64) -> Result<usize, ApprovalStoreError> {
        self.store.prune_approvals(before_ms)
    }
}

#[test]
fn the_suite_of_approvals_finds_a_session_that_stays_asleep() {
    let broken = check_approval_store(&Faulty::new(Fault::ForgetsSettled)).unwrap_err();
    let clause = "a session whose call is settled must be claimed once";
    assert!(broken.iter().all(|found| found == clause), "{broken}");
}

#[test]
fn the_suite_of_approvals_finds_a_call_that_is_settled_twice() {
    let broken = check_approval_store(&Faulty::new(Fault::SettlesTwice)).unwrap_err();
    let clause = "of several that settle a call, one must succeed";
    assert!(broken.iter().all(|found| found == clause), "{broken}");
}

#[test]
fn the_test_of_machines_finds_a_store_that_follows_a_machines_clock() {
    let here = Faulty::new(Fault::Ahead);
    let (store, leases) = (here.store.clone(), Arc::clone(&here.leases));
    let ahead = Faulty { store, leases, ..Faulty::new(Fault::Ahead) };
    let broken = check_machines(&here, &ahead).unwrap_err();
    let clause = "a machine whose clock is ahead must not take a lease over";
    assert!(broken.iter().any(|found| found == clause), "{broken}");
    check_machines(&here.store, &here.store).unwrap();
}

#[test]
fn the_test_of_starts_finds_those_that_fail_or_wait_in_a_circle() {
    let long = Duration::from_secs(60);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    check_start(move || SqliteStore::open(&path), long).unwrap();

    let starting = Mutex::new(());
    let failing = move || {
        let source = "deadlock detected".into();
        let deadlock = SessionStoreError::Io { store: "faulty".into(), doing: "opened", source };
        let _starting = starting.try_lock().ok_or(deadlock)?;
        thread::sleep(Duration::from_millis(20));
        SqliteStore::in_memory()
    };
    let broken = check_start(failing, long).unwrap_err();
    let clause = "a start must not fail because of another: faulty cannot be opened: deadlock";
    assert!(broken.iter().any(|found| found.starts_with(clause)), "{broken}");

    let is_first = AtomicBool::new(true);
    let stuck = move || {
        while !is_first.load(Ordering::Relaxed) {
            thread::park();
        }
        is_first.store(false, Ordering::Relaxed);
        SqliteStore::in_memory()
    };
    let broken = check_start(stuck, Duration::from_millis(500)).unwrap_err();
    let clause = "starts must not wait for each other without an end";
    assert!(broken.iter().any(|found| found == clause), "{broken}");
}
