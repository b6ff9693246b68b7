//! Marks of decisions that are over, in a separate database or under a separate role.

use std::{fmt, sync::Arc};

use toolcrib_core::{ApprovalMark, MarkStore, SessionStoreError};

use super::{Database, params, signed};

/// Creates the table, unless it is there: a role that only inserts may not create it.
const CREATE: &str = "DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_tables
            WHERE schemaname = 'toolcrib_marks' AND tablename = 'marks') THEN
        PERFORM pg_advisory_xact_lock(7468638);
        IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'toolcrib_marks') THEN
            CREATE SCHEMA toolcrib_marks;
        END IF;
        CREATE TABLE IF NOT EXISTS toolcrib_marks.marks (
            kind text NOT NULL,
            id text NOT NULL,
            until_ms bigint NOT NULL,
            PRIMARY KEY (kind, id)
        );
    END IF;
END $$";

/// A [`MarkStore`] in a PostgreSQL database, in the schema `toolcrib_marks`. It only reads and inserts. Keep it
/// in another database than the [`PostgresStore`](super::PostgresStore), or under a separate role, so that an
/// older dump of the store does not replace the marks too.
#[derive(Clone)]
pub struct PostgresMarks(Arc<Database>);

impl PostgresMarks {
    /// Connects to the database of a URL or key-value string, as
    /// [`PostgresStore::connect`](super::PostgresStore::connect) does, and creates the table if it is missing.
    /// Blocks.
    ///
    /// # Errors
    /// [`SessionStoreError`]. Its text does not contain the URL.
    pub fn connect(url: &str) -> Result<Self, SessionStoreError> {
        let database = Database::connect(url)?;
        let pool = database.pool.clone();
        database
            .block("opened", async move { Ok(pool.get().await?.batch_execute(CREATE).await?) })?;
        Ok(Self(Arc::new(database)))
    }
}

impl MarkStore for PostgresMarks {
    fn mark(&self, mark: ApprovalMark, id: &str, until_ms: u64) -> Result<bool, SessionStoreError> {
        let insert = "INSERT INTO toolcrib_marks.marks (kind, id, until_ms) VALUES ($1, $2, $3)
            ON CONFLICT DO NOTHING RETURNING 1";
        let values = params![mark.as_str(), id.to_owned(), signed(until_ms)];
        Ok(!self.0.query("written", insert, values)?.is_empty())
    }

    fn marked(&self, mark: ApprovalMark, ids: &[&str]) -> Result<Vec<String>, SessionStoreError> {
        let marked = "SELECT id FROM toolcrib_marks.marks WHERE kind = $1 AND id = ANY($2)";
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        let rows = self.0.query("read", marked, params![mark.as_str(), ids])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

impl fmt::Debug for PostgresMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresMarks").field(&self.0.shown).finish()
    }
}
