//! Artifacts, in chunks.

use std::{io, sync::Arc, time::Duration};

use serde_json::json;
use tokio_postgres::Row;
use toolcrib_core::{
    __internal::millis, ArtifactEntry, ArtifactMeta, ArtifactReader, ArtifactStore,
    ArtifactStoreError, CommitError, DigestHasher, Identity, LineIndex, OnConflict,
    SessionStoreError, StoreWriter, StoredBytes,
};
use uuid::Uuid;

use super::{Database, Param, now, params, signed, unsigned, unsynced};

/// The size of a chunk, in bytes.
const CHUNK: usize = 1 << 20;

/// The time for which a content stays that no artifact has: readers may have opened it, or it is being
/// written.
const KEPT_UNUSED: Duration = Duration::from_hours(24);

/// An [`ArtifactStore`] in the tables of a [`PostgresStore`](super::PostgresStore).
pub(super) struct PostgresArtifacts {
    database: Arc<Database>,
    keep_for: Duration,
}

fn owner_of(owner: &Identity) -> String {
    let Identity { tenant, principal, conversation } = owner;
    json!([tenant, principal, **conversation]).to_string()
}

fn failed(doing: &'static str, error: SessionStoreError) -> ArtifactStoreError {
    ArtifactStoreError::Io { doing, source: io::Error::other(error) }
}

fn entry_of(row: &Row, column: usize) -> Result<ArtifactEntry, ArtifactStoreError> {
    let entry = serde_json::from_str(row.get(column));
    entry.map_err(|error| ArtifactStoreError::Io { doing: "read", source: error.into() })
}

impl PostgresArtifacts {
    pub(super) fn new(database: Arc<Database>, keep_for: Duration) -> Self {
        Self { database, keep_for }
    }

    fn read(&self, sql: &'static str, values: Vec<Param>) -> Result<Vec<Row>, ArtifactStoreError> {
        self.database.query("read", sql, values).map_err(|error| failed("read", error))
    }

    fn written(
        &self,
        sql: &'static str,
        values: Vec<Param>,
    ) -> Result<Vec<Row>, ArtifactStoreError> {
        self.database.query("written", sql, values).map_err(|error| failed("written", error))
    }

    fn keep_ms(&self) -> i64 {
        signed(millis(self.keep_for))
    }

    /// Removes expired artifacts, and contents that have had none for long enough.
    fn sweep(&self) -> Result<(), ArtifactStoreError> {
        let sweep = concat!(
            "WITH expired AS (
                DELETE FROM toolcrib.artifacts WHERE made_ms <= toolcrib.now_ms() - $1
                RETURNING content
            ), unused AS (
                UPDATE toolcrib.contents SET unused_ms = toolcrib.now_ms()
                WHERE id IN (SELECT content FROM expired)
            ), gone AS (
                DELETE FROM toolcrib.contents WHERE unused_ms <= toolcrib.now_ms() - $2 RETURNING id
            ), chunks AS (
                DELETE FROM toolcrib.chunks WHERE content IN (SELECT id FROM gone)
            )
            SELECT ",
            unsynced!()
        );
        self.written(sweep, params![self.keep_ms(), signed(millis(KEPT_UNUSED))]).map(drop)
    }
}

impl ArtifactStore for PostgresArtifacts {
    fn create(&self, owner: &Identity) -> Result<Box<dyn StoreWriter>, ArtifactStoreError> {
        self.sweep()?;
        let content = Uuid::new_v4().simple().to_string();
        let begin = concat!(
            "WITH begun AS (
                INSERT INTO toolcrib.contents (id, unused_ms) VALUES ($1, toolcrib.now_ms())
            ) SELECT ",
            unsynced!()
        );
        self.written(begin, params![content.clone()])?;
        Ok(Box::new(ChunkWriter {
            store: Self { database: Arc::clone(&self.database), keep_for: self.keep_for },
            owner: owner_of(owner),
            content,
            buffer: Vec::new(),
            chunks: 0,
            lines: LineIndex::new(),
            digest: DigestHasher::new(),
        }))
    }

    fn open(&self, owner: &Identity, id: &str) -> Result<StoredBytes, ArtifactStoreError> {
        let open = "SELECT entry, content, line_index
            FROM toolcrib.artifacts JOIN toolcrib.contents ON contents.id = content
            WHERE owner = $1 AND artifacts.id = $2 AND made_ms > toolcrib.now_ms() - $3";
        let values = params![owner_of(owner), id.as_bytes().to_vec(), self.keep_ms()];
        let rows = self.read(open, values)?;
        let row = rows.first().ok_or_else(|| ArtifactStoreError::Unknown { id: id.into() })?;
        let entry = entry_of(row, 0)?;
        let lines = row.get::<_, Option<&[u8]>>(2).and_then(LineIndex::from_bytes);
        let lines = lines.filter(|lines| lines.bytes() == entry.bytes);
        let gone = || ArtifactStoreError::Gone { source: io::ErrorKind::UnexpectedEof.into() };
        let reader = ChunkReader {
            database: Arc::clone(&self.database),
            content: row.get(1),
            bytes: entry.bytes,
        };
        let (lines, reader) = (Arc::new(lines.ok_or_else(gone)?), Arc::new(reader));
        Ok(StoredBytes { entry, lines, reader })
    }

    fn entries(&self, owner: &Identity) -> Result<Vec<ArtifactEntry>, ArtifactStoreError> {
        let entries = "SELECT entry FROM toolcrib.artifacts
            WHERE owner = $1 AND made_ms > toolcrib.now_ms() - $2 ORDER BY number";
        let rows = self.read(entries, params![owner_of(owner), self.keep_ms()])?;
        rows.iter().map(|row| entry_of(row, 0)).collect()
    }

    fn remove(&self, owner: &Identity, id: &str) -> Result<(), ArtifactStoreError> {
        let remove = concat!(
            "WITH removed AS (
                DELETE FROM toolcrib.artifacts WHERE owner = $1 AND id = $2 RETURNING content
            ), unused AS (
                UPDATE toolcrib.contents SET unused_ms = toolcrib.now_ms()
                WHERE id IN (SELECT content FROM removed)
            ) SELECT ",
            unsynced!()
        );
        self.written(remove, params![owner_of(owner), id.as_bytes().to_vec()]).map(drop)
    }

    fn forget(&self, owner: &Identity) -> Result<(), ArtifactStoreError> {
        let forget = concat!(
            "WITH removed AS (
                DELETE FROM toolcrib.artifacts WHERE owner = $1 RETURNING content
            ), unused AS (
                UPDATE toolcrib.contents SET unused_ms = toolcrib.now_ms()
                WHERE id IN (SELECT content FROM removed)
            ) SELECT ",
            unsynced!()
        );
        self.written(forget, params![owner_of(owner)]).map(drop)
    }
}

/// Writes chunks as they become full. A content that is not committed has no artifact, and is removed later.
struct ChunkWriter {
    store: PostgresArtifacts,
    owner: String,
    content: String,
    /// Less than a chunk.
    buffer: Vec<u8>,
    chunks: i64,
    lines: LineIndex,
    digest: DigestHasher,
}

impl ChunkWriter {
    fn flush(&mut self) -> Result<(), ArtifactStoreError> {
        let chunk = concat!(
            "WITH added AS (
                INSERT INTO toolcrib.chunks (content, number, bytes) VALUES ($1, $2, $3)
            ) SELECT ",
            unsynced!()
        );
        let bytes = std::mem::take(&mut self.buffer);
        self.store.written(chunk, params![self.content.clone(), self.chunks, bytes])?;
        self.chunks += 1;
        Ok(())
    }
}

impl StoreWriter for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ArtifactStoreError> {
        self.lines.push(bytes);
        self.digest.push(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = CHUNK - self.buffer.len();
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.buffer.extend_from_slice(now);
            rest = later;
            if self.buffer.len() == CHUNK {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn commit(
        mut self: Box<Self>,
        id: &str,
        note: ArtifactMeta,
        on_conflict: OnConflict,
    ) -> Result<ArtifactEntry, CommitError> {
        if !self.buffer.is_empty() {
            self.flush()?;
        }
        let made = concat!("SELECT ", now!());
        let made_ms = self.store.read(made, params![])?.first().map_or(0, |row| unsigned(row, 0));
        let entry = ArtifactEntry {
            id: id.into(),
            digest: self.digest.clone().finish(),
            bytes: self.lines.bytes(),
            lines: self.lines.lines(),
            made_ms,
            note,
        };
        // An expired artifact is replaced. The old content stays for its readers.
        let commit = concat!(
            "WITH old AS (
                SELECT content FROM toolcrib.artifacts WHERE owner = $1 AND id = $2
            ), committed AS (
                INSERT INTO toolcrib.artifacts AS a (owner, id, content, entry, made_ms)
                VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (owner, id) DO UPDATE SET content = excluded.content,
                    entry = excluded.entry, made_ms = excluded.made_ms, number = DEFAULT
                    WHERE $6 OR a.made_ms <= toolcrib.now_ms() - $7
                RETURNING content
            ), used AS (
                UPDATE toolcrib.contents SET
                    line_index = CASE WHEN id = $3 THEN $8 ELSE line_index END,
                    unused_ms = CASE WHEN id = $3 THEN NULL ELSE toolcrib.now_ms() END
                WHERE EXISTS (SELECT FROM committed)
                    AND (id = $3 OR id IN (SELECT content FROM old))
            )
            SELECT content, ",
            unsynced!(),
            " FROM committed"
        );
        let json = serde_json::to_string(&entry)
            .map_err(|error| ArtifactStoreError::Io { doing: "written", source: error.into() })?;
        let replaces = on_conflict == OnConflict::Replace;
        let values = params![
            self.owner.clone(),
            id.as_bytes().to_vec(),
            self.content.clone(),
            json,
            signed(made_ms),
            replaces,
            self.store.keep_ms(),
            self.lines.to_bytes(),
        ];
        match self.store.written(commit, values)?.is_empty() {
            true => Err(CommitError::Taken { id: id.into(), writer: self }),
            false => Ok(entry),
        }
    }
}

/// Reads a content by its chunks.
struct ChunkReader {
    database: Arc<Database>,
    content: String,
    bytes: u64,
}

impl ArtifactReader for ChunkReader {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, ArtifactStoreError> {
        let part = "SELECT substring(bytes FROM $3 FOR $4) FROM toolcrib.chunks
            WHERE content = $1 AND number = $2";
        let left = self.bytes.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let within = usize::try_from(at % CHUNK as u64).unwrap_or_default();
            let count = (wanted - done).min(CHUNK - within);
            let number = signed(at / CHUNK as u64);
            let [from, count_of] =
                [within + 1, count].map(|number| i32::try_from(number).unwrap_or(i32::MAX));
            let values = params![self.content.clone(), number, from, count_of];
            let rows = self.database.query("read", part, values);
            let rows = rows.map_err(|error| failed("read", error))?;
            let bytes = rows.first().map(|row| row.get::<_, &[u8]>(0)).unwrap_or_default();
            match into.get_mut(done..done + count).filter(|_| bytes.len() == count) {
                Some(place) => place.copy_from_slice(bytes),
                None => {
                    let source = io::ErrorKind::UnexpectedEof.into();
                    return Err(ArtifactStoreError::Gone { source });
                }
            }
            done += count;
        }
        Ok(done)
    }
}
