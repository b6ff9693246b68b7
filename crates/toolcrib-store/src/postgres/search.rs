//! Searches the texts of messages: whole words, without regard to case and diacritics.

use std::{collections::BTreeSet, sync::Arc};

use icu_normalizer::DecomposingNormalizerBorrowed;
use toolcrib_core::{FoundMessage, Message, SessionOwner, SessionSearch, SessionStoreError};

use super::{PostgresStore, params, record::thaw_message, unsigned};
use crate::session::owner_key;

/// The characters of a text that are searched.
const MOST_CHARS: usize = 20_000;

/// The messages that are compared, the last ones first.
const MOST_COMPARED: i64 = 500;

/// The words of an excerpt, and how many of them come before the found one.
const EXCERPT: usize = 48;
const BEFORE: usize = 12;

/// A word in the form in which words are compared.
fn folded(word: &str) -> String {
    let decomposed = DecomposingNormalizerBorrowed::new_nfd().normalize(word);
    decomposed.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn words_in(text: &str) -> impl Iterator<Item = &str> {
    let is_mark = |char: char| ('\u{300}'..='\u{36f}').contains(&char);
    let end = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(end, _)| end);
    let text = text.get(..end).unwrap_or(text);
    let words = text.split(move |char: char| !char.is_alphanumeric() && !is_mark(char));
    words.filter(|word| !word.is_empty())
}

/// The words of a text, each once, for the index; `None` without any.
pub(super) fn words_of(text: &str) -> Option<String> {
    let words: BTreeSet<_> = words_in(text).map(folded).filter(|word| !word.is_empty()).collect();
    let words: Vec<_> = words.into_iter().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

impl PostgresStore {
    pub(super) fn found(
        &self,
        owner: &SessionOwner,
        search: &SessionSearch,
    ) -> Result<Vec<FoundMessage>, SessionStoreError> {
        let wanted: BTreeSet<_> = search.words.iter().map(|word| folded_query(word)).collect();
        if wanted.is_empty() || wanted.contains(&None) {
            return Ok(Vec::new());
        }
        let wanted: Vec<String> = wanted.into_iter().flatten().collect();
        let matches = "SELECT session, name, turn, body, records.at_ms,
                (SELECT at_ms FROM toolcrib.records AS began
                    WHERE began.session = id AND began.turn = records.turn AND kind = 1)
            FROM toolcrib.records JOIN toolcrib.sessions ON id = session
            WHERE words @> $1 AND owner = $2
                AND ($3::text IS NULL OR id <> $3 AND name IS DISTINCT FROM $3)
            ORDER BY records.at_ms DESC, position DESC LIMIT $4";
        let without = search.without.as_deref().map(str::to_owned);
        let values = params![wanted.clone(), owner_key(owner), without, MOST_COMPARED];
        let mut found = Vec::new();
        for row in self.read(matches, values)? {
            let message = thaw_message(row.get(3)).map_err(|error| self.database.frozen(&error))?;
            let (role, text) = match &message {
                Some(Message::User { text, .. }) => ("user", text),
                Some(Message::Assistant { text, .. }) => ("assistant", text),
                _ => continue,
            };
            let words: Vec<_> = words_in(text).collect();
            let is_wanted = |word: &&str| wanted.contains(&folded(word));
            let times = words.iter().filter(|word| is_wanted(word)).count();
            let name: Option<String> = row.get(1);
            let one = FoundMessage {
                session: row.get::<_, &str>(0).into(),
                name: name.map(Arc::from),
                turn: u32::try_from(row.get::<_, i32>(2)).unwrap_or_default(),
                at_ms: unsigned(&row, 5),
                role: role.into(),
                excerpt: excerpt(text, &words, is_wanted).into(),
            };
            // The share of the found words, in millionths.
            found.push((times.saturating_mul(1_000_000) / words.len().max(1), one));
        }
        // Stable: of equal ones, the last comes first.
        found.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
        Ok(found.into_iter().map(|(_, one)| one).take(search.limit).collect())
    }
}

/// A word of a query; `None` for a text that is not one word, which no message has.
fn folded_query(word: &str) -> Option<String> {
    let mut words = words_in(word);
    let first = words.next().map(folded)?;
    words.next().is_none().then_some(first)
}

/// The part of a text around the first found word.
fn excerpt<'a>(text: &'a str, words: &[&'a str], is_wanted: impl Fn(&&str) -> bool) -> String {
    let at = words.iter().position(is_wanted).unwrap_or_default();
    let from = at.saturating_sub(BEFORE);
    let place = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    let start = match from {
        0 => 0,
        from => words.get(from).map_or(0, |word| place(word)),
    };
    let end = words.get(from + EXCERPT).map_or(text.len(), |word| place(word));
    let part = text.get(start..end).unwrap_or_default().trim_end();
    let (before, after) =
        (if start > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{part}{after}")
}
