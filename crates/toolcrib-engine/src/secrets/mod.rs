//! Redacts known secrets in everything that leaves a call.

mod escapes;
mod forms;
mod known;
mod search;
mod storable;
mod walk;

use std::{
    borrow::{Borrow, Cow},
    ops::Range,
    sync::Arc,
};

use parking_lot::RwLock;
use serde_json::Value;
use toolcrib_core::{__internal::without_invisible, Catalog, Redact, RedactStream};

use self::{
    known::{KnownSecret, KnownSecrets},
    search::ScanResult,
};
use crate::json::map_texts;

/// The replacement of a secret.
pub const REDACTED: &str = "[redacted]";

/// Shorter values of the environment do not count as secrets: redacting them would garble ordinary
/// text. A line of a multi-line secret is also redacted separately from this length on.
const SHORTEST_SECRET: usize = 8;

/// A shorter value is in so many texts by chance that redacting it would reveal it.
const SHORTEST_RESOLVED: usize = 4;

/// Replaces the secrets that this process knows by [`REDACTED`]. Cloning shares the secrets, also
/// those [learned](Self::learn) later.
///
/// A secret is found unchanged, without surrounding whitespace, in JSON escapes, and, if it has
/// several lines, line by line. One of 8 characters or more is also found
/// - percent-encoded, wholly or in part, with `+` for a space;
/// - in escapes such as `\u002f`, `\x2f` and `\/`, in HTML entities (by number, or by the name of a sign
///   of ASCII), and quoted-printable;
/// - in hexadecimal digits of either case, without separators or with `:`, `-` or a space between bytes;
/// - in base64 of both alphabets, also within a longer text that was encoded;
/// - each of these escaped up to two times more, and broken over lines.
///
/// For base64 within a longer text, the character before it may keep up to four bits of the first
/// byte. Other encodings, and parts of a secret, are not searched for.
///
/// The work of one search is limited. If a text has so many escapes or beginnings of secrets that
/// it needs more, the rest of the text is replaced.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Arc<KnownSecrets>>>,
}

/// A secret that is too short to be redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has fewer than {SHORTEST_RESOLVED} characters, so it cannot be redacted; use a longer one"
)]
pub struct SecretTooShortError;

impl Redactor {
    /// A redactor with these secrets. Values of fewer than 8 characters are ignored.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self::of(secrets.into_iter().map(|secret| (None, secret)))
    }

    /// A redactor with the secrets of the process's environment: the values of 8 characters or more
    /// whose names end in `_KEY`, `_TOKEN`, `_SECRET` or `_PASSWORD`.
    pub fn from_environment() -> Self {
        const SECRET_NAMES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];
        #[expect(
            clippy::disallowed_methods,
            reason = "the only place where the engine reads the environment: to redact it"
        )]
        let variables = std::env::vars_os();
        Self::of(variables.filter_map(|(name, value)| {
            let name = name.to_string_lossy();
            let upper = name.to_uppercase();
            let is_secret = SECRET_NAMES.iter().any(|ending| upper.ends_with(ending));
            let label = || format!("${name}").into();
            is_secret.then(|| (Some(label()), value.to_string_lossy().into_owned()))
        }))
    }

    fn of(secrets: impl Iterator<Item = (Option<Arc<str>>, String)>) -> Self {
        let is_long = |secret: &str| secret.trim().chars().count() >= SHORTEST_SECRET;
        let mut known = Vec::new();
        for (name, secret) in secrets.filter(|(_, secret)| is_long(secret)) {
            add(&mut known, name, &secret);
        }
        Self { known: Arc::new(RwLock::new(Arc::new(KnownSecrets::of(known)))) }
    }

    /// Adds a secret: it is redacted from now on, for the lifetime of the redactor. Adding a known
    /// one costs a lookup, a new one takes time linear in their number.
    ///
    /// # Errors
    /// [`SecretTooShortError`] for fewer than 4 characters; nothing is added.
    pub fn learn(&self, secret: &str) -> Result<(), SecretTooShortError> {
        self.learn_as(None, secret)
    }

    /// Like [`learn`](Self::learn), for a secret that tools
    /// [declare](toolcrib_core::Capabilities::secrets) by this name: calls may pass it to them.
    ///
    /// # Errors
    /// Those of [`learn`](Self::learn).
    pub fn learn_named(&self, name: &str, secret: &str) -> Result<(), SecretTooShortError> {
        self.learn_as(Some(name), secret)
    }

    fn learn_as(&self, name: Option<&str>, secret: &str) -> Result<(), SecretTooShortError> {
        if secret.trim().chars().count() < SHORTEST_RESOLVED {
            return Err(SecretTooShortError);
        }
        let is_known = |known: &KnownSecrets| {
            known.secrets().iter().any(|known| {
                *known.value == *secret.trim()
                    && name.is_none_or(|name| known.names.iter().any(|known| **known == *name))
            })
        };
        if is_known(&self.known()) {
            return Ok(());
        }
        let mut known = self.known.write();
        if !is_known(&known) {
            let mut secrets = known.secrets().to_vec();
            add(&mut secrets, name.map(Arc::from), secret);
            *known = Arc::new(KnownSecrets::of(secrets));
        }
        Ok(())
    }

    fn known(&self) -> Arc<KnownSecrets> {
        Arc::clone(&self.known.read())
    }

    /// Whether there is nothing to redact.
    pub(crate) fn knows_nothing(&self) -> bool {
        self.extent() == 0
    }

    /// The number of known secrets; it never decreases.
    pub(crate) fn extent(&self) -> usize {
        self.known().secrets().len()
    }

    /// Whether all known secrets are ASCII.
    pub(crate) fn knows_only_ascii(&self) -> bool {
        self.known().secrets().iter().all(|known| known.value.is_ascii())
    }

    /// The names of each secret of 8 characters or more that data contains, in values, keys or
    /// numbers; empty for an unnamed one.
    pub(crate) fn names_in(&self, data: &Value) -> Vec<Vec<Arc<str>>> {
        let known = self.known();
        if known.secrets().is_empty() {
            return Vec::new();
        }
        let found = known.find(&data.to_string());
        let mut held = found.places;
        held.sort_unstable_by_key(|(_, secret)| *secret);
        held.dedup_by_key(|(_, secret)| *secret);
        let held = held.into_iter().filter_map(|(_, secret)| known.secrets().get(secret));
        let is_long = |held: &&KnownSecret| held.value.chars().count() >= SHORTEST_SECRET;
        let named = held.filter(is_long).map(|held| held.names.clone());
        // A part that was not searched may contain any of them.
        named.chain(found.unsearched_from.map(|_| Vec::new())).collect()
    }

    /// Redacts the secrets in a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let ranges = self.places(text);
        if ranges.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(without(text, &ranges)) }
    }

    /// The places of secrets in a text, in order.
    pub(crate) fn places(&self, text: &str) -> Vec<Range<usize>> {
        self.known().find(text).ranges(text.len())
    }

    /// Redacts an owned text.
    pub(crate) fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// Redacts data, also in keys and numbers. Keys that become equal are numbered.
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

    /// Redacts the definitions of a list. In free texts, secrets are replaced; a tool is withheld if
    /// calls depend on the part with the secret: its name, a value of `enum`, `const` or `default`.
    /// A list is searched once for each set of known secrets.
    pub fn catalog(&self, catalog: Catalog) -> Catalog {
        catalog.redacted(self, self.version())
    }

    /// A number that differs from any earlier one of the process once another secret is known; 0
    /// while none is.
    pub fn version(&self) -> u64 {
        self.known().version
    }

    /// Redacts the description of something, such as a prompt or a resource: as [`json`](Self::json),
    /// and also where invisible characters split a secret, which are left out then.
    pub fn description(&self, value: Value) -> Value {
        self.in_descriptions(value, |_, _| REDACTED.to_owned())
    }

    /// A description in which each secret is replaced by its name, if it has one: with other values of
    /// the secrets it is the same. For the comparison of definitions, never for a model.
    pub fn referenced(&self, value: Value) -> Value {
        let known = self.known();
        self.in_descriptions(value, |part, found| known.reference(part, &found.places))
    }

    fn in_descriptions(
        &self,
        value: Value,
        with: impl Fn(&Range<usize>, &ScanResult) -> String,
    ) -> Value {
        let known = self.known();
        if known.secrets().is_empty() {
            return value;
        }
        let text = |text: &str| in_description(&known, text, &with);
        let mut leaf = |leaf| match leaf {
            Value::String(own) => Value::String(text(&own)),
            Value::Number(number) => {
                let digits = number.to_string();
                match text(&digits) {
                    same if same == digits => Value::Number(number),
                    replaced => Value::String(replaced),
                }
            }
            other => other,
        };
        map_texts(value, &mut leaf, &mut |key| text(&key))
    }

    /// Begins to redact a stream of text.
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

/// Redacts a text that arrives in pieces: a possible beginning of a secret is buffered until it is
/// known whether it is one. The concatenated output equals the redacted whole text.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    held: String,
}

impl RedactedStream {
    /// Adds a piece, and returns the text that can be shown now; possibly empty.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let known = self.redactor.known();
        if known.secrets().is_empty() {
            return std::mem::take(&mut self.held);
        }
        let found = known.find(&self.held);
        let mut ranges = found.ranges(self.held.len());
        // Toolcrib's marker is not searched, so its beginning is buffered too.
        let mut end = self.held.len() - begun(&self.held, REDACTED);
        end = end.min(found.open_from.unwrap_or(end));
        // A secret that may still become a longer one is buffered as a whole.
        if let Some(range) = ranges.iter().find(|range| range.start < end && end < range.end) {
            end = range.start;
        }
        ranges.retain(|range| range.end <= end);
        let rest = self.held.split_off(end);
        without(&std::mem::replace(&mut self.held, rest), &ranges)
    }

    /// The buffered rest, at the end of the stream.
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

/// Adds a secret, or another name of a known one.
fn add(secrets: &mut Vec<KnownSecret>, name: Option<Arc<str>>, secret: &str) {
    let value = secret.trim();
    match secrets.iter_mut().find(|known| *known.value == *value) {
        Some(known) => known.names.extend(name),
        None => secrets.push(KnownSecret { value: value.into(), names: Vec::from_iter(name) }),
    }
}

/// A text in which each secret is replaced, also where invisible characters split it.
fn in_description(
    known: &KnownSecrets,
    text: &str,
    with: &impl Fn(&Range<usize>, &ScanResult) -> String,
) -> String {
    let replaced = |text: &str| {
        let found = known.find(text);
        let mut parts = found.ranges(text.len());
        for part in &mut parts {
            // The padding of base64 depends on the length of the secret.
            let rest = text.get(part.end..).unwrap_or_default();
            part.end += rest.bytes().take(2).take_while(|byte| *byte == b'=').count();
        }
        replace(text, parts.iter().map(|part| (part, with(part, &found))))
    };
    let text = replaced(text);
    match without_invisible(&text).text {
        Cow::Borrowed(_) => text,
        Cow::Owned(visible) => {
            let clean = replaced(&visible);
            if clean == visible { text } else { clean }
        }
    }
}

/// A text in which parts are replaced.
fn replace<T: AsRef<str>>(
    text: &str,
    parts: impl Iterator<Item = (impl Borrow<Range<usize>>, T)>,
) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = 0;
    for (part, with) in parts {
        let part = part.borrow();
        clean.push_str(text.get(rest..part.start).unwrap_or_default());
        clean.push_str(with.as_ref());
        rest = part.end;
    }
    clean.push_str(text.get(rest..).unwrap_or_default());
    clean
}

/// A text in which each secret, by its place, is replaced.
pub(crate) fn without(text: &str, secrets: &[Range<usize>]) -> String {
    replace(text, secrets.iter().map(|secret| (secret, REDACTED)))
}

/// Length in bytes of the longest incomplete beginning of a pattern at the end of a text.
fn begun(text: &str, pattern: &str) -> usize {
    let longest = text.len().min(pattern.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .find(|length| pattern.get(..*length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or(0)
}

// Never the secrets themselves.
toolcrib_core::__internal::debug_fields!(Redactor, redactor, secrets = redactor.extent());

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
        assert_eq!(redactor.learn("abc\n"), Err(SecretTooShortError));
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
        // Without secrets nothing is buffered.
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
            // No secret is left, except those formed by the marker and its surroundings.
            let left = whole.replace(REDACTED, "\u{0}");
            for secret in secrets.iter().filter(|secret| !secret.contains(REDACTED)) {
                prop_assert!(!left.contains(secret.as_str()), "{secret} in {whole}");
            }
        }
    }
}
