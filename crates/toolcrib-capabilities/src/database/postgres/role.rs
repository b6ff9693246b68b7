//! The role that may explore: it can read tables and nothing else.

use tokio_postgres::Client;

/// The rights of a connection's role that exceed reading, including those of the roles that it can
/// become, and the statement that removes each. Rights that each database has from its creation are left
/// out: `pg_settings` is writable for all. A right is removed as the role that granted it.
const PROBLEMS: &str = "
WITH role AS (
    SELECT * FROM pg_catalog.pg_roles
    WHERE pg_catalog.pg_has_role(session_user, oid, 'MEMBER')
      AND (rolname = session_user
        OR NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = session_user))
), holder AS (
    SELECT oid, pg_catalog.quote_ident(rolname) AS name FROM role UNION ALL SELECT 0, 'PUBLIC'
), schema AS (
    SELECT *, nspname IN ('pg_catalog', 'information_schema', 'pg_toast') AS is_of_system
    FROM pg_catalog.pg_namespace
    WHERE nspname NOT LIKE 'pg\\_temp\\_%' AND nspname NOT LIKE 'pg\\_toast\\_temp\\_%'
), relation AS (
    SELECT c.*, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, pg_catalog.quote_ident(n.nspname) AS schema,
           CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, n.is_of_system
    FROM pg_catalog.pg_class c JOIN schema n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
), acl AS (
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass AS class, oid, 0 AS part, relowner AS owner, is_of_system, relacl AS acl
    FROM relation
    UNION ALL
    SELECT 'pg_catalog.pg_class'::pg_catalog.regclass, r.oid, c.attnum, r.relowner, r.is_of_system, c.attacl
    FROM relation r JOIN pg_catalog.pg_attribute c ON c.attrelid = r.oid
    UNION ALL
    SELECT 'pg_catalog.pg_namespace'::pg_catalog.regclass, oid, 0, nspowner, is_of_system, nspacl FROM schema
    UNION ALL
    SELECT 'pg_catalog.pg_database'::pg_catalog.regclass, oid, 0, datdba, false, datacl FROM pg_catalog.pg_database
    WHERE datname = pg_catalog.current_database()
), granted AS (
    SELECT o.class, o.oid, o.part, o.is_of_system, h.name AS holder, a.privilege_type AS privilege,
           CASE a.grantor WHEN o.owner THEN 'REVOKE'
                ELSE pg_catalog.format('SET ROLE %I; REVOKE', pg_catalog.pg_get_userbyid(a.grantor)) END AS revoke,
           CASE a.grantor WHEN o.owner THEN '' ELSE ' RESET ROLE;' END AS reset
    FROM acl o, pg_catalog.aclexplode(o.acl) a JOIN holder h ON h.oid = a.grantee
    WHERE o.owner NOT IN (SELECT oid FROM role) AND NOT (o.is_of_system AND EXISTS (
        SELECT FROM pg_catalog.pg_init_privs p, pg_catalog.aclexplode(p.initprivs) i
        WHERE p.classoid = o.class AND p.objoid = o.oid AND p.objsubid = o.part
          AND i.grantee = a.grantee AND i.privilege_type = a.privilege_type))
), right_to_write AS (
    SELECT DISTINCT r.kind, r.schema, r.name, g.holder, g.privilege, g.revoke, g.reset, r.is_of_system
    FROM granted g JOIN relation r ON g.class = 'pg_catalog.pg_class'::pg_catalog.regclass AND r.oid = g.oid
    WHERE g.privilege IN
      ('UPDATE', CASE r.kind WHEN 'SEQUENCE' THEN 'USAGE' ELSE 'INSERT' END, 'DELETE', 'TRUNCATE')
), removal AS (
    SELECT kind, holder, revoke, reset, pg_catalog.min(name) AS name, pg_catalog.count(DISTINCT name) AS tables,
           pg_catalog.string_agg(DISTINCT privilege, ', ') AS privileges,
           -- Those of a grantor, and of all roles in a schema of the system, are not in the whole schema.
           CASE WHEN pg_catalog.count(DISTINCT name) > 1 AND reset = '' AND NOT (is_of_system AND holder = 'PUBLIC')
                THEN 'ALL ' || kind || 'S IN SCHEMA ' || schema
                ELSE kind || ' ' || pg_catalog.string_agg(DISTINCT name, ', ') END AS target
    FROM right_to_write GROUP BY kind, schema, holder, revoke, reset, is_of_system
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
SELECT 'may create schemas', pg_catalog.format('%s CREATE ON DATABASE %I FROM %s;%s', revoke, pg_catalog.current_database(), holder, reset)
FROM granted WHERE class = 'pg_catalog.pg_database'::pg_catalog.regclass AND privilege = 'CREATE'
UNION ALL
SELECT 'owns the schema ' || n.nspname, pg_catalog.format('ALTER SCHEMA %I OWNER TO CURRENT_USER;', n.nspname)
FROM schema n JOIN role r ON r.oid = n.nspowner
WHERE NOT r.rolsuper AND r.rolname <> 'pg_database_owner'
UNION ALL
SELECT 'may create objects in the schema ' || n.nspname,
       pg_catalog.format('%s CREATE ON SCHEMA %I FROM %s;%s', revoke, n.nspname, holder, reset)
FROM granted g JOIN schema n ON g.class = 'pg_catalog.pg_namespace'::pg_catalog.regclass AND n.oid = g.oid
WHERE privilege = 'CREATE'
UNION ALL
SELECT pg_catalog.format('owns the %s %s', pg_catalog.lower(r.kind), r.name),
       pg_catalog.format('ALTER TABLE %s OWNER TO CURRENT_USER;', r.name)
FROM relation r JOIN role o ON o.oid = r.relowner
WHERE NOT o.rolsuper AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d WHERE d.objid = r.oid
    AND d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.deptype IN ('a', 'i')
    AND d.refobjsubid > 0)
UNION ALL
SELECT CASE kind WHEN 'TABLE' THEN 'may write the table ' ELSE 'may use the sequence ' END
         || name || CASE tables WHEN 1 THEN '' ELSE ' and others' END,
       pg_catalog.format('%s %s ON %s FROM %s;%s', revoke, privileges, target, holder, reset)
FROM removal";

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
