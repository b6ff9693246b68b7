//! The tests of stores find each fault.

use std::{sync::Arc, time::Duration};

use toolcrib_core::{
    FoundMessage, KvArea, KvError, KvStore, KvWrite, NewSession, SentPart, SessionInfo,
    SessionLease, SessionOwner, SessionRecord, SessionRetention, SessionSearch, SessionStore,
    SessionStoreError, StoredRun, StoredSession, TracedEvent,
};
use toolcrib_store::SqliteStore;
use toolcrib_testing::stores::{check_kv_store, check_session_store};

/// A store with one fault.
struct Faulty {
    store: SqliteStore,
    fault: Fault,
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
}

impl Faulty {
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
        self.store.acquire(&self.owner(owner), id, time)
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<(), SessionStoreError> {
        self.store.renew(lease, time)
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        self.store.release(lease)
    }

    fn write(
        &self,
        lease: &SessionLease,
        records: &[SessionRecord],
    ) -> Result<(), SessionStoreError> {
        self.store.write(lease, records)
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
        let faulty = Faulty { store: SqliteStore::in_memory().unwrap(), fault };
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
    ] {
        let faulty = Faulty { store: SqliteStore::in_memory().unwrap(), fault };
        let broken = check_session_store(&faulty).unwrap_err();
        assert!(broken.iter().any(|found| found.starts_with(clause)), "{broken}");
    }
}
