//! Known secrets, taken out of everything that leaves a call.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use serde_json::Value;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Shorter values of the environment are no secrets, and redacting them would garble ordinary text.
const SHORTEST_SECRET: usize = 8;

/// A shorter value stands in so many texts by chance that redacting it would tell what it is.
const SHORTEST_RESOLVED: usize = 4;

const SECRET_NAMES: [&str; 4] = ["_KEY", "_TOKEN", "_SECRET", "_PASSWORD"];

/// Replaces the secrets that this process knows by [`REDACTED`]. Cloning shares it: what one
/// [learns](Self::learn) all know.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that contains another goes as a whole.
    patterns: Arc<RwLock<Arc<[String]>>>,
}

/// A secret that is too short to be redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has fewer than {SHORTEST_RESOLVED} characters, so it cannot be redacted; use a longer one"
)]
pub struct SecretTooShort;

impl Redactor {
    /// One that knows these secrets. Values of fewer than 8 characters are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets =
            secrets.into_iter().filter(|secret| secret.chars().count() >= SHORTEST_SECRET);
        let patterns = in_order(secrets.flat_map(forms).collect());
        Self { patterns: Arc::new(RwLock::new(patterns)) }
    }

    /// Adds a secret, however short or long it has been until now: it is redacted from here on.
    ///
    /// # Errors
    /// [`SecretTooShort`] for one of fewer than 4 characters; nothing is added.
    pub fn learn(&self, secret: &str) -> Result<(), SecretTooShort> {
        if secret.chars().count() < SHORTEST_RESOLVED {
            return Err(SecretTooShort);
        }
        if self.known().iter().any(|known| known == secret) {
            return Ok(());
        }
        let mut patterns = self.patterns.write().unwrap_or_else(PoisonError::into_inner);
        *patterns = in_order(patterns.iter().cloned().chain(forms(secret.to_owned())).collect());
        Ok(())
    }

    fn known(&self) -> Arc<[String]> {
        Arc::clone(&self.patterns.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// One that knows the secrets of the process's environment: the values of 8 characters or
    /// more whose names end in `_KEY`, `_TOKEN`, `_SECRET` or `_PASSWORD`.
    pub fn from_environment() -> Self {
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

    /// A text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for pattern in self.known().iter() {
            if clean.contains(pattern.as_str()) {
                clean = Cow::Owned(clean.replace(pattern.as_str(), REDACTED));
            }
        }
        clean
    }

    /// An owned text without secrets.
    pub(crate) fn owned(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// Data without secrets, in keys and numbers too.
    pub fn json(&self, value: Value) -> Value {
        if self.known().is_empty() {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.owned(text)),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, value)| (self.owned(key), self.json(value))).collect()
            }
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(redacted) => Value::String(redacted),
            },
            other => other,
        }
    }
}

/// Redacts a text that comes in pieces: what could be the beginning of a secret is held back until
/// it is known whether it is one.
#[derive(Debug)]
pub struct RedactedStream<'a> {
    redactor: &'a Redactor,
    held: String,
}

impl Redactor {
    /// Begins a text that comes in pieces.
    pub fn stream(&self) -> RedactedStream<'_> {
        RedactedStream { redactor: self, held: String::new() }
    }
}

impl RedactedStream<'_> {
    /// Takes a piece, and gives what can be shown by now; perhaps nothing.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let mut shown = self.redactor.owned(std::mem::take(&mut self.held));
        let known = self.redactor.known();
        let begun = known.iter().map(|secret| begun(&shown, secret)).max();
        self.held = shown.split_off(shown.len() - begun.unwrap_or(0));
        shown
    }

    /// What is still held back, once there is no more to come.
    pub fn finish(self) -> String {
        self.held
    }
}

/// A secret as it stands in text, and as it stands inside JSON where that differs.
fn forms(secret: String) -> impl Iterator<Item = String> {
    let json = Value::from(secret.as_str()).to_string();
    let escaped = json.get(1..json.len() - 1).unwrap_or_default();
    let escaped = (escaped != secret).then(|| escaped.to_owned());
    escaped.into_iter().chain([secret])
}

fn in_order(mut patterns: Vec<String>) -> Arc<[String]> {
    patterns.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    patterns.dedup();
    patterns.into()
}

/// How many bytes at the end of a text are the beginning of a secret.
fn begun(text: &str, secret: &str) -> usize {
    let whole = |length: &usize| secret.is_char_boundary(*length);
    let longest = text.len().min(secret.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .filter(whole)
        .find(|length| secret.get(..*length).is_some_and(|start| text.ends_with(start)))
        .unwrap_or(0)
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Never the patterns themselves.
        f.debug_struct("Redactor").field("patterns", &self.known().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_go_from_text_data_keys_and_numbers() {
        let redactor =
            Redactor::new(["s3cr3t-\"quoted\"".into(), "12345678".into(), "short".into()]);
        assert_eq!(redactor.text("a s3cr3t-\"quoted\" b short"), "a [redacted] b short");
        assert_eq!(redactor.text(r#"{"k":"s3cr3t-\"quoted\""}"#), r#"{"k":"[redacted]"}"#);
        assert_eq!(
            redactor.json(json!({"12345678": [12345678, "x12345678"], "n": 5})),
            json!({"[redacted]": ["[redacted]", "x[redacted]"], "n": 5}),
        );
    }

    #[test]
    fn a_secret_that_is_learned_is_known_to_all_clones() {
        let redactor = Redactor::default();
        let clone = redactor.clone();
        assert_eq!(redactor.learn("abc"), Err(SecretTooShort));
        redactor.learn("päss").unwrap();
        redactor.learn("päss").unwrap();
        assert_eq!(clone.text("a päss b abc"), "a [redacted] b abc");
    }

    #[test]
    fn a_secret_in_pieces_is_still_one() {
        let redactor = Redactor::new(["päss-wörd".into(), "word-of-honour".into()]);
        for text in ["a päss-wörd b", "päss-wörword-of-honour", "wordy päss-w", "plain"] {
            let whole = redactor.text(text).into_owned();
            let mut stream = redactor.stream();
            let mut shown: String = text.chars().map(|c| stream.push(&c.to_string())).collect();
            shown += &stream.finish();
            assert_eq!(shown, whole);
        }
        // Without secrets nothing is held back.
        assert_eq!(Redactor::default().stream().push("p"), "p");
    }
}
