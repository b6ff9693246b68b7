//! The promises of a server, for an operator.

use std::time::{Duration, SystemTime};

use tokio_postgres::Row;
use toolcrib_core::SessionStoreError;

use super::{PostgresStore, now, params};

/// The oldest version that is supported.
const OLDEST: i32 = 130_000;

/// The difference of two clocks at which a decision seems to be much older or newer than it is.
const CLOCKS: Duration = Duration::from_secs(60);

/// The settings that decide what an acknowledged write survives, and the number of servers that copy this one.
const SETTINGS: &str = concat!(
    "SELECT current_setting('server_version'), current_setting('server_version_num')::int,
        current_setting('fsync'), current_setting('full_page_writes'),
        (SELECT coalesce(reset_val, setting) FROM pg_settings WHERE name = 'synchronous_commit'),
        current_setting('synchronous_standby_names'),
        (SELECT count(*) FROM pg_stat_get_wal_senders()), pg_is_in_recovery(),
        (SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_class
            WHERE relnamespace = to_regnamespace('toolcrib') AND relkind = 'r' AND NOT (
                has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT')
                AND has_table_privilege(oid, 'UPDATE') AND has_table_privilege(oid, 'DELETE'))),
        current_user::text, ",
    now!()
);

/// One property of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFinding {
    /// The property, such as `fsync`.
    pub name: &'static str,
    /// The value that was found.
    pub found: String,
    /// The problem, and what to do; `None` if it is fine.
    pub problem: Option<&'static str>,
}

fn finding(
    name: &'static str,
    found: impl Into<String>,
    is_fine: bool,
    problem: &'static str,
) -> ServerFinding {
    ServerFinding { name, found: found.into(), problem: (!is_fine).then_some(problem) }
}

/// Whether the server has on its disk what it acknowledges as synced.
pub(super) const IS_DURABLE: &str = "SELECT current_setting('fsync') = 'on'";

const FSYNC: &str = "a crash of the machine loses the intent of a call that was made: set fsync = on; until \
    then calls that may not be repeated are refused";

const ACCEPTED: &str = "a crash of the machine loses the intent of a call that was made: set fsync = on; until \
    then calls may be made twice, as accept_loss declares";

const FULL_PAGES: &str =
    "a crash of the machine may damage the database: set full_page_writes = on";

const COMMIT: &str = "the server acknowledges writes before they are on its disk. Toolcrib sets it on its own \
    connections; set it to `on` for all that decide on approvals";

const STANDBYS: &str = "a standby that replaces the server may lack the intent of a call that was made: name one \
    in synchronous_standby_names, and keep synchronous_commit = on or remote_apply";

const POOLER: &str = "prepared statements and settings of a connection are lost: set the pooler to session mode, \
    such as pool_mode = session";

const RIGHTS: &str = "let the owner of the schema `toolcrib` grant SELECT, INSERT, UPDATE and DELETE on its \
    tables to this role";

const CLOCK: &str = "approvals expire by the clock of a machine: synchronize the clocks of the server and of this \
    machine";

impl PostgresStore {
    /// Inspects the server: its version, what an acknowledged write survives, standbys, a pooler on the way,
    /// the rights of the role, and the difference of the clocks. Blocks.
    ///
    /// # Errors
    /// [`SessionStoreError`] if the server cannot be reached.
    pub fn inspect(&self) -> Result<Vec<ServerFinding>, SessionStoreError> {
        let asked = SystemTime::now();
        let rows = self.read(SETTINGS, params![])?;
        let here = asked + asked.elapsed().unwrap_or_default() / 2;
        let row = rows.first().ok_or_else(|| self.damaged("a query without a row"))?;
        let is_standby: bool = row.get(7);
        let has_pooler = self.has_transaction_pooler()?;
        let missing: Option<String> = row.get(8);
        let user: String = row.get(9);
        let server = SystemTime::UNIX_EPOCH + Duration::from_millis(super::unsigned(row, 10));
        let apart = server.duration_since(here).or_else(|_| here.duration_since(server));
        let apart = apart.unwrap_or_default();
        let role = if is_standby { "standby" } else { "primary" };
        let pooler = match has_pooler {
            true => "changes the server connection between transactions",
            false => "none, or in session mode",
        };
        let rights = match &missing {
            Some(tables) => format!("{user} may not use {tables}"),
            None => format!("{user} may use all tables"),
        };
        let clock = format!("{:.1} s apart", apart.as_secs_f64());
        let mut all = durability(row, self.accepts_loss);
        all.extend([
            finding(
                "role",
                role,
                !is_standby,
                "a standby cannot be written: connect to the primary",
            ),
            finding("pooler", pooler, !has_pooler, POOLER),
            finding("rights", rights, missing.is_none(), RIGHTS),
            finding("clock", clock, apart < CLOCKS, CLOCK),
        ]);
        Ok(all)
    }

    /// Whether a pooler gives a connection another server process while another client is in a transaction.
    fn has_transaction_pooler(&self) -> Result<bool, SessionStoreError> {
        let pool = self.database.pool.clone();
        let pid = "SELECT pg_backend_pid()";
        self.database.block("inspected", async move {
            let (first, mut second) = (pool.get().await?, pool.get().await?);
            let before: i32 = first.query_one(pid, &[]).await?.get(0);
            let transaction = second.transaction().await?;
            transaction.query_one(pid, &[]).await?;
            let after: i32 = first.query_one(pid, &[]).await?.get(0);
            transaction.rollback().await?;
            Ok(before != after)
        })
    }
}

/// The version, and what an acknowledged write survives.
fn durability(row: &Row, accepts_loss: bool) -> Vec<ServerFinding> {
    let [version, fsync, full_pages, commit, standbys] =
        [0, 2, 3, 4, 5].map(|column| row.get::<_, Option<String>>(column).unwrap_or_default());
    let (number, senders): (i32, i64) = (row.get(1), row.get(6));
    let copied = match senders {
        0 => "none".to_owned(),
        _ => format!("{senders}, synchronous_standby_names = '{standbys}'"),
    };
    let is_copied = senders == 0 || !standbys.is_empty() && !matches!(&*commit, "off" | "local");
    let [has_fsync, has_full_pages] = [&fsync, &full_pages].map(|setting| setting == "on");
    let waits = commit != "off";
    vec![
        finding(
            "version",
            version,
            number >= OLDEST,
            "update the server to PostgreSQL 13 or newer",
        ),
        finding("fsync", fsync, has_fsync, if accepts_loss { ACCEPTED } else { FSYNC }),
        finding("full_page_writes", full_pages, has_full_pages, FULL_PAGES),
        finding("synchronous_commit", commit, waits, COMMIT),
        finding("standbys", copied, is_copied, STANDBYS),
    ]
}
