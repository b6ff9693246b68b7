//! Secrets: named, resolved when a call needs one, never shown.

use std::{error::Error, fmt, sync::Arc};

use futures_util::future::BoxFuture;

/// The value of a secret. It has no `Display`, and its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a value that must not be shown.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// The value, for the one place that needs it: a header, an environment.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret that cannot be read. The text names the secret and its source, and is for the operator:
/// a model reads only that the tool is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The requesting tool does not declare it.
    #[error("the tool does not declare the secret `{name}` among its capabilities")]
    Undeclared {
        /// The requested name.
        name: Arc<str>,
    },
    /// No source has a secret of that name.
    #[error("secret `{name}` does not exist")]
    Unknown {
        /// The requested name.
        name: Arc<str>,
    },
    /// Its source is known but cannot be read.
    #[error("the secret `{name}` cannot be read: {source}")]
    Unreadable {
        /// The requested name.
        name: Arc<str>,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A source of secrets: the environment, a vault. Queried only when a call needs a secret, so a
/// denied call requests none.
///
/// Tool bodies do not use this port; they call [`ToolContext::secret`](crate::ToolContext::secret),
/// which returns only secrets that the tool declares, and redacts the value from then on.
/// [`secrets_fn`] makes one of a function.
pub trait Secrets: Send + Sync + 'static {
    /// The value of a secret.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>>;
}

impl<S: Secrets + ?Sized> Secrets for Arc<S> {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        (**self).resolve(name)
    }
}

/// Makes [`Secrets`] of a function that returns values immediately; a source that waits, such as a
/// vault, implements the trait. From the environment, each under its declared name:
///
/// ```
/// use toolcrib_core::{Secret, SecretError, secrets_fn};
///
/// let secrets = secrets_fn(|name| {
///     let variable = match name {
///         "WEATHER_KEY" => "WEATHER_API_KEY",
///         _ => return Err(SecretError::Unknown { name: name.into() }),
///     };
///     // The error of `var` may quote the value.
///     std::env::var(variable).map(Secret::new).map_err(|_| SecretError::Unreadable {
///         name: name.into(),
///         source: format!("the environment variable `{variable}` is not set, or no text").into(),
///     })
/// });
/// # let _ = secrets;
/// ```
pub fn secrets_fn<F>(resolve: F) -> impl Secrets
where
    F: Fn(&str) -> Result<Secret, SecretError> + Send + Sync + 'static,
{
    FnSecrets(resolve)
}

struct FnSecrets<F>(F);

impl<F> Secrets for FnSecrets<F>
where
    F: Fn(&str) -> Result<Secret, SecretError> + Send + Sync + 'static,
{
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        Box::pin(async move { (self.0)(name) })
    }
}

/// Redacts known secrets from a text, for bodies that truncate texts themselves: half a secret
/// cannot be detected afterwards. All other texts are redacted by the engine.
pub trait Redact: Send + Sync + 'static {
    /// Removes known secrets from a text.
    fn redact(&self, text: &str) -> String;

    /// Redacts the start of a text whose rest is truncated: removes known secrets and an end that
    /// may be the beginning of one.
    fn redact_start(&self, start: &str) -> String;

    /// Starts redaction of a text that arrives in pieces. The joined output equals the redacted
    /// whole text. Default: the output is delayed until the end.
    fn stream(self: Arc<Self>) -> Box<dyn RedactStream> {
        Box::new(BufferedRedaction { redact: self, text: String::new() })
    }
}

/// Streaming redaction of a text, started by [`Redact::stream`].
pub trait RedactStream: Send {
    /// Takes a piece, and returns the output that is final; may be empty.
    fn push(&mut self, piece: &str) -> String;

    /// Returns the remaining output at the end of the text.
    fn finish(self: Box<Self>) -> String;
}

struct BufferedRedaction<R: ?Sized> {
    redact: Arc<R>,
    text: String,
}

impl<R: Redact + ?Sized> RedactStream for BufferedRedaction<R> {
    fn push(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        String::new()
    }

    fn finish(self: Box<Self>) -> String {
        self.redact.redact(&self.text)
    }
}
