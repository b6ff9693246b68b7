//! The role that may explore: it can read tables and nothing else.

use tokio_postgres::Client;

/// The rights of a connection's role that exceed reading, including those of the roles that it can
/// become, and the statement that removes each.
/// Tables of the system are left out: `pg_settings` is writable for all.
const PROBLEMS: &str = "
WITH role AS (
    SELECT * FROM pg_catalog.pg_roles
    WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
      AND (rolname = session_user
        OR NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user))
), holder AS (
    SELECT oid, pg_catalog.quote_ident(rolname) AS name FROM role UNION ALL SELECT 0, 'PUBLIC'
), own_schema AS (
    SELECT * FROM pg_catalog.pg_namespace
    WHERE nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\\_toast%'
      AND nspname NOT LIKE 'pg\\_temp\\_%'
), relation AS (
    SELECT c.*, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, pg_catalog.quote_ident(n.nspname) AS schema,
           CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind
    FROM pg_catalog.pg_class c JOIN own_schema n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
), granted AS (
    SELECT DISTINCT r.kind, r.schema, r.name, h.name AS holder, a.privilege_type AS privilege
    FROM relation r, pg_catalog.aclexplode(r.relacl) a JOIN holder h ON h.oid = a.grantee
    WHERE r.relowner NOT IN (SELECT oid FROM role) AND a.privilege_type IN
      ('UPDATE', CASE r.kind WHEN 'SEQUENCE' THEN 'USAGE' ELSE 'INSERT' END, 'DELETE', 'TRUNCATE')
    UNION
    SELECT r.kind, r.schema, r.name, h.name, a.privilege_type
    FROM relation r JOIN pg_catalog.pg_attribute c ON c.attrelid = r.oid,
         pg_catalog.aclexplode(c.attacl) a JOIN holder h ON h.oid = a.grantee
    WHERE r.relowner NOT IN (SELECT oid FROM role) AND a.privilege_type IN ('INSERT', 'UPDATE')
)
SELECT 'is a superuser', pg_catalog.format('ALTER ROLE %I NOSUPERUSER;', rolname) FROM role WHERE rolsuper
UNION ALL
SELECT 'may replicate the server', pg_catalog.format('ALTER ROLE %I NOREPLICATION;', rolname)
FROM role WHERE rolreplication AND NOT rolsuper
UNION ALL
SELECT 'may create roles', pg_catalog.format('ALTER ROLE %I NOCREATEROLE;', rolname)
FROM role WHERE rolcreaterole AND NOT rolsuper
UNION ALL
SELECT 'may create databases', pg_catalog.format('ALTER ROLE %I NOCREATEDB;', rolname)
FROM role WHERE rolcreatedb AND NOT rolsuper
UNION ALL
SELECT 'is a member of ' || r.rolname, pg_catalog.format('REVOKE %I FROM %I;', r.rolname, m.rolname)
FROM role r JOIN pg_catalog.pg_auth_members e ON e.roleid = r.oid JOIN role m ON m.oid = e.member
WHERE r.rolname LIKE 'pg\\_%\\_server\\_%' OR r.rolname IN
    ('pg_signal_backend', 'pg_write_all_data', 'pg_maintain', 'pg_checkpoint',
     'pg_create_subscription')
UNION ALL
SELECT 'owns the database ' || d.datname, pg_catalog.format('ALTER DATABASE %I OWNER TO CURRENT_USER;', d.datname)
FROM pg_catalog.pg_database d
WHERE d.datname = pg_catalog.current_database() AND d.datdba IN (SELECT oid FROM role WHERE NOT rolsuper)
UNION ALL
SELECT 'may create schemas', pg_catalog.format('REVOKE CREATE ON DATABASE %I FROM %s;', d.datname, h.name)
FROM pg_catalog.pg_database d, pg_catalog.aclexplode(d.datacl) a JOIN holder h ON h.oid = a.grantee
WHERE d.datname = pg_catalog.current_database() AND a.privilege_type = 'CREATE'
  AND d.datdba NOT IN (SELECT oid FROM role)
UNION ALL
SELECT 'owns the schema ' || n.nspname, pg_catalog.format('ALTER SCHEMA %I OWNER TO CURRENT_USER;', n.nspname)
FROM own_schema n JOIN role r ON r.oid = n.nspowner
WHERE NOT r.rolsuper AND r.rolname <> 'pg_database_owner'
UNION ALL
SELECT 'may create objects in the schema ' || n.nspname,
       pg_catalog.format('REVOKE CREATE ON SCHEMA %I FROM %s;', n.nspname, h.name)
FROM own_schema n, pg_catalog.aclexplode(n.nspacl) a JOIN holder h ON h.oid = a.grantee
WHERE a.privilege_type = 'CREATE' AND n.nspowner NOT IN (SELECT oid FROM role)
UNION ALL
SELECT pg_catalog.format('owns the %s %s', pg_catalog.lower(r.kind), r.name),
       pg_catalog.format('ALTER TABLE %s OWNER TO CURRENT_USER;', r.name)
FROM relation r JOIN role o ON o.oid = r.relowner
WHERE NOT o.rolsuper AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = r.oid
    AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype IN ('a', 'i')
    AND d.refobjsubid > 0)
UNION ALL
SELECT CASE kind WHEN 'TABLE' THEN 'may write the table ' ELSE 'may use the sequence ' END
         || pg_catalog.min(name) || CASE pg_catalog.count(DISTINCT name) WHEN 1 THEN '' ELSE ' and others' END,
       pg_catalog.format('REVOKE %s ON %s FROM %s;', pg_catalog.string_agg(DISTINCT privilege, ', '),
              CASE pg_catalog.count(DISTINCT name) WHEN 1 THEN kind || ' ' || pg_catalog.min(name)
                                        ELSE 'ALL ' || kind || 'S IN SCHEMA ' || schema END, holder)
FROM granted GROUP BY kind, schema, holder";

/// The reasons why the role of this connection may not explore, each with the statement that
/// removes it; none if it may.
pub(super) async fn problems(
    client: &Client,
) -> Result<Vec<(String, String)>, tokio_postgres::Error> {
    let rows = client.query(PROBLEMS, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
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
