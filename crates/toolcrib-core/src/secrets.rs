//! Secrets: named, resolved when a call needs one, never shown.

use std::{error::Error, fmt, sync::Arc};

use futures_util::future::BoxFuture;

/// The value of a secret. It has no `Display`, and its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a value into custody.
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

/// A secret that cannot be had. The text names the secret and its source, and is the operator's:
/// a model reads only that the tool is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The tool that asks does not declare it.
    #[error("the tool does not declare the secret `{name}` among its capabilities")]
    Undeclared {
        /// The name asked for.
        name: Arc<str>,
    },
    /// No source knows a secret of that name.
    #[error("there is no secret `{name}`")]
    Unknown {
        /// The name asked for.
        name: Arc<str>,
    },
    /// Its source is known and does not give it.
    #[error("the secret `{name}` cannot be read: {source}")]
    Unreadable {
        /// The name asked for.
        name: Arc<str>,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Where secrets come from: the environment, a vault. Asked when a call needs one and not before,
/// so a call that is denied asks for none.
///
/// A body does not see this port; it asks [`ToolContext::secret`](crate::ToolContext::secret),
/// which hands out only what its tool declares, and has the value redacted from then on.
/// [`secrets_fn`] makes one of a function.
pub trait Secrets: Send + Sync + 'static {
    /// The value of a secret.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>>;
}

/// [`Secrets`] made from a function that has them at hand; what has to wait for a vault implements
/// the trait. From the environment, each under the name that tools declare it by:
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
    AtHand(resolve)
}

struct AtHand<F>(F);

impl<F> Secrets for AtHand<F>
where
    F: Fn(&str) -> Result<Secret, SecretError> + Send + Sync + 'static,
{
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        Box::pin(async move { (self.0)(name) })
    }
}

/// Takes the secrets that are known out of a text, for bodies that cut texts themselves: a secret
/// that is cut in two is found by nobody afterwards. All other texts are redacted by the engine.
pub trait Redact: Send + Sync + 'static {
    /// A text without known secrets.
    fn redact(&self, text: &str) -> String;

    /// The start of a text whose rest is cut off, without known secrets and without an end that may
    /// be the beginning of one.
    fn redact_start(&self, start: &str) -> String;

    /// Begins a text that comes in pieces. What the pieces come to is what the whole text would have.
    /// Default: all of it is held back up to its end.
    fn stream(self: Arc<Self>) -> Box<dyn RedactStream> {
        Box::new(HeldBack { redact: self, text: String::new() })
    }
}

/// A text without known secrets that comes in pieces, begun by [`Redact::stream`].
pub trait RedactStream: Send {
    /// Takes a piece, and gives what is certain by now; perhaps nothing.
    fn push(&mut self, piece: &str) -> String;

    /// What was still held back, once there is no more to come.
    fn finish(self: Box<Self>) -> String;
}

struct HeldBack<R: ?Sized> {
    redact: Arc<R>,
    text: String,
}

impl<R: Redact + ?Sized> RedactStream for HeldBack<R> {
    fn push(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        String::new()
    }

    fn finish(self: Box<Self>) -> String {
        self.redact.redact(&self.text)
    }
}
