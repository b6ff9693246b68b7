//! The store of small values, as a tool's body sees it.

use std::{sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

use super::{context::ToolContext, output::ToolError};
use crate::kv::{KvArea, KvError, KvLimits, KvStore, KvWrite};

/// How long a value is kept unless the tool says otherwise. Keys of a session end with it.
const DEFAULT_TIME: Duration = Duration::from_hours(30 * 24);

/// How often an update is tried while others change the same key.
const ATTEMPTS: usize = 100;

/// The keys and values of one scope, from [`ToolContext::kv`]. Cheap to clone.
///
/// Each operation ends when the call is cancelled; a write that has begun is finished. A value that
/// contains a known secret is refused.
#[derive(Clone)]
pub struct Kv {
    store: Arc<dyn KvStore>,
    area: KvArea,
    cx: ToolContext,
}

impl Kv {
    pub(crate) fn new(store: Arc<dyn KvStore>, area: KvArea, cx: ToolContext) -> Self {
        Self { store, area, cx }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The store failed, or the call was cancelled.
    pub async fn get(&self, key: &str) -> Result<Option<Arc<str>>, ToolError> {
        let key = key.to_owned();
        self.on_store(move |store, area| store.value(area, &key)).await
    }

    /// The keys that begin with a text, sorted.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn keys(&self, prefix: &str) -> Result<Vec<Arc<str>>, ToolError> {
        let prefix = prefix.to_owned();
        self.on_store(move |store, area| store.keys(area, &prefix)).await
    }

    /// Sets a value, for 30 days, in a session for as long as the session.
    ///
    /// # Errors
    /// As [`get`](Self::get); a limit of [`KvLimits`].
    pub async fn set(&self, key: &str, value: impl Into<String>) -> Result<(), ToolError> {
        self.set_for(key, value, self.usual_time()).await
    }

    /// Sets a value for a time, at most [`KvLimits::TIME`].
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub async fn set_for(
        &self,
        key: &str,
        value: impl Into<String>,
        lives_for: Duration,
    ) -> Result<(), ToolError> {
        self.write(key, Some(value.into()), None, lives_for).await?.map_err(told)
    }

    /// Removes a key and its value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn remove(&self, key: &str) -> Result<(), ToolError> {
        self.write(key, None, None, Duration::ZERO).await?.map_err(told)
    }

    /// Changes a value that other calls may change at the same time: the function receives the
    /// present value and returns the new one, `None` to remove it, and a result. It is called again
    /// if the value has changed meanwhile.
    ///
    /// # Errors
    /// As [`set`](Self::set); the function's own error, and nothing has changed then.
    pub async fn update<T>(
        &self,
        key: &str,
        mut change: impl FnMut(Option<&str>) -> Result<(Option<String>, T), ToolError>,
    ) -> Result<T, ToolError> {
        for _ in 0..ATTEMPTS {
            let old = self.get(key).await?;
            let (new, result) = change(old.as_deref())?;
            match self.write(key, new, Some(old), self.usual_time()).await? {
                Ok(()) => return Ok(result),
                Err(KvError::Changed) => {}
                Err(error) => return Err(told(error)),
            }
        }
        Err(told(KvError::Changed))
    }

    fn usual_time(&self) -> Duration {
        match self.area {
            KvArea::Session { .. } | KvArea::Conversation { .. } => self.longest_time(),
            _ => DEFAULT_TIME,
        }
    }

    fn longest_time(&self) -> Duration {
        match self.area {
            KvArea::Conversation { .. } => KvLimits::CONVERSATION,
            _ => KvLimits::TIME,
        }
    }

    async fn write(
        &self,
        key: &str,
        value: Option<String>,
        expected: Option<Option<Arc<str>>>,
        lives_for: Duration,
    ) -> Result<Result<(), KvError>, ToolError> {
        let is_secret = |text: &str| self.cx.redacted(text) != text;
        if is_secret(key) || value.as_deref().is_some_and(is_secret) {
            return Err(ToolError::failed("a secret cannot be kept; leave it out"));
        }
        let (key, lives_for) = (key.to_owned(), lives_for.min(self.longest_time()));
        let written = self.on_store(move |store, area| {
            let expected = expected.as_ref().map(Option::as_deref);
            let write = KvWrite { key: &key, value: value.as_deref(), expected, lives_for };
            Ok(store.put(area, write))
        });
        written.await
    }

    async fn on_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn KvStore, &KvArea) -> Result<T, KvError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (store, area) = (Arc::clone(&self.store), self.area.clone());
        let worked = spawn_blocking(move || work(&*store, &area));
        tokio::select! {
            biased;
            () = self.cx.cancellation().cancelled() => Err(ToolError::cancelled()),
            worked = worked => worked?.map_err(told),
        }
    }
}

/// The error for a model.
fn told(error: KvError) -> ToolError {
    match error {
        KvError::Store(error) => {
            ToolError::failed("the store of this tool failed").caused_by(error)
        }
        error => error.into(),
    }
}

crate::internal::debug_fields!(Kv, kv, kv.area);
