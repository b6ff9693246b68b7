//! Searches the texts of messages.

use rusqlite::{Transaction, params};
use toolcrib_core::{FoundMessage, SessionOwner, SessionSearch};

use super::{Failure, unsigned::UnsignedInt};
use crate::session::owner_key;

pub(super) fn found(
    transaction: &Transaction<'_>,
    owner: &SessionOwner,
    search: &SessionSearch,
) -> Result<Vec<FoundMessage>, Failure> {
    if search.words.is_empty() {
        return Ok(Vec::new());
    }
    // Quoted, a word is never an operator of the index.
    let quoted = search.words.iter().map(|word| format!("\"{}\"", word.replace('"', "\"\"")));
    let words: Vec<_> = quoted.collect();
    let limit = i64::try_from(search.limit).unwrap_or(i64::MAX);
    let sql = "SELECT texts.session, name, turn, turns.began_ms, role,
            snippet(texts_index, 0, '', '', '…', 48)
        FROM texts_index JOIN texts ON texts.id = texts_index.rowid
            JOIN sessions ON sessions.id = texts.session
            JOIN turns ON turns.session = texts.session AND number = turn
        WHERE texts_index MATCH ?1 AND owner = ?2
            AND (?3 IS NULL OR sessions.id <> ?3 AND name IS NOT ?3)
        ORDER BY rank, texts.id DESC LIMIT ?4";
    let mut statement = transaction.prepare_cached(sql)?;
    let values = params![words.join(" "), owner_key(owner), search.without, limit];
    let found = statement.query_map(values, |row| {
        Ok(FoundMessage {
            session: row.get(0)?,
            name: row.get(1)?,
            turn: row.get(2)?,
            at_ms: row.get::<_, UnsignedInt>(3)?.0,
            role: row.get(4)?,
            excerpt: row.get(5)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
