//! The databases that SQL tools are over.

use std::sync::Arc;

use toolcrib_capabilities::database::{
    Database, DatabaseError, DatabaseHandle, StatementDescription, StatementError,
    postgres::{PostgresDatabase, PostgresHandle},
};

/// A database of an SQL tool.
#[derive(Debug, Clone)]
pub enum SqlDatabase {
    /// A file.
    Sqlite(Database),
    /// A server.
    Postgres(PostgresDatabase),
}

impl SqlDatabase {
    /// The name by which it is declared.
    pub fn name(&self) -> &str {
        match self {
            Self::Sqlite(database) => database.name(),
            Self::Postgres(database) => database.name(),
        }
    }

    /// Whether its handles may write at all.
    pub fn is_writable(&self) -> bool {
        match self {
            Self::Sqlite(database) => database.is_writable(),
            Self::Postgres(database) => database.is_writable(),
        }
    }

    pub(crate) fn handle(&self, read_only: bool) -> SqlHandle {
        match self {
            Self::Sqlite(database) if read_only => SqlHandle::Sqlite(database.read_only()),
            Self::Sqlite(database) => SqlHandle::Sqlite(database.writable()),
            Self::Postgres(database) => SqlHandle::Postgres(database.handle(read_only)),
        }
    }

    pub(crate) fn exploring(&self) -> SqlHandle {
        match self {
            Self::Sqlite(database) => SqlHandle::Sqlite(database.exploring()),
            Self::Postgres(database) => SqlHandle::Postgres(database.exploring()),
        }
    }

    /// Whether a server's role may explore. Blocks.
    pub(crate) fn check_exploring(&self) -> Result<(), DatabaseError> {
        match self {
            Self::Postgres(database) if !database.is_held() => database.check(true),
            Self::Sqlite(_) | Self::Postgres(_) => Ok(()),
        }
    }

    /// Whether statements cannot be checked, and calls not be made.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self, Self::Postgres(database) if database.is_held())
    }

    /// The reason, if its tools are not offered.
    pub(crate) fn withheld_reason(&self) -> Option<&Arc<str>> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(database) => database.withheld_reason(),
        }
    }
}

impl From<&Database> for SqlDatabase {
    fn from(database: &Database) -> Self {
        Self::Sqlite(database.clone())
    }
}

impl From<&PostgresDatabase> for SqlDatabase {
    fn from(database: &PostgresDatabase) -> Self {
        Self::Postgres(database.clone())
    }
}

impl From<&Self> for SqlDatabase {
    fn from(database: &Self) -> Self {
        database.clone()
    }
}

/// The handle of a tool's body.
#[derive(Debug, Clone)]
pub(crate) enum SqlHandle {
    Sqlite(DatabaseHandle),
    Postgres(PostgresHandle),
}

impl SqlHandle {
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Sqlite(handle) => handle.is_read_only(),
            Self::Postgres(handle) => handle.is_read_only(),
        }
    }

    pub(crate) fn describe(&self, sql: &str) -> Result<StatementDescription, StatementError> {
        match self {
            Self::Sqlite(handle) => handle.describe(sql),
            Self::Postgres(handle) => handle.describe(sql),
        }
    }
}
