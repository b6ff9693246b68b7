//! Arguments in a form that may be stored.

use std::sync::Arc;

use serde_json::Value;

use crate::secrets::secret::{SecretError, Secrets};

/// A call's arguments without the values of secrets, from which the same arguments are made again.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredArguments {
    /// The arguments, with `secret:NAME` for each secret.
    pub value: Value,
    /// The places of the secrets. The same text anywhere else is an ordinary text: a model that
    /// writes `secret:NAME` gets no secret.
    pub secrets: Vec<SecretReference>,
}

/// A secret in stored arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretReference {
    /// The JSON pointer of the text that contains it.
    pub pointer: Arc<str>,
    /// The position of the reference in the stored text, in bytes.
    pub at: usize,
    /// The name of the secret.
    pub name: Arc<str>,
}

/// A part of a text of stored arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentPart<'a> {
    /// A text that is stored unchanged.
    Text(&'a str),
    /// The present value of the secret of this name.
    Secret(&'a str),
}

/// Arguments that cannot be stored. The text is for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStorableError {
    /// They contain a secret that no name leads to, or one in an encoded form, a key or a number.
    #[error(
        "the arguments contain a secret that no declared name refers to, so they may not be stored"
    )]
    Secret,
}

impl StoredArguments {
    /// Arguments with references to secrets. A reference is the text `secret:NAME`.
    pub fn new(value: Value, secrets: Vec<SecretReference>) -> Self {
        Self { value, secrets }
    }

    /// The arguments for a person, in one piece: `[secret NAME]` replaces a reference, and nothing
    /// else looks like one.
    pub fn shown(&self) -> Value {
        self.shown_at(&self.value, &mut String::new())
    }

    fn shown_at(&self, value: &Value, pointer: &mut String) -> Value {
        let length = pointer.len();
        let mut inside = |step: &str, value: &Value| {
            pointer.push('/');
            pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
            let shown = self.shown_at(value, pointer);
            pointer.truncate(length);
            shown
        };
        match value {
            Value::Array(items) => {
                items.iter().enumerate().map(|(at, item)| inside(&at.to_string(), item)).collect()
            }
            Value::Object(entries) => {
                entries.iter().map(|(key, value)| (key.clone(), inside(key, value))).collect()
            }
            Value::String(text) => {
                let literal = |part: &str| part.replace("[secret ", "\\[secret ");
                let shown = self.parts(text, pointer).into_iter().map(|part| match part {
                    ArgumentPart::Text(part) => literal(part),
                    ArgumentPart::Secret(name) => format!("[secret {name}]"),
                });
                Value::String(shown.collect())
            }
            other => other.clone(),
        }
    }

    /// The parts of a text at a pointer: as it is, and the secrets of the references.
    pub fn parts<'a>(&'a self, text: &'a str, pointer: &str) -> Vec<ArgumentPart<'a>> {
        let mut secrets: Vec<_> =
            self.secrets.iter().filter(|secret| *secret.pointer == *pointer).collect();
        secrets.sort_by_key(|secret| secret.at);
        let (mut parts, mut from) = (Vec::new(), 0);
        for SecretReference { at, name, .. } in secrets {
            let before = text.get(from..*at).unwrap_or_default();
            if !before.is_empty() {
                parts.push(ArgumentPart::Text(before));
            }
            parts.push(ArgumentPart::Secret(name));
            from = at + Self::reference(name).len();
        }
        let rest = text.get(from..).unwrap_or_default();
        if !rest.is_empty() || parts.is_empty() {
            parts.push(ArgumentPart::Text(rest));
        }
        parts
    }

    /// The text that replaces a secret.
    pub fn reference(name: &str) -> String {
        format!("secret:{name}")
    }

    /// The arguments with the present values of the secrets.
    ///
    /// # Errors
    /// [`SecretError`] if a secret cannot be read, or a place does not contain its reference.
    pub async fn resolve(&self, secrets: &dyn Secrets) -> Result<Value, SecretError> {
        let mut value = self.value.clone();
        // From the last place of a text to its first, so that positions remain valid.
        let mut places: Vec<_> = self.secrets.iter().collect();
        places.sort_by(|a, b| (&a.pointer, b.at).cmp(&(&b.pointer, a.at)));
        for place in places {
            let secret = secrets.resolve(&place.name).await?;
            let reference = Self::reference(&place.name);
            let end = place.at.saturating_add(reference.len());
            match value.pointer_mut(&place.pointer) {
                Some(Value::String(text)) if text.get(place.at..end) == Some(&*reference) => {
                    text.replace_range(place.at..end, secret.expose());
                }
                _ => return Err(SecretError::Unknown { name: Arc::clone(&place.name) }),
            }
        }
        Ok(value)
    }
}
