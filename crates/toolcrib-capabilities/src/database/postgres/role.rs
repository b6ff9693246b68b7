//! The role that may explore: it can read tables and nothing else.

use tokio_postgres::Client;

/// The rights of a connection's role that exceed reading, including those of the roles that it can
/// become.
/// Tables of the system are left out: `pg_settings` is writable for all.
const PROBLEMS: &str = "
WITH role AS (
    SELECT oid, rolname, rolsuper, rolreplication FROM pg_catalog.pg_roles
    WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
), own_table AS (
    SELECT c.oid, c.relname, n.nspname, c.relowner, c.relkind
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%'
)
(SELECT 'is a superuser' FROM role WHERE rolsuper LIMIT 1)
UNION ALL
(SELECT 'may replicate the server' FROM role WHERE rolreplication LIMIT 1)
UNION ALL
(SELECT 'is a member of ' || rolname FROM role
 WHERE rolname LIKE 'pg\\_%\\_server\\_%'
    OR rolname IN ('pg_signal_backend', 'pg_write_all_data', 'pg_maintain', 'pg_checkpoint')
 LIMIT 3)
UNION ALL
(SELECT 'owns the table ' || t.nspname || '.' || t.relname FROM own_table t
 WHERE t.relowner IN (SELECT oid FROM role) LIMIT 3)
UNION ALL
(SELECT DISTINCT 'may write the table ' || t.nspname || '.' || t.relname FROM own_table t, role
 WHERE t.relowner NOT IN (SELECT oid FROM role)
   AND (pg_catalog.has_table_privilege(role.oid, t.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
     OR pg_catalog.has_any_column_privilege(role.oid, t.oid, 'INSERT, UPDATE'))
 LIMIT 3)";

/// The reasons why the role of this connection may not explore; none if it may.
pub(super) async fn problems(client: &Client) -> Result<Vec<String>, tokio_postgres::Error> {
    let rows = client.query(PROBLEMS, &[]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// The statements that create a role which may.
pub(super) fn create_role(database: &str) -> String {
    let database = database.replace('"', "\"\"");
    format!(
        "CREATE ROLE toolcrib_explore LOGIN PASSWORD '…' NOSUPERUSER NOREPLICATION;\n\
         GRANT CONNECT ON DATABASE \"{database}\" TO toolcrib_explore;\n\
         GRANT USAGE ON SCHEMA public TO toolcrib_explore;\n\
         GRANT SELECT ON ALL TABLES IN SCHEMA public TO toolcrib_explore;"
    )
}
