//! Reads sessions.

use std::sync::Arc;

use tokio_postgres::Row;
use toolcrib_core::{
    NewSession, SessionHistory, SessionInfo, SessionOwner, SessionStoreError, StoredRun,
    StoredSession, TracedEvent, TurnState,
};

use super::{
    PostgresStore, params,
    record::{BEGAN, EVENT, Recorded, thaw_event},
    signed, text, unsigned,
};
use crate::{frozen::FrozenError, session::owner_key};

/// The columns of [`PostgresStore::info_of`].
macro_rules! info {
    () => {
        "id, name, personality, created_ms, used_ms, turns, title, bytes, is_running, ended, \
            cardinality(submitted)"
    };
}
pub(super) use info;

/// Sessions of an owner.
macro_rules! info_of {
    ($condition:literal) => {
        concat!("SELECT ", info!(), " FROM toolcrib.sessions WHERE owner = $1 ", $condition)
    };
}

fn unknown(session: &str) -> SessionStoreError {
    SessionStoreError::Unknown { session: session.into() }
}

impl PostgresStore {
    /// The owner's session of an id or a name. An id has precedence; no name has the form of one.
    pub(super) fn info(
        &self,
        owner: &SessionOwner,
        session: &str,
    ) -> Result<SessionInfo, SessionStoreError> {
        // PostgreSQL has no such text, and no session is named so.
        if session.contains('\0') {
            return Err(unknown(session));
        }
        let found = info_of!("AND (id = $2 OR name = $2)");
        let rows = self.read(found, params![owner_key(owner), session.to_owned()])?;
        match rows.first() {
            Some(row) => self.info_of(row, owner),
            None => Err(unknown(session)),
        }
    }

    pub(super) fn listed(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<SessionInfo>, SessionStoreError> {
        let listed = info_of!(
            "AND (turns > 0 OR submitted <> '{}') ORDER BY used_ms DESC, id DESC LIMIT $2"
        );
        let rows = self.read(listed, params![owner_key(owner), signed(limit as u64)])?;
        rows.iter().map(|row| self.info_of(row, owner)).collect()
    }

    pub(super) fn info_of(
        &self,
        row: &Row,
        owner: &SessionOwner,
    ) -> Result<SessionInfo, SessionStoreError> {
        let name: Option<String> = row.get(1);
        let name = name.map(Arc::from);
        let new = NewSession { owner: owner.clone(), name, personality: text(row, 2) };
        let mut info = SessionInfo::new(row.get::<_, &str>(0).into(), &new, unsigned(row, 3));
        info.used_ms = unsigned(row, 4);
        info.turns = u32::try_from(row.get::<_, i32>(5)).unwrap_or_default();
        info.title = text(row, 6);
        info.bytes = unsigned(row, 7);
        info.submitted = u32::try_from(row.get::<_, i32>(10)).unwrap_or_default();
        if info.turns > 0 {
            info.last_turn = Some(match (row.get(8), row.get::<_, Option<&str>>(9)) {
                (false, Some(ended)) => {
                    let (stopped, error) =
                        serde_json::from_str(ended).map_err(|error| self.frozen(error))?;
                    TurnState::Ended { stopped, error }
                }
                _ => TurnState::Running,
            });
        }
        Ok(info)
    }

    fn frozen(&self, error: impl Into<FrozenError>) -> SessionStoreError {
        self.database.frozen(&error.into())
    }

    pub(super) fn session(
        &self,
        owner: &SessionOwner,
        id: &str,
    ) -> Result<StoredSession, SessionStoreError> {
        let info = self.info(owner, id)?;
        if *info.id != *id {
            return Err(unknown(id));
        }
        let Recorded { turns, messages, calls, .. } = self.recorded(owner, id)?;
        Ok(StoredSession { info, turns, messages, calls })
    }

    pub(super) fn history_of(
        &self,
        owner: &SessionOwner,
        id: &str,
    ) -> Result<SessionHistory, SessionStoreError> {
        let Recorded { turns, messages, calls, .. } = self.recorded(owner, id)?;
        let new = NewSession { owner: owner.clone(), name: None, personality: "".into() };
        let info = SessionInfo::new(id.into(), &new, 0);
        Ok(StoredSession { info, turns, messages, calls }.into())
    }

    /// The records of the owner's session, applied in order.
    fn recorded(&self, owner: &SessionOwner, id: &str) -> Result<Recorded, SessionStoreError> {
        // A session without records has one row without a record.
        let records = "SELECT turn, at_ms, body
            FROM toolcrib.sessions LEFT JOIN toolcrib.records ON session = id AND kind <> 0
            WHERE id = $1 AND owner = $2 ORDER BY position";
        let rows = self.read(records, params![id.to_owned(), owner_key(owner)])?;
        if rows.is_empty() {
            return Err(unknown(id));
        }
        let mut recorded = Recorded::default();
        for row in rows {
            let Some(turn) = row.get::<_, Option<i32>>(0) else { continue };
            let turn = u32::try_from(turn).unwrap_or_default();
            let applied = recorded.apply(turn, unsigned(&row, 1), row.get(2));
            applied.map_err(|error| self.frozen(error))?;
        }
        Ok(recorded)
    }

    pub(super) fn runs_of(
        &self,
        owner: &SessionOwner,
        limit: usize,
    ) -> Result<Vec<StoredRun>, SessionStoreError> {
        let runs = "WITH begun AS (
                SELECT id, name, turn, at_ms FROM toolcrib.records
                JOIN toolcrib.sessions ON session = id WHERE owner = $1 AND kind = 1
                ORDER BY at_ms DESC, id DESC, turn DESC LIMIT $2
            )
            SELECT id, name, records.turn, records.at_ms, body
            FROM begun JOIN toolcrib.records ON session = id AND records.turn = begun.turn
            WHERE kind <> 0 ORDER BY begun.at_ms DESC, id DESC, begun.turn DESC, position";
        let mut runs_of: Vec<(Arc<str>, Option<Arc<str>>, Recorded)> = Vec::new();
        for row in self.read(runs, params![owner_key(owner), signed(limit as u64)])? {
            let (id, turn): (&str, i32) = (row.get(0), row.get(2));
            let turn = u32::try_from(turn).unwrap_or_default();
            let is_same = |(known, _, recorded): &(Arc<str>, _, Recorded)| {
                **known == *id && recorded.turns.last().is_some_and(|last| last.number == turn)
            };
            if !runs_of.last().is_some_and(is_same) {
                let name: Option<String> = row.get(1);
                runs_of.push((id.into(), name.map(Arc::from), Recorded::default()));
            }
            if let Some((_, _, recorded)) = runs_of.last_mut() {
                let applied = recorded.apply(turn, unsigned(&row, 3), row.get(4));
                applied.map_err(|error| self.frozen(error))?;
            }
        }
        let runs = runs_of.into_iter().filter_map(|(id, name, mut recorded)| {
            let new = NewSession { owner: owner.clone(), name, personality: "".into() };
            let calls = u32::try_from(recorded.calls.len()).unwrap_or(u32::MAX);
            let info = SessionInfo::new(id, &new, 0);
            recorded.turns.pop().map(|turn| StoredRun::new(&info, turn, calls))
        });
        Ok(runs.collect())
    }

    pub(super) fn events_of(
        &self,
        owner: &SessionOwner,
        id: &str,
        turn: u32,
    ) -> Result<Vec<TracedEvent>, SessionStoreError> {
        let events = "SELECT body FROM toolcrib.sessions LEFT JOIN toolcrib.records
                ON session = id AND kind = 0 AND turn = $3
            WHERE id = $1 AND owner = $2 ORDER BY position";
        let turn = i32::try_from(turn).unwrap_or(i32::MAX);
        let rows = self.read(events, params![id.to_owned(), owner_key(owner), turn])?;
        if rows.is_empty() {
            return Err(unknown(id));
        }
        let bodies = rows.iter().filter_map(|row| row.get::<_, Option<&str>>(0));
        bodies.map(|body| thaw_event(body).map_err(|error| self.frozen(error))).collect()
    }
}

const _: () = assert!(EVENT == 0 && BEGAN == 1, "the statements and indexes name these kinds");
