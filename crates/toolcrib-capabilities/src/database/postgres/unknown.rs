//! Names that a statement uses and the server does not have, with the nearest that it has.

use tokio_postgres::{
    Client,
    error::{DbError, ErrorPosition, SqlState},
};

use crate::database::unknown::{KnownName, did_you_mean};

/// The tables that the role may read, as it must write their names.
const TABLES: &str = "
SELECT c.relname::text,
       CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN '' ELSE pg_catalog.quote_ident(n.nspname) || '.' END
         || pg_catalog.quote_ident(c.relname)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema'
  AND n.nspname NOT LIKE 'pg\\_%' AND pg_catalog.has_schema_privilege(n.oid, 'USAGE')
  AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1, 2 LIMIT 10000";

/// The columns of the tables that the statement names.
const COLUMNS: &str = "
SELECT DISTINCT a.attname::text, pg_catalog.quote_ident(a.attname)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
  AND pg_catalog.strpos(pg_catalog.lower($1), pg_catalog.lower(c.relname)) > 0
  AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT')
ORDER BY 1, 2 LIMIT 10000";

/// The server's message about a statement. It also names the nearest table or column if one is
/// unknown, or has the server's hint. The connection must be in no failed transaction.
pub(super) async fn message(client: &Client, error: &DbError, sql: &str) -> String {
    let near = match unknown(error, sql) {
        Some((name, known)) => {
            let of_statement = [&sql as &(dyn tokio_postgres::types::ToSql + Sync)];
            let parameters: &[_] = if known == COLUMNS { &of_statement } else { &[] };
            let rows = client.query(known, parameters).await.unwrap_or_default();
            let known = rows.iter().filter_map(|row| {
                Some(KnownName { name: row.try_get(0).ok()?, written: row.try_get(1).ok()? })
            });
            did_you_mean(&name, &known.collect::<Vec<_>>())
        }
        None => None,
    };
    match near.as_deref().or(error.hint()) {
        Some(more) => format!("{}; {more}", error.message()),
        None => error.message().to_owned(),
    }
}

/// The unknown name, which is at the position of the error, and the query for those that exist.
fn unknown(error: &DbError, sql: &str) -> Option<(String, &'static str)> {
    let known = match error.code() {
        code if *code == SqlState::UNDEFINED_TABLE => TABLES,
        code if *code == SqlState::UNDEFINED_COLUMN => COLUMNS,
        _ => return None,
    };
    let Some(ErrorPosition::Original(character)) = error.position() else { return None };
    let skipped = usize::try_from(*character).ok()?.checked_sub(1)?;
    let (at, _) = sql.char_indices().nth(skipped)?;
    last_part(sql.get(at..)?).map(|name| (name, known))
}

/// The last part of the name at the start, which may have quotes and points.
fn last_part(text: &str) -> Option<String> {
    let mut rest = text;
    loop {
        let (part, after) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted.split_once('"')?
        } else {
            let is_other = |c: char| !(c.is_alphanumeric() || c == '_' || c == '$');
            rest.split_at_checked(rest.find(is_other).unwrap_or(rest.len()))?
        };
        match after.trim_start().strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None => return (!part.is_empty()).then(|| part.to_owned()),
        }
    }
}
