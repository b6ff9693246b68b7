//! The tables: their format, and its migrations.

use deadpool_postgres::PoolError;
use tokio_postgres::{Client, GenericClient, error::SqlState};
use toolcrib_core::SessionStoreError;

use super::Database;

/// The steps from an empty schema to the present format. A step is never changed once it is published: a
/// new one follows it. Programs of the format before may go on meanwhile, so a step only adds.
const MIGRATIONS: [&str; 2] = [include_str!("schema.sql"), include_str!("work.sql")];

/// The present format: the number of migrations.
const FORMAT: i64 = MIGRATIONS.len() as i64;

/// Of several programs that start, one migrates, and the others wait for it.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7468637)";

/// A table that another program writes to is not waited for without an end, since it might wait for another
/// table that is migrated already: the migration is repeated.
const ATTEMPTS: u32 = 20;

/// Creates or migrates the tables. Without a lock or a change if they are up to date.
pub(super) fn prepare(database: &Database) -> Result<(), SessionStoreError> {
    let pool = database.pool.clone();
    let found = database.block("opened", async move {
        let mut client = pool.get().await?;
        let mut attempt = 0;
        loop {
            attempt += 1;
            match migrated(&mut client).await {
                Err(error) if attempt < ATTEMPTS && is_passing(&error) => {}
                found => return found,
            }
        }
    })?;
    match found {
        found if found > FORMAT => {
            let store = database.shown.clone();
            Err(SessionStoreError::NewerSchema { store, found, known: FORMAT })
        }
        _ => Ok(()),
    }
}

/// Returns the format. A newer one than this program's is not touched.
async fn migrated(client: &mut Client) -> Result<i64, PoolError> {
    let found = format_of(client).await?;
    if found >= FORMAT {
        return Ok(found);
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute("SET LOCAL lock_timeout = '2s'").await?;
    transaction.batch_execute(LOCK).await?;
    let found = format_of(&transaction).await?;
    for step in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        transaction.batch_execute(step).await?;
    }
    if found < FORMAT {
        let set = format!("UPDATE toolcrib.format SET version = {FORMAT}");
        transaction.batch_execute(&set).await?;
    }
    transaction.commit().await?;
    Ok(found.max(FORMAT))
}

/// The format of the tables; 0 without any.
async fn format_of(client: &impl GenericClient) -> Result<i64, PoolError> {
    // Not `to_regclass`: its cache may be older than the table that another program has just created.
    let is_there = "SELECT EXISTS (SELECT FROM pg_tables
        WHERE schemaname = 'toolcrib' AND tablename = 'format')";
    if !client.query_one(is_there, &[]).await?.get::<_, bool>(0) {
        return Ok(0);
    }
    Ok(client.query_one("SELECT version FROM toolcrib.format", &[]).await?.get(0))
}

/// Whether a migration can be repeated: it waited for other programs.
fn is_passing(error: &PoolError) -> bool {
    let PoolError::Backend(error) = error else { return false };
    let passing = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    error.code().is_some_and(|code| passing.contains(code))
}
