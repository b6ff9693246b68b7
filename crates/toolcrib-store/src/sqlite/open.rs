//! Opens the file: who may read it, its format, its migrations.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
    thread,
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, config::DbConfig};
use toolcrib_core::SessionStoreError;

use super::{Failure, IN_MEMORY, sqlite_error};

/// The time for which a statement waits for another process's write. A write takes milliseconds;
/// longer means that a process is stopped within one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The delay before a retry of a statement that does not wait by itself.
const BUSY_STEP: Duration = Duration::from_millis(10);

/// The number of prepared statements that are kept: more than the store has.
const KEPT_STATEMENTS: usize = 64;

/// The steps from an empty file to the present format. A step is never changed once it is
/// published: a new one follows it.
const MIGRATIONS: [&str; 13] = [
    "
    CREATE TABLE sessions (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        name TEXT,
        personality TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        used_ms INTEGER NOT NULL,
        turns INTEGER NOT NULL DEFAULT 0,
        title TEXT NOT NULL DEFAULT '',
        bytes INTEGER NOT NULL DEFAULT 0,
        lease TEXT,
        lease_until_ms INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE UNIQUE INDEX sessions_by_name ON sessions (owner, name);
    CREATE INDEX sessions_by_use ON sessions (owner, used_ms);
    CREATE TABLE turns (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        model TEXT NOT NULL,
        began_ms INTEGER NOT NULL,
        ended_ms INTEGER,
        stopped TEXT,
        error TEXT,
        input_tokens INTEGER NOT NULL DEFAULT 0,
        cached_input_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0,
        cost_usd REAL,
        PRIMARY KEY (session, number)
    ) STRICT;
    CREATE TABLE messages (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (session, position)
    ) STRICT;
    CREATE TABLE calls (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        call_id TEXT NOT NULL,
        position INTEGER NOT NULL,
        turn INTEGER NOT NULL,
        tool TEXT NOT NULL,
        arguments TEXT NOT NULL,
        read_only INTEGER NOT NULL,
        idempotent INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        began_ms INTEGER NOT NULL,
        outcome TEXT,
        PRIMARY KEY (session, call_id)
    ) STRICT;
",
    "
    ALTER TABLE turns ADD COLUMN title TEXT NOT NULL DEFAULT '';
    CREATE TABLE events (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        turn INTEGER NOT NULL,
        position INTEGER NOT NULL,
        iteration INTEGER,
        at_ms INTEGER NOT NULL,
        name TEXT NOT NULL,
        fields TEXT NOT NULL,
        PRIMARY KEY (session, turn, position)
    ) STRICT, WITHOUT ROWID;
",
    // What a killed turn needs to be resumed.
    "
    ALTER TABLE turns ADD COLUMN skills TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE calls ADD COLUMN cut_off INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE calls ADD COLUMN result TEXT;
",
    "
    CREATE TABLE approvals (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        session TEXT REFERENCES sessions (id) ON DELETE CASCADE,
        call_id TEXT,
        tool TEXT NOT NULL,
        origin TEXT NOT NULL,
        definition TEXT NOT NULL,
        arguments TEXT,
        binding TEXT NOT NULL,
        rule TEXT NOT NULL,
        reason TEXT,
        created_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        is_approved INTEGER,
        denied_because TEXT,
        settled_ms INTEGER,
        until_ms INTEGER,
        seal TEXT,
        closed TEXT,
        closed_ms INTEGER
    ) STRICT;
    CREATE INDEX approvals_by_session ON approvals (session);
    CREATE TABLE grants (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        tool TEXT NOT NULL,
        origin TEXT NOT NULL,
        scope TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        until_ms INTEGER NOT NULL,
        seal TEXT NOT NULL
    ) STRICT;
",
    "
    CREATE TABLE sent (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        json TEXT NOT NULL,
        PRIMARY KEY (session, key)
    ) STRICT;
",
    "
    ALTER TABLE messages ADD COLUMN left_out INTEGER NOT NULL DEFAULT 0;
",
    // The sums outlive sessions. SQL's `NULL` would not equal itself: the session may be empty.
    "
    ALTER TABLE turns ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE usage (
        day INTEGER NOT NULL,
        owner TEXT NOT NULL,
        session TEXT NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        count INTEGER NOT NULL DEFAULT 0,
        input_tokens INTEGER NOT NULL DEFAULT 0,
        cached_input_tokens INTEGER NOT NULL DEFAULT 0,
        cache_write_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0,
        known_cost_usd REAL NOT NULL DEFAULT 0,
        unknown_costs INTEGER NOT NULL DEFAULT 0,
        assumed_costs INTEGER NOT NULL DEFAULT 0,
        assumed_tokens INTEGER NOT NULL DEFAULT 0,
        assumed_cost_usd REAL NOT NULL DEFAULT 0,
        definition_bytes INTEGER NOT NULL DEFAULT 0,
        result_chars INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (day, owner, session, kind, name)
    ) STRICT, WITHOUT ROWID;
",
    // Keys and values, and an index of what users and models have written.
    "
    CREATE TABLE kv (
        area TEXT NOT NULL,
        key TEXT NOT NULL,
        session TEXT REFERENCES sessions (id) ON DELETE CASCADE,
        value TEXT NOT NULL,
        expires_ms INTEGER NOT NULL,
        PRIMARY KEY (area, key)
    ) STRICT;
    CREATE INDEX kv_by_session ON kv (session);
    CREATE INDEX kv_by_end ON kv (expires_ms);
    CREATE TABLE texts (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        turn INTEGER NOT NULL,
        role TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE INDEX texts_by_session ON texts (session);
    CREATE VIRTUAL TABLE texts_index USING fts5 (
        text, content = 'texts', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
    );
    INSERT INTO texts_index (texts_index, rank) VALUES ('secure-delete', 1);
    CREATE TRIGGER texts_added AFTER INSERT ON texts BEGIN
        INSERT INTO texts_index (rowid, text) VALUES (new.id, new.text);
    END;
    CREATE TRIGGER texts_removed AFTER DELETE ON texts BEGIN
        INSERT INTO texts_index (texts_index, rowid, text) VALUES ('delete', old.id, old.text);
    END;
    CREATE TRIGGER messages_added AFTER INSERT ON messages
    WHEN json_extract(new.body, '$.role') IN ('user', 'assistant')
        AND json_extract(new.body, '$.text') <> ''
    BEGIN
        INSERT INTO texts (session, turn, role, text) VALUES (new.session, new.turn,
            json_extract(new.body, '$.role'), substr(json_extract(new.body, '$.text'), 1, 20000));
    END;
    INSERT INTO texts (session, turn, role, text)
        SELECT session, turn, json_extract(body, '$.role'),
            substr(json_extract(body, '$.text'), 1, 20000)
        FROM messages WHERE json_extract(body, '$.role') IN ('user', 'assistant')
            AND json_extract(body, '$.text') <> '' ORDER BY session, position;
",
    // The number of a session's calls, and an index that finds those of a turn.
    "
    ALTER TABLE sessions ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET calls = (SELECT count(*) FROM calls WHERE session = sessions.id);
    CREATE INDEX calls_by_turn ON calls (session, turn);
",
    // Sessions with the same tools share the texts about them: the parts of requests, and the sizes of
    // definitions.
    "
    CREATE TABLE parts (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        json TEXT NOT NULL
    ) STRICT;
    ALTER TABLE sent RENAME TO sent_texts;
    CREATE TABLE sent (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        key TEXT NOT NULL,
        part INTEGER NOT NULL REFERENCES parts (id),
        PRIMARY KEY (session, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sent_by_part ON sent (part);
    INSERT INTO parts (digest, json) SELECT session || ' ' || key, json FROM sent_texts;
    INSERT INTO sent
        SELECT session, key, id FROM sent_texts JOIN parts ON digest = session || ' ' || key;
    DROP TABLE sent_texts;
    CREATE TRIGGER sent_removed AFTER DELETE ON sent BEGIN
        DELETE FROM parts WHERE id = old.part
            AND NOT EXISTS (SELECT 1 FROM sent WHERE part = old.part);
    END;
    CREATE TRIGGER sent_replaced AFTER UPDATE OF part ON sent WHEN old.part <> new.part BEGIN
        DELETE FROM parts WHERE id = old.part
            AND NOT EXISTS (SELECT 1 FROM sent WHERE part = old.part);
    END;
    CREATE TABLE definitions (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        sizes TEXT NOT NULL
    ) STRICT;
    CREATE TABLE offered (
        day INTEGER NOT NULL,
        owner TEXT NOT NULL,
        session TEXT NOT NULL,
        definitions INTEGER NOT NULL REFERENCES definitions (id),
        times INTEGER NOT NULL,
        PRIMARY KEY (day, owner, session, definitions)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX offered_by_definitions ON offered (definitions);
",
    // What a run needs of messages that are left out, and an index that finds the others.
    "
    ALTER TABLE sessions ADD COLUMN left_out_untrusted INTEGER NOT NULL DEFAULT 0;
    UPDATE sessions SET left_out_untrusted = EXISTS (SELECT 1 FROM messages
        WHERE session = sessions.id AND left_out = 1 AND json_extract(body, '$.untrusted'));
    CREATE TABLE left_out_calls (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        call_id TEXT NOT NULL,
        PRIMARY KEY (session, call_id)
    ) STRICT, WITHOUT ROWID;
    INSERT OR IGNORE INTO left_out_calls
        SELECT session, json_extract(call.value, '$.id')
        FROM messages, json_each(body, '$.calls') AS call WHERE left_out = 1;
    CREATE INDEX messages_of_requests ON messages (session, position) WHERE left_out = 0;
",
    "
    ALTER TABLE sessions ADD COLUMN writes INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE limits (
        name TEXT NOT NULL PRIMARY KEY,
        full_at_us INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
",
    // What a worker finds: submitted messages, as JSON, settled calls, and turns to be cancelled.
    "
    ALTER TABLE sessions ADD COLUMN submitted TEXT NOT NULL DEFAULT '[]';
    ALTER TABLE sessions ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN is_due INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE sessions ADD COLUMN cancelled_turn INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX sessions_submitted ON sessions (id) WHERE submitted <> '[]';
    CREATE INDEX turns_that_run ON turns (session) WHERE ended_ms IS NULL;
",
];

/// The present format: the number of migrations, which the file contains as its `user_version`.
const FORMAT: i64 = MIGRATIONS.len() as i64;

/// Opens the file, and creates it if it is missing.
pub(super) fn create(path: &Path) -> Result<Connection, SessionStoreError> {
    let io = |source: io::Error| SessionStoreError::Io {
        store: path.display().to_string(),
        doing: "opened",
        source: source.into(),
    };
    private_file(path).map_err(io)?;
    open(path).map_err(|failure| sqlite_error(path, "opened", failure))
}

/// An empty database in memory.
pub(super) fn in_memory() -> Result<Connection, SessionStoreError> {
    let path = Path::new(IN_MEMORY);
    let open = || -> Result<Connection, Failure> {
        let mut connection = Connection::open_in_memory()?;
        keep_statements(&connection)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        migrate(&mut connection, path)?;
        Ok(connection)
    };
    open().map_err(|failure| sqlite_error(path, "opened", failure))
}

/// Creates the file for its owner alone, before SQLite does: its other files get the same rights.
/// An existing file loses the access rights of others.
fn private_file(path: &Path) -> io::Result<()> {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match created {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(path)?;
            if !found.is_file() {
                return Err(io::Error::other("it is not a file"));
            }
            make_private(path, &found)?;
            // Those of a process that was killed.
            for suffix in ["-wal", "-shm"] {
                let mut beside = path.as_os_str().to_owned();
                beside.push(suffix);
                match fs::symlink_metadata(&beside) {
                    Ok(found) if found.is_file() => make_private(Path::new(&beside), &found)?,
                    _ => {}
                }
            }
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn make_private(path: &Path, found: &fs::Metadata) -> io::Result<()> {
    let mode = found.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o700))?;
    }
    Ok(())
}

fn open(path: &Path) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    keep_statements(&connection)?;
    // Without effect once the file has tables.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // The change of mode does not wait for other processes by itself.
    patiently(|| {
        connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
    })?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "secure_delete", true)?;
    migrate(&mut connection, path)?;
    Ok(connection)
}

/// Keeps prepared statements with their plans. By default SQLite plans a statement with a subquery again
/// whenever it is executed with other values.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(KEPT_STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    if format_of(connection)? == FORMAT {
        return Ok(());
    }
    // Another process may migrate the file at the same time: the format counts within the lock.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = format_of(&transaction)?;
    if found > FORMAT {
        let store = path.display().to_string();
        return Err(SessionStoreError::NewerSchema { store, found, known: FORMAT }.into());
    }
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found < 0 || found == 0 && tables > 0 {
        return Err(Failure::Content("it is a database of another program".to_owned()));
    }
    for step in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", FORMAT)?;
    transaction.commit()?;
    Ok(())
}

fn format_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Repeats a statement while another connection has the file locked.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let mut waited = Duration::ZERO;
    loop {
        match attempt() {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && waited < BUSY_TIMEOUT =>
            {
                thread::sleep(BUSY_STEP);
                waited += BUSY_STEP;
            }
            done => return done,
        }
    }
}
