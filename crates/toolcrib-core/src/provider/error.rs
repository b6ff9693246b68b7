use std::{error::Error, fmt, sync::Arc, time::Duration};

use super::ToolProvider;

/// An error of a provider or a gate.
///
/// Carries the facts that reliability rules match on: always the class, and the code, HTTP status
/// and retry delay that a remote source reported. Cloning shares the source error, so that all
/// waiters of one request get the same error.
#[derive(Debug, Clone)]
pub struct DiscoveryError(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    class: DiscoveryErrorClass,
    provider: Option<String>,
    leaf: Option<String>,
    message: String,
    code: Option<Arc<str>>,
    http_status: Option<u16>,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The class of a discovery error; `errorName` in the seeds' events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DiscoveryErrorClass {
    /// The source did not respond, or its response was invalid.
    Source,
    /// A gate or a definition preparer failed. No tool may pass unjudged, so no older answer
    /// replaces this one.
    Gate,
    /// A provider panicked.
    Panic,
    /// The source exceeded its timeout.
    Timeout,
    /// The run was cancelled during the request.
    Cancelled,
    /// The source was not queried because its circuit breaker is open after repeated failures.
    BreakerOpen,
}

impl DiscoveryErrorClass {
    /// Every class of an error of discovery.
    pub const ALL: [Self; 6] =
        [Self::Source, Self::Gate, Self::Panic, Self::Timeout, Self::Cancelled, Self::BreakerOpen];

    /// The class as written in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Gate => "gate",
            Self::Panic => "panic",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::BreakerOpen => "breaker_open",
        }
    }

    /// Whether an older answer of the same source may replace this failure. Not for a gate's
    /// failure, because the gate would have judged again, and not for a cancellation, which needs no
    /// answer.
    pub fn allows_stale(self) -> bool {
        !matches!(self, Self::Gate | Self::Cancelled)
    }
}

impl DiscoveryError {
    /// An error of the given class.
    pub fn new(class: DiscoveryErrorClass, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            class,
            provider: None,
            leaf: None,
            message: message.into(),
            code: None,
            http_status: None,
            retry_after: None,
            source: None,
        }))
    }

    /// An error of class `source`.
    pub fn source_failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        let mut this = Self::new(DiscoveryErrorClass::Source, error.to_string());
        this.0.source = Some(error.into());
        this
    }

    /// Converts an error: a [`DiscoveryError`] is kept, any other becomes one of class `source`.
    pub fn from_boxed(error: Box<dyn Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::source_failed(error),
        }
    }

    /// The error for a run that was cancelled during a request.
    pub fn cancelled() -> Self {
        Self::new(DiscoveryErrorClass::Cancelled, "the run was cancelled")
    }

    /// Adds the remote source's error code, such as `quota_exceeded`. Rules compare it literally.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Arc<str>>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.http_status = Some(status);
        self
    }

    /// Adds the retry delay that the source requested.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Sets the provider's name unless an inner provider's name is set.
    #[must_use]
    pub fn in_provider(mut self, provider: &dyn ToolProvider) -> Self {
        if self.0.provider.is_none() {
            self.0.provider = Some(provider.path());
            self.0.leaf = Some(provider.leaf().to_owned());
        }
        self
    }

    /// The same error with another text and without its source error, whose text cannot be changed.
    /// Used by engines to redact errors.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self.0.source = None;
        self
    }

    /// The class of the error.
    pub fn class(&self) -> DiscoveryErrorClass {
        self.0.class
    }

    /// The path of the provider that failed, if set.
    pub fn provider(&self) -> Option<&str> {
        self.0.provider.as_deref()
    }

    /// The [leaf](ToolProvider::leaf) of the provider that failed, if set.
    pub fn leaf(&self) -> Option<&str> {
        self.0.leaf.as_deref()
    }

    /// The message, without the provider's name.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The remote source's error code.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The HTTP status of the failed response, if any.
    pub fn http_status(&self) -> Option<u16> {
        self.0.http_status
    }

    /// The retry delay that the source requested, if any.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }
}

impl fmt::Display for DiscoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.provider {
            Some(provider) => write!(f, "provider `{provider}`: {}", self.0.message),
            None => f.write_str(&self.0.message),
        }
    }
}

impl Error for DiscoveryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
