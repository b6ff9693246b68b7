//! Arguments for a store: each known secret becomes a reference to its name.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_core::{NotStorableError, SecretReference, StoredArguments};

use super::{Redactor, known::KnownSecret};

/// The first character of the label of a secret that comes from the environment, not from a
/// declaration: no name resolves to it.
const LABEL: char = '$';

impl Redactor {
    /// Arguments as they may be stored: each known secret that has a declared name, and appears as
    /// it is in a text, is replaced by a reference.
    ///
    /// # Errors
    /// [`NotStorableError`] if they contain a known secret in any other way.
    pub(crate) fn storable(&self, args: &Value) -> Result<StoredArguments, NotStorableError> {
        if self.knows_nothing() {
            return Ok(StoredArguments::new(args.clone(), Vec::new()));
        }
        let known = self.known();
        let named = known.secrets().iter().filter_map(named);
        let mut named: Vec<_> = named.collect();
        // The longest first: a secret may contain another.
        named.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        let mut secrets = Vec::new();
        let value = replaced(args, &mut String::new(), &named, &mut secrets);
        let stored = StoredArguments::new(value, secrets);
        match self.json(stored.value.clone()) == stored.value {
            true => Ok(stored),
            false => Err(NotStorableError::Secret),
        }
    }
}

/// A secret and the first of its declared names.
fn named(known: &KnownSecret) -> Option<(&str, &Arc<str>)> {
    let names = known.names.iter().filter(|name| !name.starts_with(LABEL));
    Some((&known.value, names.min()?))
}

/// Replaces secrets, and notes the places of the references. Recursive: data that nests too deep is
/// rejected earlier.
fn replaced(
    value: &Value,
    pointer: &mut String,
    named: &[(&str, &Arc<str>)],
    secrets: &mut Vec<SecretReference>,
) -> Value {
    let mut inside = |step: &str, value: &Value, secrets: &mut Vec<SecretReference>| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
        let replaced = replaced(value, pointer, named, secrets);
        pointer.truncate(length);
        replaced
    };
    match value {
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| inside(&at.to_string(), item, secrets)).collect()
        }
        Value::Object(entries) => {
            let entries = entries.iter();
            entries.map(|(key, value)| (key.clone(), inside(key, value, secrets))).collect()
        }
        Value::String(text) => Value::String(referring(text, pointer, named, secrets)),
        other => other.clone(),
    }
}

fn referring(
    text: &str,
    pointer: &str,
    named: &[(&str, &Arc<str>)],
    secrets: &mut Vec<SecretReference>,
) -> String {
    let mut stored = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let found = named.iter().filter_map(|(value, name)| Some((rest.find(value)?, value, name)));
        // Of several at one place, the first, which is the longest.
        let Some((at, value, name)) = found.min_by_key(|(at, ..)| *at) else { break };
        stored.push_str(rest.get(..at).unwrap_or_default());
        let place = stored.len();
        stored.push_str(&StoredArguments::reference(name));
        let name = Arc::clone(name);
        secrets.push(SecretReference { pointer: pointer.into(), at: place, name });
        rest = rest.get(at + value.len()..).unwrap_or_default();
    }
    stored.push_str(rest);
    stored
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;
    use toolcrib_core::{Secret, SecretError, secrets_fn};

    use super::*;

    fn redactor() -> Redactor {
        let redactor =
            Redactor::of([(Some("$API_KEY".into()), "unnamed-key-1".to_owned())].into_iter());
        redactor.learn_named("token", "s3cr3t-value").unwrap();
        redactor.learn_named("long", "s3cr3t-value-and-more").unwrap();
        redactor
    }

    #[test]
    fn named_secrets_become_references_and_come_back() {
        let args = json!({
            "auth": ["Bearer s3cr3t-value, s3cr3t-value-and-more; s3cr3t-value"],
            "a/b~": "s3cr3t-value",
            "text": "secret:token",
        });
        let stored = redactor().storable(&args).unwrap();
        assert_eq!(
            stored.value,
            json!({
                "auth": ["Bearer secret:token, secret:long; secret:token"],
                "a/b~": "secret:token",
                "text": "secret:token",
            })
        );
        let rotated = secrets_fn(|name| match name {
            "token" => Ok(Secret::new("rotated")),
            "long" => Ok(Secret::new("rotated-long")),
            other => Err(SecretError::Unknown { name: other.into() }),
        });
        let resolved = stored.resolve(&rotated).now_or_never().unwrap().unwrap();
        assert_eq!(
            resolved,
            json!({
                "auth": ["Bearer rotated, rotated-long; rotated"],
                "a/b~": "rotated",
                // The model wrote this: a text, not a reference.
                "text": "secret:token",
            })
        );
    }

    #[test]
    fn a_secret_without_a_reference_cannot_be_stored() {
        for args in [
            json!({ "x": "unnamed-key-1" }),
            json!({ "s3cr3t-value": 1 }),
            json!({ "x": "czNjcjN0LXZhbHVl" }),
        ] {
            assert_eq!(redactor().storable(&args), Err(NotStorableError::Secret), "{args}");
        }
        let plain = json!({ "x": [1, null, "text"] });
        assert_eq!(redactor().storable(&plain).unwrap().value, plain);
    }
}
