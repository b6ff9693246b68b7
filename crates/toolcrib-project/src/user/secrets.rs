//! Declared secrets, read from the environment of the process or from the user's vault.

use std::{collections::HashMap, env::VarError, future::ready, pin::Pin, sync::Arc};

use toolcrib_core::{Secret, SecretError, Secrets};
use toolcrib_engine::{Redactor, SecretTooShortError};

use super::models::UserModels;
use crate::{
    file::secrets::SecretSource,
    private::vault::{Vault, VaultError},
};

/// The secrets of a project. A value is read from its source on each request, and not kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectSecrets {
    /// The source of each, by name.
    sources: Arc<HashMap<Arc<str>, SecretSource>>,
}

/// Why a source contains no usable secret. Each message ends a sentence about the source.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SecretSourceError {
    #[error("is not set")]
    NotSet,
    #[error("is not set; run `toolcrib secret set {0}`")]
    NotInVault(Arc<str>),
    #[error("cannot be read: {0}")]
    Vault(#[from] VaultError),
    #[error("is empty")]
    Empty,
    #[error("is not UTF-8 text")]
    NotText,
    #[error("cannot be used: {0}")]
    TooShort(#[from] SecretTooShortError),
}

/// Why a secret is not available, for the operator.
#[derive(Debug, thiserror::Error)]
#[error("{from} {problem}")]
struct SecretReadError {
    from: SecretSource,
    problem: SecretSourceError,
}

impl ProjectSecrets {
    /// The secrets of these names, each with its source.
    pub(crate) fn new(sources: impl IntoIterator<Item = (Arc<str>, SecretSource)>) -> Self {
        Self { sources: Arc::new(sources.into_iter().collect()) }
    }

    /// A redactor for the secrets of the process, the keys of the user's models and the declared
    /// secrets, including those that no call has requested yet.
    pub(crate) fn redactor(&self) -> Redactor {
        let redactor = Redactor::from_environment();
        for (name, key) in UserModels::of_user().iter().flat_map(UserModels::keys) {
            let _ = redactor.learn_named(name, key.expose());
        }
        for (name, from) in &*self.sources {
            // An unavailable secret cannot be learned, and is never handed out either.
            let _ = value(from).map(|value| redactor.learn_named(name, &value));
        }
        redactor
    }

    /// Whether a secret is available now.
    ///
    /// # Errors
    /// The reason, with the source that should contain it.
    pub(crate) fn check(&self, name: &str) -> Result<(), String> {
        let Some(from) = self.sources.get(name) else {
            return Err(SecretError::Unknown { name: name.into() }.to_string());
        };
        value(from).map(drop).map_err(|problem| {
            let unreadable = SecretReadError { from: from.clone(), problem };
            format!("the secret `{name}` is not available: {unreadable}")
        })
    }

    pub(crate) fn get(&self, name: &str) -> Result<Secret, SecretError> {
        let Some((name, from)) = self.sources.get_key_value(name) else {
            return Err(SecretError::Unknown { name: name.into() });
        };
        value(from).map(Secret::new).map_err(|problem| SecretError::Unreadable {
            name: Arc::clone(name),
            source: Box::new(SecretReadError { from: from.clone(), problem }),
        })
    }
}

impl Secrets for ProjectSecrets {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Secret, SecretError>> + Send + 'a>> {
        Box::pin(ready(self.get(name)))
    }
}

/// Whether a source contains a usable secret now.
pub(crate) fn check(from: &SecretSource) -> Result<(), SecretSourceError> {
    value(from).map(drop)
}

fn value(from: &SecretSource) -> Result<String, SecretSourceError> {
    let value = match from {
        SecretSource::Env(variable) => match std::env::var(&**variable) {
            Ok(value) => value,
            Err(VarError::NotPresent) => return Err(SecretSourceError::NotSet),
            Err(VarError::NotUnicode(_)) => return Err(SecretSourceError::NotText),
        },
        SecretSource::Vault(entry) => {
            let found = Vault::of_user()?.get(entry)?;
            found.ok_or_else(|| SecretSourceError::NotInVault(Arc::clone(entry)))?
        }
    };
    if value.is_empty() {
        return Err(SecretSourceError::Empty);
    }
    // Checks only whether it could be redacted.
    Redactor::default().learn(&value)?;
    Ok(value)
}
