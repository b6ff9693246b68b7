//! Stores: keys and values, artifacts, sessions, approvals.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use toolcrib::{
    Identity,
    agent::{Agent, Session},
    artifacts::{
        ArtifactCall, ArtifactEntry, ArtifactLog, ArtifactMeta, ArtifactPort, ArtifactReader,
        ArtifactStore, ArtifactStoreError, Artifacts, CommitError, LineIndex, OnConflict,
        StoreWriter, StoredBytes, StoredResult,
    },
    models::ScriptedModel,
    models::SentPart,
    policy::approvals::{
        ApprovalGrant, ApprovalKeys, ApprovalStore, ApprovalStoreError, Approvals, ParkedCall,
        Settlement, StoredApproval,
    },
    prelude::*,
    secrets::Redact,
    sessions::{
        ClaimedSession, FoundMessage, KvArea, KvError, KvLimits, KvStore, KvWrite, NewSession,
        SessionInfo, SessionLease, SessionOwner, SessionRecord, SessionRetention, SessionSearch,
        SessionStore, SessionStoreError, SqliteStore, StoredRun, StoredSession, TracedEvent,
    },
    testing::stores::check_artifact_store,
    tool::{DigestHasher, InvalidToolError, KvScope},
};

use super::{Log, call};

/// Keys and values of a map, which never expire.
#[derive(Default)]
struct Map(Mutex<HashMap<KvArea, BTreeMap<String, Arc<str>>>>);

impl KvStore for Map {
    fn value(&self, area: &KvArea, key: &str) -> Result<Option<Arc<str>>, KvError> {
        Ok(self.0.lock().unwrap().get(area).and_then(|values| values.get(key).cloned()))
    }

    fn keys(&self, area: &KvArea, prefix: &str) -> Result<Vec<Arc<str>>, KvError> {
        let areas = self.0.lock().unwrap();
        let keys = areas.get(area).into_iter().flat_map(BTreeMap::keys);
        Ok(keys.filter(|key| key.starts_with(prefix)).map(|key| key.as_str().into()).collect())
    }

    fn put(&self, area: &KvArea, write: KvWrite<'_>) -> Result<(), KvError> {
        KvLimits::check(write.key, write.value)?;
        let mut areas = self.0.lock().unwrap();
        let values = areas.entry(area.clone()).or_default();
        let now = values.get(write.key).map(|value| &**value);
        if write.expected.is_some_and(|expected| expected != now) {
            return Err(KvError::Changed);
        }
        match write.value {
            Some(value) => values.insert(write.key.to_owned(), value.into()),
            None => values.remove(write.key),
        };
        Ok(())
    }
}

/// Counts calls.
#[tool(capabilities(kv = ["principal"]))]
async fn count(cx: ToolContext) -> Result<String, ToolError> {
    let kv = cx.kv(KvScope::Principal)?;
    let count = kv.get("count").await?.map_or(0, |count| count.len()) + 1;
    kv.set("count", "|".repeat(count)).await?;
    Ok(format!("{count} {:?}", kv.keys("c").await?))
}

#[tokio::test]
async fn an_own_store_keeps_values_from_turn_to_turn() {
    let engine = Engine::builder().tool(count_tool()).kv(Map::default()).build().unwrap();
    let as_of = |principal: &str| TurnOptions::default().principal(principal);
    for (principal, expected) in [("ann", "1"), ("ann", "2"), ("ben", "1")] {
        let result = call(&engine, as_of(principal), "count", json!({})).await;
        assert_eq!(&*result.text, format!(r#"{expected} ["count"]"#));
    }
}

/// Artifacts of a map.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Vec<(Identity, StoredBytes)>>>);

struct Writer {
    store: Shelf,
    owner: Identity,
    bytes: Vec<u8>,
}

struct Bytes(Vec<u8>);

impl ArtifactReader for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, ArtifactStoreError> {
        let from = usize::try_from(offset).unwrap().min(self.0.len());
        let rest = &self.0[from..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

impl StoreWriter for Writer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn commit(
        self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        let store = self.store.clone();
        let mut stored = store.0.lock().unwrap();
        let is_same = |(owner, stored): &(Identity, StoredBytes)| {
            *owner == self.owner && *stored.entry.id == *id
        };
        if on_conflict == OnConflict::Fail && stored.iter().any(is_same) {
            return Err(CommitError::Taken { id: id.into(), writer: self });
        }
        stored.retain(|artifact| !is_same(artifact));
        let lines = LineIndex::of(&self.bytes);
        let mut digest = DigestHasher::new();
        digest.push(&self.bytes);
        let (bytes, count) = (lines.bytes(), lines.lines());
        let digest = digest.finish();
        let entry = ArtifactEntry { id: id.into(), digest, bytes, lines: count, made_ms: 0, note };
        let reader = Arc::new(Bytes(self.bytes));
        let artifact = StoredBytes { entry: entry.clone(), lines: Arc::new(lines), reader };
        stored.push((self.owner, artifact));
        Ok(entry)
    }
}

impl ArtifactStore for Shelf {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        let (store, owner) = (self.clone(), owner.clone());
        Ok(Box::new(Writer { store, owner, bytes: Vec::new() }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        let all = self.0.lock().unwrap();
        let found = all.iter().find(|(of, stored)| of == owner && *stored.entry.id == *id);
        found
            .map(|(_, stored)| stored.clone())
            .ok_or_else(|| ArtifactStoreError::Unknown { id: id.into() })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        let all = self.0.lock().unwrap();
        let own = all.iter().filter(|(of, _)| of == owner);
        Ok(own.map(|(_, stored)| stored.entry.clone()).collect())
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        self.0.lock().unwrap().retain(|(of, stored)| of != owner || *stored.entry.id != *id);
        Ok(())
    }
}

/// A port that logs, and stores by another.
struct Logged(Artifacts, Log);

impl ArtifactPort for Logged {
    fn keep(
        &self,
        call: &ArtifactCall,
        content: &[u8],
    ) -> Result<StoredResult, ArtifactStoreError> {
        let stored = self.0.keep(call, content)?;
        self.1.add(format!("{} of {}", stored.entry.bytes, call.tool));
        Ok(stored)
    }

    fn tools(&self) -> Result<Vec<Tool>, InvalidToolError> {
        self.0.tools()
    }

    fn handle(
        &self,
        call: ArtifactCall,
        redact: Arc<dyn Redact>,
        kept: ArtifactLog,
    ) -> Arc<dyn Any + Send + Sync> {
        self.0.handle(call, redact, kept)
    }

    fn forget(&self, identity: &Identity) {
        ArtifactPort::forget(&self.0, identity);
    }
}

/// A long text.
#[tool]
fn read_log() -> String {
    (1..=40_000).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn own_artifacts_of_an_own_store_are_read_by_tools() {
    let (shelf, log) = (Shelf::default(), Log::default());
    check_artifact_store(&shelf).unwrap();
    let port = Logged(Artifacts::new(shelf.clone()), log.clone());
    let engine = Engine::builder().tool(read_log_tool()).artifacts(port).build().unwrap();
    let options = || TurnOptions::default().principal("ann").conversation("c1");
    let mut turn = engine.turn(options()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call_1", "read_log", json!({}))]).await;
    assert_eq!(log.lines(), ["428893 of read_log"]);
    let owner = Identity::clone(turn.identity());
    let id = shelf.entries(&owner).unwrap().remove(0).id;
    let mut iteration = turn.iteration().await.unwrap();
    let search = json!({ "id": &*id, "pattern": "line 39999" });
    let found = iteration.execute(vec![ToolCall::new("call_2", "artifact_search", search)]).await;
    assert!(found[0].text.contains("line 39999"), "{}", found[0].text);
}

/// A store that logs, and stores in another.
struct Audited(SqliteStore, Log);

impl fmt::Debug for Audited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Audited")
    }
}

impl SessionStore for Audited {
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError> {
        self.1.add("create");
        self.0.create(new)
    }

    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError> {
        self.0.find(owner, session)
    }

    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        self.0.list(owner, limit)
    }

    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError> {
        self.0.read(owner, id)
    }

    fn runs(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        self.0.runs(owner, limit)
    }

    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        self.0.events(owner, id, turn)
    }

    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError> {
        self.0.sent(owner, id)
    }

    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        self.0.search(owner, search)
    }

    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError> {
        self.0.acquire(owner, id, time)
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<bool, SessionStoreError> {
        self.0.renew(lease, time)
    }

    fn submit(
        &self,
        owner: &SessionOwner,
        id: &str,
        message: &str,
    ) -> Result<(), SessionStoreError> {
        self.0.submit(owner, id, message)
    }

    fn claim(
        &self,
        owner: Option<&SessionOwner>,
        time: Duration,
    ) -> Result<Option<ClaimedSession>, SessionStoreError> {
        self.0.claim(owner, time)
    }

    fn cancel(&self, owner: &SessionOwner, id: &str) -> Result<bool, SessionStoreError> {
        self.0.cancel(owner, id)
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        self.0.release(lease)
    }

    fn write(
        &self,
        lease: &SessionLease,
        seen: u64,
        records: &[SessionRecord],
    ) -> Result<u64, SessionStoreError> {
        if records.iter().any(|record| matches!(record, SessionRecord::TurnBegan { .. })) {
            self.1.add("turn");
        }
        self.0.write(lease, seen, records)
    }

    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        self.0.remove(owner, id)
    }

    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError> {
        self.0.prune(retention)
    }
}

impl ApprovalStore for Audited {
    fn park(&self, call: &ParkedCall, limit: usize) -> Result<StoredApproval, ApprovalStoreError> {
        self.1.add(format!("park {}", call.tool));
        self.0.park(call, limit)
    }

    fn approval(&self, id: &str) -> Result<StoredApproval, ApprovalStoreError> {
        self.0.approval(id)
    }

    fn approvals(&self, with_closed: bool) -> Result<Vec<StoredApproval>, ApprovalStoreError> {
        self.0.approvals(with_closed)
    }

    fn settle(&self, id: &str, settlement: &Settlement) -> Result<(), ApprovalStoreError> {
        self.0.settle(id, settlement)
    }

    fn close(&self, id: &str, how: &str) -> Result<bool, ApprovalStoreError> {
        self.0.close(id, how)
    }

    fn add_grant(&self, grant: &ApprovalGrant) -> Result<(), ApprovalStoreError> {
        self.0.add_grant(grant)
    }

    fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalStoreError> {
        self.0.grants()
    }

    fn remove_grant(&self, id: &str) -> Result<bool, ApprovalStoreError> {
        self.0.remove_grant(id)
    }

    fn prune_approvals(&self, before_ms: u64) -> Result<usize, ApprovalStoreError> {
        self.0.prune_approvals(before_ms)
    }
}

#[tokio::test]
async fn a_session_and_a_parked_call_are_in_an_own_store() {
    /// Gives money back.
    #[tool]
    fn refund() -> &'static str {
        "refunded"
    }
    let log = Log::default();
    let store = Arc::new(Audited(SqliteStore::in_memory().unwrap(), log.clone()));
    let folder = tempfile::tempdir().unwrap();
    let keys = ApprovalKeys::new(Some(folder.path().join("approvals")));
    let approvals = Approvals::new(store.clone(), keys, "test");
    let owner = SessionOwner { tenant: None, principal: Some("ann".into()) };
    let new = NewSession { name: None, owner: owner.clone(), personality: "default".into() };
    let session = Session::create(store.clone(), new).await.unwrap();
    let script = "[[rule]]\ncalls = [{ tool = \"refund\", args = {} }]\n";
    let agent = Agent::builder()
        .model(ScriptedModel::from_toml("script.toml", script).unwrap())
        .tool(refund_tool())
        .policy(Policy::of([Rule::ask("money").tools(["refund"])]))
        .build()
        .unwrap();
    let mut options = RunOptions::default().session(&session);
    options.turn = options
        .turn
        .principal("ann")
        .approver(Arc::new(approvals.approver(Some(Arc::clone(session.id())))));
    agent.run("Refund it.", options).await;
    assert_eq!(log.lines(), ["create", "turn", "park refund"]);
    assert_eq!(&*approvals.list(false).unwrap()[0].stored.call.tool, "refund");
    assert_eq!(store.runs(&owner, 10).unwrap().len(), 1);
}
