//! A store in memory.

use std::{
    cmp::{Ordering, Reverse},
    collections::HashMap,
    sync::Arc,
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use toolcrib_core::{
    __internal::millis, Digest, FoundMessage, KvArea, Message, NewSession, SentPart, SessionInfo,
    SessionLease, SessionOwner, SessionRecord, SessionRetention, SessionSearch, SessionStore,
    SessionStoreError, StoredCall, StoredMessage, StoredRun, StoredSession, StoredTurn,
    TracedEvent, TurnState, Usage,
};

use crate::{
    frozen::freeze,
    memory_approvals::HeldApprovals,
    memory_kv::HeldKv,
    memory_usage::HeldUsage,
    session::{
        BEGAN_TWICE, EMPTY_DIES_AFTER, ID_ATTEMPTS, OUTSIDE_TURN, check_name, lease_end, new_id,
        new_token, now_ms, out_of_order,
    },
};

/// The name of the store in errors.
const NAME: &str = "the store in memory";

/// A [`SessionStore`] that ends with the process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(
    Arc<Mutex<HashMap<Arc<str>, Held>>>,
    Arc<Mutex<HeldApprovals>>,
    Arc<Mutex<HeldUsage>>,
    Arc<Mutex<HeldKv>>,
);

#[derive(Debug, Clone)]
struct Held {
    session: StoredSession,
    /// The events, with the number of their turn.
    events: Vec<(u32, TracedEvent)>,
    sent: HashMap<Digest, Arc<str>>,
    lease: Option<Lease>,
}

#[derive(Debug, Clone)]
struct Lease {
    token: Arc<str>,
    until_ms: u64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn held_approvals(&self) -> MutexGuard<'_, HeldApprovals> {
        self.1.lock()
    }

    pub(crate) fn held_usage(&self) -> MutexGuard<'_, HeldUsage> {
        self.2.lock()
    }

    pub(crate) fn held_kv(&self) -> MutexGuard<'_, HeldKv> {
        self.3.lock()
    }

    /// Removes the keys of a session that was removed.
    fn forget_keys(&self, info: &SessionInfo) {
        let (owner, conversation) = (info.owner.clone(), Arc::clone(&info.id));
        self.held_kv().forget(&KvArea::Session { owner, conversation });
    }

    pub(crate) fn has_session(&self, owner: &SessionOwner, id: &str) -> bool {
        self.0.lock().get(id).is_some_and(|held| held.session.info.owner == *owner)
    }

    /// Removes the approvals of sessions that were removed.
    fn forget_approvals(&self) {
        let sessions = self.0.lock();
        let is_kept = |session: &Arc<str>| sessions.contains_key(session);
        self.1.lock().calls.retain(|one| one.call.session.as_ref().is_none_or(is_kept));
    }
}

impl SessionStore for MemoryStore {
    fn create(&self, new: &NewSession) -> Result<SessionInfo, SessionStoreError> {
        check_name(new)?;
        let mut sessions = self.0.lock();
        if let Some(name) = &new.name
            && sessions.values().any(|held| {
                held.session.info.owner == new.owner
                    && held.session.info.name.as_ref() == Some(name)
            })
        {
            return Err(SessionStoreError::NameTaken { name: Arc::clone(name) });
        }
        let free = (0..ID_ATTEMPTS).map(|_| new_id()).find(|id| !sessions.contains_key(id));
        let id = free.ok_or_else(|| SessionStoreError::Io {
            store: NAME.to_owned(),
            doing: "written",
            source: "no unused id was found".into(),
        })?;
        let info = SessionInfo::new(Arc::clone(&id), new, now_ms());
        let session = StoredSession {
            info: info.clone(),
            turns: Vec::new(),
            messages: Vec::new(),
            calls: Vec::new(),
        };
        sessions
            .insert(id, Held { session, events: Vec::new(), sent: HashMap::new(), lease: None });
        Ok(info)
    }

    fn find(&self, owner: &SessionOwner, session: &str) -> Result<SessionInfo, SessionStoreError> {
        let sessions = self.0.lock();
        let of_owner = |held: &&Held| held.session.info.owner == *owner;
        let by_id = sessions.get(session).filter(of_owner);
        let by_name = || {
            let mut of_owner = sessions.values().filter(of_owner);
            of_owner.find(|held| held.session.info.name.as_deref() == Some(session))
        };
        let found = by_id.or_else(by_name).map(|held| held.session.info.clone());
        found.ok_or_else(|| unknown(session))
    }

    fn list(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        let sessions = self.0.lock();
        let infos = sessions.values().map(|held| &held.session.info);
        let mut of_owner: Vec<_> =
            infos.filter(|info| info.owner == *owner && info.turns > 0).cloned().collect();
        of_owner.sort_by(last_used_first);
        of_owner.truncate(limit);
        Ok(of_owner)
    }

    fn read(&self, owner: &SessionOwner, id: &str) -> Result<StoredSession, SessionStoreError> {
        self.with(owner, id, |held| Ok(held.session.clone()))
    }

    fn runs(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        let sessions = self.0.lock();
        let of_owner = sessions.values().filter(|held| held.session.info.owner == *owner);
        let mut runs: Vec<_> = of_owner.flat_map(|held| runs_of(&held.session)).collect();
        let key = |run: &StoredRun| (run.turn.began_ms, Arc::clone(&run.session), run.turn.number);
        runs.sort_by_key(|run| Reverse(key(run)));
        runs.truncate(limit);
        Ok(runs)
    }

    fn events(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        self.with(owner, id, |held| {
            let of_turn = held.events.iter().filter(|(of, _)| *of == turn);
            Ok(of_turn.map(|(_, event)| event.clone()).collect())
        })
    }

    fn sent(&self, owner: &SessionOwner, id: &str) -> Result<Vec<SentPart>, SessionStoreError> {
        self.with(owner, id, |held| {
            let part =
                |(key, json): (&Digest, &Arc<str>)| SentPart { key: *key, json: json.clone() };
            Ok(held.sent.iter().map(part).collect())
        })
    }

    fn search(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        let sessions = self.0.lock();
        let is_left_out = |info: &SessionInfo| match &search.without {
            Some(session) => info.id == *session || info.name.as_ref() == Some(session),
            None => false,
        };
        let mut of_owner: Vec<_> = sessions
            .values()
            .map(|held| &held.session)
            .filter(|session| session.info.owner == *owner && !is_left_out(&session.info))
            .collect();
        of_owner.sort_by(|one, other| last_used_first(&one.info, &other.info));
        let found = of_owner.into_iter().flat_map(|session| {
            session.messages.iter().rev().filter_map(|stored| find(session, stored, search))
        });
        Ok(found.take(search.limit).collect())
    }

    fn acquire(
        &self,
        owner: &SessionOwner,
        id: &str,
        time: Duration,
    ) -> Result<SessionLease, SessionStoreError> {
        self.with(owner, id, |held| {
            held.check_free()?;
            let token = new_token();
            held.lease = Some(Lease { token: Arc::clone(&token), until_ms: lease_end(time) });
            Ok(SessionLease { session: Arc::clone(&held.session.info.id), token })
        })
    }

    fn renew(&self, lease: &SessionLease, time: Duration) -> Result<(), SessionStoreError> {
        self.with_lease(lease, |held| {
            let until_ms = lease_end(time);
            held.lease = Some(Lease { token: Arc::clone(&lease.token), until_ms });
            Ok(())
        })
    }

    fn release(&self, lease: &SessionLease) -> Result<(), SessionStoreError> {
        match self.with_lease(lease, |held| {
            held.lease = None;
            Ok(())
        }) {
            Err(SessionStoreError::LeaseLost { .. }) => Ok(()),
            other => other,
        }
    }

    fn write(
        &self,
        lease: &SessionLease,
        records: &[SessionRecord],
    ) -> Result<(), SessionStoreError> {
        self.with_lease(lease, |held| {
            let mut session = held.session.clone();
            let (mut events, mut sent) = (Vec::new(), Vec::new());
            for record in records {
                write(&mut session, &mut events, &mut sent, record)?;
            }
            held.sent.extend(sent);
            held.events.append(&mut events);
            session.info.used_ms = now_ms();
            session.info.last_turn = session.turns.last().map(|turn| turn.state.clone());
            held.session = session;
            Ok(())
        })
    }

    fn remove(&self, owner: &SessionOwner, id: &str) -> Result<(), SessionStoreError> {
        self.with(owner, id, |held| held.check_free())?;
        let removed = self.0.lock().remove(id);
        removed.iter().for_each(|held| self.forget_keys(&held.session.info));
        self.forget_approvals();
        Ok(())
    }

    fn prune(&self, retention: &SessionRetention) -> Result<usize, SessionStoreError> {
        let mut sessions = self.0.lock();
        let before: Vec<_> = sessions.values().map(|held| held.session.info.clone()).collect();
        let now = now_ms();
        sessions.retain(|_, held| {
            let info = &held.session.info;
            let age = now.saturating_sub(info.used_ms);
            let is_empty = info.turns == 0 && info.name.is_none();
            let expired =
                age > millis(retention.keep_for) || is_empty && age > millis(EMPTY_DIES_AFTER);
            !expired || held.check_free().is_err()
        });
        let mut by_use: Vec<_> = sessions.values().map(|held| held.session.info.clone()).collect();
        by_use.sort_by(last_used_first);
        let mut total = 0_u64;
        for info in by_use {
            total = total.saturating_add(info.bytes);
            if total > retention.max_bytes
                && sessions.get(&info.id).is_some_and(|held| held.check_free().is_ok())
            {
                sessions.remove(&info.id);
            }
        }
        let removed: Vec<_> =
            before.into_iter().filter(|info| !sessions.contains_key(&info.id)).collect();
        drop(sessions);
        removed.iter().for_each(|info| self.forget_keys(info));
        self.forget_approvals();
        Ok(removed.len())
    }
}

impl MemoryStore {
    fn with<T>(
        &self,
        owner: &SessionOwner,
        id: &str,
        work: impl FnOnce(&mut Held) -> Result<T, SessionStoreError>,
    ) -> Result<T, SessionStoreError> {
        let mut sessions = self.0.lock();
        let held = sessions.get_mut(id).filter(|held| held.session.info.owner == *owner);
        work(held.ok_or_else(|| unknown(id))?)
    }

    fn with_lease(
        &self,
        lease: &SessionLease,
        work: impl FnOnce(&mut Held) -> Result<(), SessionStoreError>,
    ) -> Result<(), SessionStoreError> {
        let mut sessions = self.0.lock();
        let held = sessions
            .get_mut(&lease.session)
            .filter(|held| held.lease.as_ref().is_some_and(|present| present.token == lease.token));
        let lost = || SessionStoreError::LeaseLost { session: Arc::clone(&lease.session) };
        work(held.ok_or_else(lost)?)
    }
}

impl Held {
    fn check_free(&self) -> Result<(), SessionStoreError> {
        match &self.lease {
            Some(Lease { until_ms, .. }) if *until_ms > now_ms() => Err(SessionStoreError::InUse {
                session: Arc::clone(&self.session.info.id),
                until_ms: *until_ms,
            }),
            _ => Ok(()),
        }
    }
}

/// The message, if it contains all words.
fn find(
    session: &StoredSession,
    stored: &StoredMessage,
    search: &SessionSearch,
) -> Option<FoundMessage> {
    let (role, text) = match &stored.message {
        Message::User { text } => ("user", text),
        Message::Assistant { text, .. } => ("assistant", text),
        _ => return None,
    };
    let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    let at = |word: &Arc<str>| words.iter().position(|known| *known == word.to_lowercase());
    let first = at(search.words.first()?)?;
    if !search.words.iter().all(|word| at(word).is_some()) {
        return None;
    }
    let all: Vec<_> = text.split_whitespace().collect();
    let begin = first.saturating_sub(24).min(all.len().saturating_sub(48));
    let excerpt: Vec<_> = all.into_iter().skip(begin).take(48).collect();
    let turn = session.turns.iter().find(|turn| turn.number == stored.turn)?;
    Some(FoundMessage {
        session: Arc::clone(&session.info.id),
        name: session.info.name.clone(),
        turn: stored.turn,
        at_ms: turn.began_ms,
        role: role.into(),
        excerpt: excerpt.join(" ").into(),
    })
}

fn last_used_first(one: &SessionInfo, other: &SessionInfo) -> Ordering {
    (other.used_ms, &other.id).cmp(&(one.used_ms, &one.id))
}

fn unknown(session: &str) -> SessionStoreError {
    SessionStoreError::Unknown { session: session.into() }
}

fn runs_of(session: &StoredSession) -> impl Iterator<Item = StoredRun> {
    session.turns.iter().map(|turn| {
        let calls = session.calls.iter().filter(|call| call.turn == turn.number).count();
        StoredRun::new(&session.info, turn.clone(), u32::try_from(calls).unwrap_or(u32::MAX))
    })
}

fn write(
    session: &mut StoredSession,
    events: &mut Vec<(u32, TracedEvent)>,
    sent: &mut Vec<(Digest, Arc<str>)>,
    record: &SessionRecord,
) -> Result<(), SessionStoreError> {
    let StoredSession { info, turns, messages, calls } = session;
    let running = turns.last_mut().filter(|turn| turn.state == TurnState::Running);
    if let SessionRecord::TurnBegan { model, title, skills } = record {
        if running.is_some() {
            return Err(out_of_order(&info.id, BEGAN_TWICE));
        }
        if info.turns == 0 {
            info.title = Arc::clone(title);
        }
        info.turns += 1;
        turns.push(StoredTurn {
            number: info.turns,
            model: Arc::clone(model),
            title: Arc::clone(title),
            began_ms: now_ms(),
            ended_ms: None,
            skills: skills.clone(),
            state: TurnState::Running,
            usage: Usage::NOTHING,
        });
        return Ok(());
    }
    let turn = running.ok_or_else(|| out_of_order(&info.id, OUTSIDE_TURN))?;
    match record {
        SessionRecord::Message(message) => {
            let frozen = freeze(message).map_err(|error| SessionStoreError::Damaged {
                store: NAME.to_owned(),
                problem: error.to_string(),
            })?;
            info.bytes += frozen.len() as u64;
            messages.push(StoredMessage {
                turn: turn.number,
                left_out: false,
                message: message.clone(),
            });
        }
        SessionRecord::Intent(intent) => {
            if let Some(call) = calls.iter_mut().find(|call| call.call_id == intent.call_id) {
                call.attempts += 1;
                call.cut_off += u32::from(call.outcome.is_none());
                call.outcome = None;
                call.result = None;
                call.arguments = intent.arguments.clone();
                call.tool = Arc::clone(&intent.tool);
                return Ok(());
            }
            info.bytes += intent.arguments.to_string().len() as u64;
            calls.push(StoredCall {
                turn: turn.number,
                call_id: Arc::clone(&intent.call_id),
                tool: Arc::clone(&intent.tool),
                arguments: intent.arguments.clone(),
                read_only: intent.read_only,
                idempotent: intent.idempotent,
                attempts: 1,
                cut_off: 0,
                began_ms: now_ms(),
                outcome: None,
                result: None,
            });
        }
        SessionRecord::Outcome { call_id, outcome, result } => {
            if let Some(call) = calls.iter_mut().find(|call| call.call_id == *call_id) {
                call.outcome.get_or_insert(*outcome);
                call.result = call.result.take().or_else(|| result.clone());
            }
        }
        SessionRecord::Event(event) => {
            info.bytes += serde_json::to_string(&event.fields).map_or(0, |json| json.len() as u64);
            events.push((turn.number, event.clone()));
        }
        SessionRecord::LeftOut(left_out) => {
            let present = messages.iter_mut().filter(|stored| !stored.left_out).enumerate();
            for (_, stored) in present.filter(|(position, _)| left_out.contains(position)) {
                stored.left_out = true;
            }
        }
        SessionRecord::Sent(part) => {
            info.bytes += part.json.len() as u64;
            sent.push((part.key, Arc::clone(&part.json)));
        }
        SessionRecord::Used(usage) => turn.usage += *usage,
        SessionRecord::TurnEnded { stopped, error, usage } => {
            turn.ended_ms = Some(now_ms());
            turn.usage = *usage;
            let of_turn = calls.iter_mut().filter(|call| call.turn == turn.number);
            of_turn.for_each(|call| call.result = None);
            turn.state = TurnState::Ended { stopped: Arc::clone(stopped), error: error.clone() };
        }
        _ => return Err(out_of_order(&info.id, "a record of an unknown kind")),
    }
    Ok(())
}
