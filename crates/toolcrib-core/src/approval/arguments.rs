//! Arguments in a form that may be stored.

use std::sync::Arc;

use serde_json::Value;

use crate::secrets::{SecretError, Secrets};

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
