//! Declared secrets, read from the environment of the process.

use std::{collections::HashMap, env::VarError, future::ready, pin::Pin, sync::Arc};

use toolcrib_core::{Secret, SecretError, Secrets};
use toolcrib_engine::{Redactor, SecretTooShortError};

/// The secrets of a project. A value is read from the environment on each request, and not stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct EnvironmentSecrets {
    /// The environment variable of each, by name.
    variables: Arc<HashMap<Arc<str>, Arc<str>>>,
}

/// Why an environment variable contains no usable secret. Each message ends a sentence about the
/// variable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSecret {
    #[error("is not set")]
    NotSet,
    #[error("is empty")]
    Empty,
    #[error("is not UTF-8 text")]
    NotText,
    #[error("cannot be used: {0}")]
    TooShort(#[from] SecretTooShortError),
}

/// Why a secret is not available, for the operator.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable `{variable}` {problem}")]
struct Unreadable {
    variable: Arc<str>,
    problem: NoSecret,
}

impl EnvironmentSecrets {
    /// The secrets of these names, each with its variable.
    pub(crate) fn new(variables: impl IntoIterator<Item = (Arc<str>, Arc<str>)>) -> Self {
        Self { variables: Arc::new(variables.into_iter().collect()) }
    }

    /// A redactor for the secrets of the process and the declared ones, including those that no
    /// call has requested yet.
    pub(crate) fn redactor(&self) -> Redactor {
        let redactor = Redactor::from_environment();
        for (name, variable) in &*self.variables {
            // An unavailable secret cannot be learned, and is never handed out either.
            let _ = value(variable).map(|value| redactor.learn_named(name, &value));
        }
        redactor
    }

    /// Whether a secret is available now.
    ///
    /// # Errors
    /// The reason, with the variable that should contain it.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        let Some(variable) = self.variables.get(name) else {
            return Err(SecretError::Unknown { name: name.into() }.to_string());
        };
        value(variable).map(drop).map_err(|problem| {
            let unreadable = Unreadable { variable: Arc::clone(variable), problem };
            format!("the secret `{name}` is not available: {unreadable}")
        })
    }

    pub(crate) fn get(&self, name: &str) -> Result<Secret, SecretError> {
        let Some((name, variable)) = self.variables.get_key_value(name) else {
            return Err(SecretError::Unknown { name: name.into() });
        };
        value(variable).map(Secret::new).map_err(|problem| SecretError::Unreadable {
            name: Arc::clone(name),
            source: Box::new(Unreadable { variable: Arc::clone(variable), problem }),
        })
    }
}

impl Secrets for EnvironmentSecrets {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Secret, SecretError>> + Send + 'a>> {
        Box::pin(ready(self.get(name)))
    }
}

/// Whether an environment variable contains a usable secret now.
pub(crate) fn check(variable: &str) -> Result<(), NoSecret> {
    value(variable).map(drop)
}

fn value(variable: &str) -> Result<String, NoSecret> {
    match std::env::var(variable) {
        Ok(value) if value.is_empty() => Err(NoSecret::Empty),
        Ok(value) => {
            // Checks only whether it could be redacted.
            Redactor::default().learn(&value)?;
            Ok(value)
        }
        Err(VarError::NotPresent) => Err(NoSecret::NotSet),
        Err(VarError::NotUnicode(_)) => Err(NoSecret::NotText),
    }
}
