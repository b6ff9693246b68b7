use std::{error::Error, fmt, sync::Arc, time::Duration};

use super::ToolProvider;

/// A provider or a gate that could not answer.
///
/// Beside its text it carries what rules may look at: the class always, and what a remote source
/// says of itself where it says it. Cloning shares the source, so that all who waited for one answer
/// get the same error.
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
    /// The source did not answer, or not sensibly.
    Source,
    /// A gate failed, or what prepares definitions: nothing may pass unjudged, so no older answer
    /// takes the place of this one.
    Gate,
    /// A provider panicked.
    Panic,
    /// The source took longer than it was given.
    Timeout,
    /// The run was cancelled while the source was asked.
    Cancelled,
    /// The source was not asked, because it failed several times in a row.
    BreakerOpen,
}

impl DiscoveryErrorClass {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Source, Self::Gate, Self::Panic, Self::Timeout, Self::Cancelled, Self::BreakerOpen];

    /// The word as it stands in JSON.
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

    /// Whether an older answer of the same source may stand in for this failure. It may not for one
    /// of a gate, which would have judged anew, nor for a cancellation, which wants no answer.
    pub fn allows_stale(self) -> bool {
        !matches!(self, Self::Gate | Self::Cancelled)
    }
}

impl DiscoveryError {
    /// An error of a class.
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

    /// A source that failed.
    pub fn source_failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = error.into();
        let mut this = Self::new(DiscoveryErrorClass::Source, error.to_string());
        this.0.source = Some(error.into());
        this
    }

    /// An error that may be one of discovery already; any other is a source that failed.
    pub fn from_boxed(error: Box<dyn Error + Send + Sync>) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => *error,
            Err(error) => Self::source_failed(error),
        }
    }

    /// What is said when the run was cancelled while a source was asked.
    pub fn cancelled() -> Self {
        Self::new(DiscoveryErrorClass::Cancelled, "the run was cancelled")
    }

    /// Adds what a remote source calls the failure, such as `quota_exceeded`: for rules, which
    /// compare it as it stands.
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Arc<str>>) -> Self {
        self.0.code = Some(code.into());
        self
    }

    /// Adds the status of an HTTP answer.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.http_status = Some(status);
        self
    }

    /// Adds how long the source asks to be left alone.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(wait);
        self
    }

    /// Names the provider, unless one further inside has been named.
    #[must_use]
    pub fn in_provider(mut self, provider: &dyn ToolProvider) -> Self {
        if self.0.provider.is_none() {
            self.0.provider = Some(provider.path());
            self.0.leaf = Some(provider.leaf().to_owned());
        }
        self
    }

    /// The same error with another text and without its source, whose text cannot be changed. For
    /// engines, which redact what leaves them.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self.0.source = None;
        self
    }

    /// The class.
    pub fn class(&self) -> DiscoveryErrorClass {
        self.0.class
    }

    /// The path of the provider that failed, once it is known.
    pub fn provider(&self) -> Option<&str> {
        self.0.provider.as_deref()
    }

    /// The [leaf](ToolProvider::leaf) of the provider that failed, once it is known.
    pub fn leaf(&self) -> Option<&str> {
        self.0.leaf.as_deref()
    }

    /// What happened, without the provider's name.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the source calls it.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The status of the HTTP answer that was the failure, if it was one.
    pub fn http_status(&self) -> Option<u16> {
        self.0.http_status
    }

    /// How long the source asks to be left alone, if it does.
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
