//! Secrets, and text that may contain one.

pub(crate) mod credentials;
pub(crate) mod secret;

pub use self::secret::{Redact, RedactStream, Secret, SecretError, Secrets, secrets_fn};
