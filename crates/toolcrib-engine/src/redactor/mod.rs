//! Known secrets, taken out of everything that leaves a call.

mod forms;

use std::{
    borrow::Cow,
    fmt,
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
};

use aho_corasick::AhoCorasick;
use serde_json::Value;
use toolcrib_core::{Redact, RedactStream};

use self::forms::forms;
use crate::json::map_texts;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Shorter values of the environment are no secrets, and redacting them would garble ordinary text.
/// A line of a secret of several lines is taken for itself from this length on.
const SHORTEST_SECRET: usize = 8;

/// A shorter value stands in so many texts by chance that redacting it would tell what it is.
const SHORTEST_RESOLVED: usize = 4;

/// Replaces the secrets that this process knows by [`REDACTED`]. Cloning shares it: what one
/// [learns](Self::learn) all know.
///
/// A secret is known as it is, without white space around it, as the usual writers of JSON put it inside a
/// string, and, if it has several lines, line by line. Other encodings of it are not looked for.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Arc<Known>>>,
}

/// A secret that is too short to be redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has fewer than {SHORTEST_RESOLVED} characters, so it cannot be redacted; use a longer one"
)]
pub struct SecretTooShort;

/// The secrets at one time, and what finds all of them in one pass.
#[derive(Default)]
struct Known {
    patterns: Vec<String>,
    /// `None` where there is nothing to find, or more than it can hold.
    finder: Option<AhoCorasick>,
}

impl Redactor {
    /// One that knows these secrets. Values of fewer than 8 characters are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let long = |secret: &String| secret.trim().chars().count() >= SHORTEST_SECRET;
        let patterns = secrets.into_iter().filter(long).flat_map(|secret| forms(&secret));
        Self { known: Arc::new(RwLock::new(Arc::new(Known::of(patterns.collect())))) }
    }

    /// One that knows the secrets of the process's environment: the values of 8 characters or
    /// more whose names end in `_KEY`, `_TOKEN`, `_SECRET` or `_PASSWORD`.
    pub fn from_environment() -> Self {
        const SECRET_NAMES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place where the engine looks at the environment: to hide it"
        )]
        let variables = std::env::vars_os();
        Self::new(variables.filter_map(|(name, value)| {
            let name = name.to_string_lossy().to_uppercase();
            let secret = SECRET_NAMES.iter().any(|ending| name.ends_with(ending));
            secret.then(|| value.to_string_lossy().into_owned())
        }))
    }

    /// Adds a secret: it is redacted from here on, for as long as the redactor lives. Learning one
    /// that is known costs a lookup, learning a new one goes through all of them.
    ///
    /// # Errors
    /// [`SecretTooShort`] for one of fewer than 4 characters; nothing is added.
    pub fn learn(&self, secret: &str) -> Result<(), SecretTooShort> {
        if secret.trim().chars().count() < SHORTEST_RESOLVED {
            return Err(SecretTooShort);
        }
        let new = |known: &Known| {
            forms(secret).into_iter().filter(|form| !known.has(form)).collect::<Vec<_>>()
        };
        if new(&self.known()).is_empty() {
            return Ok(());
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut patterns = new(&known);
        patterns.extend(known.patterns.iter().cloned());
        *known = Arc::new(Known::of(patterns));
        Ok(())
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether there is nothing to redact.
    pub(crate) fn knows_nothing(&self) -> bool {
        self.extent() == 0
    }

    /// How many forms of secrets it knows; more of them once it has learned something, never fewer.
    pub(crate) fn extent(&self) -> usize {
        self.known().patterns.len()
    }

    /// Whether no secret that it knows has a character beyond ASCII.
    pub(crate) fn knows_only_ascii(&self) -> bool {
        self.known().patterns.iter().all(|pattern| pattern.is_ascii())
    }

    /// A text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let ranges = self.known().ranges(text);
        if ranges.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(without(text, &ranges)) }
    }

    /// An owned text without secrets.
    pub(crate) fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// Data without secrets, in keys and numbers too. Keys that would become one are numbered.
    pub fn json(&self, value: Value) -> Value {
        if self.knows_nothing() {
            return value;
        }
        let mut leaf = |leaf| match leaf {
            Value::String(text) => Value::String(self.owned(text)),
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(redacted) => Value::String(redacted),
            },
            other => other,
        };
        map_texts(value, &mut leaf, &mut |key| self.owned(key))
    }

    /// Begins a text that comes in pieces.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream { redactor: self.clone(), held: String::new() }
    }
}

impl Redact for Redactor {
    fn redact(&self, text: &str) -> String {
        self.text(text).into_owned()
    }

    fn redact_start(&self, start: &str) -> String {
        self.stream().push(start)
    }

    fn stream(self: Arc<Self>) -> Box<dyn RedactStream> {
        Box::new(Redactor::stream(&self))
    }
}

/// Redacts a text that comes in pieces: what could be the beginning of a secret is held back until
/// it is known whether it is one. All pieces together are what the whole text would have become.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: String,
}

impl RedactedStream {
    /// Takes a piece, and gives what can be shown by now; perhaps nothing.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let known = self.redactor.known();
        if known.patterns.is_empty() {
            return std::mem::take(&mut self.held);
        }
        let mut ranges = known.ranges(&self.held);
        let mut end = known.certain(&self.held);
        // A secret that may still grow into a longer one is held back as a whole.
        if let Some(range) = ranges.iter().find(|range| range.start < end && end < range.end) {
            end = range.start;
        }
        ranges.retain(|range| range.end <= end);
        let rest = self.held.split_off(end);
        without(&std::mem::replace(&mut self.held, rest), &ranges)
    }

    /// What is still held back, once there is no more to come.
    pub fn finish(self) -> String {
        self.redactor.owned(self.held)
    }
}

impl RedactStream for RedactedStream {
    fn push(&mut self, piece: &str) -> String {
        Self::push(self, piece)
    }

    fn finish(self: Box<Self>) -> String {
        Self::finish(*self)
    }
}

impl Known {
    fn of(mut patterns: Vec<String>) -> Self {
        patterns.sort_unstable();
        patterns.dedup();
        Self { finder: AhoCorasick::new(&patterns).ok(), patterns }
    }

    fn has(&self, pattern: &String) -> bool {
        self.patterns.binary_search(pattern).is_ok()
    }

    /// Where secrets stand, those that overlap as one, in order. What we wrote ourselves holds none.
    fn ranges(&self, text: &str) -> Vec<Range<usize>> {
        if self.patterns.is_empty() || text.is_empty() {
            return Vec::new();
        }
        let Some(finder) = &self.finder else {
            // What cannot be searched is not shown.
            return std::iter::once(0..text.len()).collect();
        };
        let mut found: Vec<Range<usize>> =
            finder.find_overlapping_iter(text).map(|found| found.range()).collect();
        if found.is_empty() {
            return found;
        }
        let ours: Vec<_> =
            text.match_indices(REDACTED).map(|(at, ours)| at..at + ours.len()).collect();
        found.retain(|range| {
            !ours.iter().any(|ours| ours.start <= range.start && range.end <= ours.end)
        });
        found.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// Up to where it is certain what a text holds: behind it may be the beginning of a secret, or of
    /// what we write in place of one.
    fn certain(&self, text: &str) -> usize {
        let patterns = self.patterns.iter().map(String::as_str).chain([REDACTED]);
        text.len() - patterns.map(|pattern| begun(text, pattern)).max().unwrap_or(0)
    }
}

fn without(text: &str, secrets: &[Range<usize>]) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = 0;
    for secret in secrets {
        clean.push_str(text.get(rest..secret.start).unwrap_or_default());
        clean.push_str(REDACTED);
        rest = secret.end;
    }
    clean.push_str(text.get(rest..).unwrap_or_default());
    clean
}

/// How many bytes at the end of a text are the beginning of a pattern, and not all of it.
fn begun(text: &str, pattern: &str) -> usize {
    let longest = text.len().min(pattern.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .find(|length| pattern.get(..*length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or(0)
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the patterns themselves.
        f.debug_struct("Redactor").field("patterns", &self.known().patterns.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_go_from_text_data_keys_and_numbers() {
        let redactor =
            Redactor::new(["s3cr3t-\"quoted\"".into(), "12345678".into(), "short".into()]);
        assert_eq!(redactor.text("a s3cr3t-\"quoted\" b short"), "a [redacted] b short");
        assert_eq!(redactor.text(r#"{"k":"s3cr3t-\"quoted\""}"#), r#"{"k":"[redacted]"}"#);
        assert_eq!(
            redactor.json(json!({"12345678": [12345678, "x12345678"], "n": 5, "[redacted]": 1})),
            json!({"[redacted]": ["[redacted]", "x[redacted]"], "n": 5, "[redacted] 2": 1}),
        );
    }

    #[test]
    fn a_secret_that_is_learned_is_known_to_all_clones() {
        let redactor = Redactor::default();
        let clone = redactor.clone();
        assert_eq!(redactor.learn("abc\n"), Err(SecretTooShort));
        redactor.learn("päss\n").unwrap();
        redactor.learn("päss").unwrap();
        assert_eq!(clone.text("a päss b abc"), "a [redacted] b abc");
    }

    #[test]
    fn a_secret_of_several_lines_is_one_line_by_line_too() {
        let redactor = Redactor::new(["-----BEGIN\nline-one-of-it\nx\nline-two-of-it\n".into()]);
        assert_eq!(redactor.text("> line-two-of-it <"), "> [redacted] <");
        assert_eq!(redactor.text("x"), "x");
    }

    #[test]
    fn what_overlaps_goes_as_a_whole_and_what_we_wrote_stays() {
        let redactor = Redactor::new(["abcdefgh".into(), "efghijkl".into()]);
        assert_eq!(redactor.text("abcdefghijkl"), "[redacted]");
        redactor.learn("acte").unwrap();
        let once = redactor.text("acte [redacted]").into_owned();
        assert_eq!(once, "[redacted] [redacted]");
        assert_eq!(redactor.text(&once), once);
    }

    #[test]
    fn what_is_learned_in_the_midst_of_a_text_is_redacted_in_its_end() {
        let redactor = Redactor::new(["abcdefghi".into()]);
        let mut stream = redactor.stream();
        assert_eq!(stream.push("xx abcdefgh"), "xx ");
        redactor.learn("cdef").unwrap();
        assert_eq!(stream.finish(), "ab[redacted]gh");
        // Without secrets nothing is held back.
        assert_eq!(Redactor::default().stream().push("p"), "p");
    }

    #[test]
    fn the_beginning_of_a_secret_at_a_cut_is_not_shown() {
        let redactor = Redactor::new(["hunter22hunter22".into()]);
        assert_eq!(
            redactor.redact_start("it is hunter22hunter22, hunter22hu"),
            "it is [redacted], "
        );
    }

    /// Texts and secrets of few letters, so that secrets contain, begin and overlap each other.
    fn letters(shortest: usize, longest: usize) -> impl Strategy<Value = String> {
        proptest::collection::vec(prop_oneof!["a", "b", "ä", "\"", "[redacted]"], shortest..longest)
            .prop_map(|letters| letters.concat())
    }

    proptest! {
        #[test]
        fn in_pieces_as_in_one(
            secrets in proptest::collection::vec(letters(4, 8), 1..4),
            pieces in proptest::collection::vec(letters(0, 6), 0..12),
        ) {
            let redactor = Redactor::default();
            for secret in &secrets {
                redactor.learn(secret).unwrap();
            }
            let whole = redactor.text(&pieces.concat()).into_owned();
            let mut stream = redactor.stream();
            let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
            shown += &stream.finish();
            prop_assert_eq!(&shown, &whole);
            // No secret is left, but for what our own word and what stands beside it make.
            let left = whole.replace(REDACTED, "\u{0}");
            for secret in secrets.iter().filter(|secret| !secret.contains(REDACTED)) {
                prop_assert!(!left.contains(secret.as_str()), "{secret} in {whole}");
            }
        }
    }
}
