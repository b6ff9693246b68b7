//! Sessions: the history of runs in a store.

mod lease;
mod recovery;

use std::{
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex, OnceCell, OwnedMutexGuard},
    task::spawn_blocking,
};
use toolcrib_core::{
    CancellationToken, ClaimedSession, Message, NewSession, SentParts, SessionHistory, SessionInfo,
    SessionOwner, SessionRecord, SessionStore, SessionStoreError, StoreId, SubmittedMessage,
};

use self::lease::{KeptLease, LeaseWriter};
pub(crate) use self::recovery::{
    CallState, InterruptedCall, InterruptedTurn, denied, not_made, outcome_unknown, unknown,
    what_ran,
};

/// How an interrupted turn ended that was not resumed.
const INTERRUPTED: &str = "interrupted";

/// How a turn ended that was cancelled while no process ran it.
const CANCELLED: &str = "cancelled";

/// An open session: a conversation in a store, whose turns are runs with
/// [`RunOptions::session`](crate::RunOptions::session). No other process can write to it until it is
/// [closed](Self::close). Clones share it.
///
/// ```
/// use std::sync::Arc;
/// use toolcrib_agent::{Agent, RunOptions, Session};
/// use toolcrib_core::{NewSession, SessionOwner};
/// use toolcrib_models::ScriptedModel;
/// use toolcrib_store::SqliteStore;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let model = ScriptedModel::from_toml("script.toml", r#"
///     [[rule]]
///     text = "Hello."
/// "#)?;
/// let agent = Agent::builder().model(model).build()?;
/// let owner = SessionOwner::default();
/// let new = NewSession { owner, name: None, personality: "default".into() };
/// let session = Session::create(Arc::new(SqliteStore::in_memory()?), new).await?;
/// for message in ["Hello", "And again"] {
///     agent.run(message, RunOptions::default().session(&session)).await.into_answer()?;
/// }
/// assert_eq!(session.info().await?.turns, 2);
/// session.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Session(Arc<Shared>);

struct Shared {
    store: Arc<dyn SessionStore>,
    lease: KeptLease,
    /// As it was when it was opened.
    info: SessionInfo,
    /// The message that it was claimed for.
    submitted: Option<SubmittedMessage>,
    /// Read once: no other process writes to the session.
    sent_parts: OnceCell<Arc<SentParts>>,
    /// The ids of calls whose messages are left out of requests: no other call may have them.
    left_out: Arc<parking_lot::Mutex<Vec<Arc<str>>>>,
    /// Whether a message of it, also one that is left out, has content of an unknown author.
    tainted: Arc<AtomicBool>,
    /// Locked during a run.
    history: Arc<Mutex<History>>,
}

/// The messages of the session, if its last turn has ended; `None` if it may not have: after a run
/// that did not record its end, and after opening.
pub(crate) type History = Option<KnownHistory>;

/// The messages of a session, as its last run of this process left them.
#[derive(Default)]
pub(crate) struct KnownHistory {
    pub(crate) messages: Arc<Vec<Message>>,
    pub(crate) settled: Settled,
    /// The [version](toolcrib_engine::Redactor::version) of the secrets of that run.
    pub(crate) secrets: u64,
}

/// The messages that a run began with and has not changed: the next run needs no look at them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Settled {
    /// The number of the run in this process.
    pub(crate) run: u64,
    /// The number of the messages, from the first on.
    pub(crate) messages: usize,
}

impl Session {
    /// Creates a session in the store.
    ///
    /// # Errors
    /// [`SessionStoreError`], such as [`NameTaken`](SessionStoreError::NameTaken).
    pub async fn create(
        store: Arc<dyn SessionStore>,
        new: NewSession,
    ) -> Result<Self, SessionStoreError> {
        let info = with(&store, move |store| store.create(&new)).await?;
        let lease = KeptLease::acquire(&store, &info, true).await?;
        Ok(Self::of(store, info, lease, Some(KnownHistory::default()), None))
    }

    /// Opens the owner's session of an id or a name.
    ///
    /// If the last process that wrote to it was killed, this waits until its lease has expired, at
    /// most 15 seconds. The interrupted turn can then be continued with
    /// [`Agent::resume`](crate::Agent::resume). A run with another message ends it: each call of it
    /// that has no result gets one, `outcome_unknown` if the call may have had its effect.
    ///
    /// # Errors
    /// [`InUse`](SessionStoreError::InUse) if another run renews its lease;
    /// [`Unknown`](SessionStoreError::Unknown) also for a session of another owner.
    pub async fn open(
        store: Arc<dyn SessionStore>,
        owner: &SessionOwner,
        session: &str,
    ) -> Result<Self, SessionStoreError> {
        let info = info(&store, owner, session).await?;
        let lease = KeptLease::acquire(&store, &info, true).await?;
        Ok(Self::of(store, info, lease, None, None))
    }

    /// Opens the owner's session of an id or a name; `None` if another process has its lease. Does not wait.
    ///
    /// # Errors
    /// [`Unknown`](SessionStoreError::Unknown) also for a session of another owner.
    pub async fn try_open(
        store: Arc<dyn SessionStore>,
        owner: &SessionOwner,
        session: &str,
    ) -> Result<Option<Self>, SessionStoreError> {
        let info = info(&store, owner, session).await?;
        match KeptLease::acquire(&store, &info, false).await {
            Err(SessionStoreError::InUse { .. }) => Ok(None),
            lease => Ok(Some(Self::of(store, info, lease?, None, None))),
        }
    }

    /// Adds a message to the owner's session of an id or a name, for a process that
    /// [claims](Self::claim) it. Needs no lease: the session may have a run.
    ///
    /// # Errors
    /// [`TooManySubmitted`](SessionStoreError::TooManySubmitted);
    /// [`Unknown`](SessionStoreError::Unknown) also for a session of another owner.
    pub async fn submit(
        store: &Arc<dyn SessionStore>,
        owner: &SessionOwner,
        session: &str,
        message: impl Into<Arc<str>>,
    ) -> Result<(), SessionStoreError> {
        let id = info(store, owner, session).await?.id;
        let (owner, message) = (owner.clone(), message.into());
        with(store, move |store| store.submit(&owner, &id, &message)).await
    }

    /// Opens a session that has [work](SessionStore::claim), of one owner or of all, for
    /// [`Agent::segment`](crate::Agent::segment); `None` if there is none now. Of several processes, one gets
    /// it. A turn without a process that is to be cancelled is ended here, and not returned.
    ///
    /// [End](Self::end_segment) it after the segment.
    ///
    /// # Errors
    /// [`SessionStoreError`] if the store cannot be read or written.
    pub async fn claim(
        store: &Arc<dyn SessionStore>,
        owner: Option<&SessionOwner>,
    ) -> Result<Option<Self>, SessionStoreError> {
        loop {
            let (of, time) = (owner.cloned(), store.lease_times().lease);
            let found = with(store, move |store| store.claim(of.as_ref(), time)).await?;
            let Some(ClaimedSession { info, lease, submitted, is_cancelled }) = found else {
                return Ok(None);
            };
            let lease = KeptLease::keep(store, lease, true);
            let session = Self::of(Arc::clone(store), info, lease, None, submitted);
            if !is_cancelled {
                return Ok(Some(session));
            }
            session.ended_as(CANCELLED).await?;
            session.close().await?;
        }
    }

    fn of(
        store: Arc<dyn SessionStore>,
        info: SessionInfo,
        lease: KeptLease,
        history: History,
        submitted: Option<SubmittedMessage>,
    ) -> Self {
        let (sent_parts, left_out) = (OnceCell::new(), Arc::default());
        let (tainted, history) = (Arc::default(), Arc::new(Mutex::new(history)));
        Self(Arc::new(Shared {
            store,
            lease,
            info,
            submitted,
            sent_parts,
            left_out,
            tainted,
            history,
        }))
    }

    /// The message that its [segment](crate::Agent::segment) runs; `None` if that resumes a turn, or if the
    /// session was not claimed.
    pub fn submitted(&self) -> Option<&SubmittedMessage> {
        self.0.submitted.as_ref()
    }

    /// The id of the session in its store.
    pub fn id(&self) -> &Arc<str> {
        &self.0.info.id
    }

    /// The name, if it has one.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.0.info.name.as_ref()
    }

    /// The id of the personality of its turns.
    pub fn personality(&self) -> &Arc<str> {
        &self.0.info.personality
    }

    /// The owner, who alone can read it. The turns must have the same tenant and principal.
    pub fn owner(&self) -> &SessionOwner {
        &self.0.info.owner
    }

    /// The conversation of its turns' identity: the name, else the id.
    pub fn conversation(&self) -> &Arc<str> {
        self.0.info.conversation()
    }

    /// The present state in the store.
    ///
    /// # Errors
    /// [`SessionStoreError`] if it cannot be read.
    pub async fn info(&self) -> Result<SessionInfo, SessionStoreError> {
        let (owner, id) = (self.owner().clone(), Arc::clone(self.id()));
        with(&self.0.store, move |store| store.find(&owner, &id)).await
    }

    /// Ends the lease, so that others can open the session at once. Later runs of clones fail. A
    /// session that is dropped is closed in the background; one that was [claimed](Self::claim) is left to
    /// the next claim, when its lease has expired.
    ///
    /// # Errors
    /// [`SessionStoreError`] if the store cannot be written. Then the lease ends by itself.
    pub async fn close(self) -> Result<(), SessionStoreError> {
        self.0.lease.release().await
    }

    /// Leaves it to the next [claim](Self::claim) after a time, as a process that is killed does: a turn that
    /// has not ended is resumed, and a message whose turn has not begun is run. Later runs of clones fail.
    ///
    /// # Errors
    /// [`SessionStoreError`] if the store cannot be written. Then the lease ends by itself.
    pub async fn leave(self, after: Duration) -> Result<(), SessionStoreError> {
        self.0.lease.leave(after).await
    }

    /// Sets the token that a cancellation by another process cancels.
    pub(crate) fn runs(&self, token: &CancellationToken) {
        self.0.lease.runs(token);
    }

    /// The lock on its history; `None` during a run.
    pub(crate) fn try_lock(&self) -> Option<OwnedMutexGuard<History>> {
        Arc::clone(&self.0.history).try_lock_owned().ok()
    }

    /// The messages in the store, after the end of an interrupted turn.
    pub(crate) async fn load(&self) -> Result<Arc<Vec<Message>>, SessionStoreError> {
        self.ended_as(INTERRUPTED).await
    }

    /// Ends an interrupted turn in a way, and returns the messages.
    async fn ended_as(
        &self,
        stopped: &'static str,
    ) -> Result<Arc<Vec<Message>>, SessionStoreError> {
        let (owner, id) = (self.owner().clone(), Arc::clone(self.id()));
        let writer = self.0.lease.writer();
        let (left_out, tainted) = (Arc::clone(&self.0.left_out), Arc::clone(&self.0.tainted));
        let messages = with(&self.0.store, move |store| {
            let mut stored = read_as_made(store, &writer, &owner, &id)?;
            let end = recovery::end_of_interrupted(&stored, stopped);
            if !end.is_empty() {
                writer.write(store, &end)?;
            }
            *left_out.lock() = mem::take(&mut stored.left_out_calls);
            note_taint(&tainted, &stored);
            let stored = stored.messages.into_iter().filter(|stored| !stored.left_out);
            let stored = stored.map(|stored| stored.message);
            let added = end.into_iter().filter_map(|record| match record {
                SessionRecord::Message(message) => Some(message),
                _ => None,
            });
            Ok(stored.chain(added).collect())
        });
        messages.await.map(Arc::new)
    }

    /// The interrupted turn, with all messages in the store; `None` if the last turn has ended.
    pub(crate) async fn interrupted(
        &self,
    ) -> Result<Option<(Vec<Message>, InterruptedTurn)>, SessionStoreError> {
        let (owner, id) = (self.owner().clone(), Arc::clone(self.id()));
        let writer = self.0.lease.writer();
        let (left_out, tainted) = (Arc::clone(&self.0.left_out), Arc::clone(&self.0.tainted));
        let found = with(&self.0.store, move |store| {
            let mut stored = read_as_made(store, &writer, &owner, &id)?;
            let Some(turn) = recovery::interrupted(&stored) else { return Ok(None) };
            *left_out.lock() = mem::take(&mut stored.left_out_calls);
            note_taint(&tainted, &stored);
            let messages = stored.messages.into_iter().filter(|stored| !stored.left_out);
            let messages = messages.map(|stored| stored.message).collect();
            Ok(Some((messages, turn)))
        });
        found.await
    }

    /// The parts of earlier requests, as they were sent.
    pub(crate) async fn sent_parts(&self) -> Result<Arc<SentParts>, SessionStoreError> {
        let read = || async {
            let (owner, id) = (self.owner().clone(), Arc::clone(self.id()));
            let sent = with(&self.0.store, move |store| store.sent(&owner, &id)).await?;
            Ok(Arc::new(SentParts::new(sent)))
        };
        self.0.sent_parts.get_or_try_init(read).await.map(Arc::clone)
    }

    /// Whether a message of it, also one that is left out, has content of an unknown author. Known
    /// once its history is loaded.
    pub(crate) fn is_tainted(&self) -> bool {
        self.0.tainted.load(Ordering::Acquire)
    }

    /// Notes that a run has read such content.
    pub(crate) fn taint(&self) {
        self.0.tainted.store(true, Ordering::Release);
    }

    /// The ids of calls whose messages are left out of requests.
    pub(crate) fn left_out(&self) -> Vec<Arc<str>> {
        self.0.left_out.lock().clone()
    }

    /// Notes the ids of calls whose messages are left out of later requests.
    pub(crate) fn leave_out(&self, ids: Vec<Arc<str>>) {
        self.0.left_out.lock().extend(ids);
    }

    /// Checks that the store cannot lose the intent of a call that may not be repeated.
    pub(crate) fn check_durable(&self) -> Result<(), SessionStoreError> {
        self.0.store.check_durable()
    }

    /// The store of usage to which a write can add.
    pub(crate) fn usage_store_id(&self) -> Option<StoreId> {
        self.0.store.usage_store_id()
    }

    /// Writes records, and shows the result to a function, also if the caller no longer waits for it.
    pub(crate) async fn write(
        &self,
        records: Vec<SessionRecord>,
        then: impl FnOnce(&Result<(), SessionStoreError>) + Send + 'static,
    ) -> Result<(), SessionStoreError> {
        let writer = self.0.lease.writer();
        with(&self.0.store, move |store| {
            let written = writer.write(store, &records);
            then(&written);
            written
        })
        .await
    }
}

toolcrib_core::__internal::debug_fields!(Session, session, session.id());

/// Reads a session, whose last response gets the arguments that ran.
fn read_as_made(
    store: &dyn SessionStore,
    writer: &LeaseWriter,
    owner: &SessionOwner,
    id: &str,
) -> Result<SessionHistory, SessionStoreError> {
    let mut stored = store.history(owner, id)?;
    if let Some((position, message)) = recovery::with_what_ran(&stored) {
        let replaced = SessionRecord::Replaced { position, message: message.clone() };
        writer.write(store, &[replaced])?;
        let mut history = stored.messages.iter_mut().filter(|stored| !stored.left_out);
        if let Some(stored) = history.nth(position) {
            stored.message = message;
        }
    }
    Ok(stored)
}

fn note_taint(tainted: &AtomicBool, stored: &SessionHistory) {
    if stored.left_out_untrusted
        || stored.messages.iter().any(|stored| stored.message.is_untrusted())
    {
        tainted.store(true, Ordering::Release);
    }
}

async fn info(
    store: &Arc<dyn SessionStore>,
    owner: &SessionOwner,
    session: &str,
) -> Result<SessionInfo, SessionStoreError> {
    let (owner, session) = (owner.clone(), session.to_owned());
    with(store, move |store| store.find(&owner, &session)).await
}

/// Runs a function on the store, off the async workers.
async fn with<T: Send + 'static>(
    store: &Arc<dyn SessionStore>,
    work: impl FnOnce(&dyn SessionStore) -> Result<T, SessionStoreError> + Send + 'static,
) -> Result<T, SessionStoreError> {
    let store = Arc::clone(store);
    let done = spawn_blocking(move || work(&*store)).await;
    done.unwrap_or_else(|error| {
        let store = "the store of sessions".to_owned();
        Err(SessionStoreError::Io { store, doing: "used", source: error.into() })
    })
}
