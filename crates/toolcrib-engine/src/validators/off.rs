//! Runs work that is not trivially cheap off the async workers, a few at a time.
//!
//! Validation cannot be interrupted, so its work is limited. A call that waits for it ends at its
//! deadline and when it is cancelled; the work continues up to that limit and keeps its place in
//! the lane until then, so that one source cannot fill the threads.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::time::timeout;
use toolcrib_core::{__internal::must_be_compiled, CancellationToken, Tool};

use super::{Side, Validators};

/// The maximum number of steps on an async worker: a batch has up to 128 calls, which may all be
/// validated in one go.
const MOST_INLINE: u64 = 500;

/// The largest definition whose schema is compiled on an async worker, in bytes.
const LARGEST_INLINE: usize = 4 * 1024;

/// The maximum total size of unknown definitions that are checked on an async worker, in bytes.
const MOST_CHECKED_INLINE: usize = 32 * 1024;

/// The assumed size of a schema that must be compiled to be checked, in bytes: its patterns decide.
const OF_COMPILED: usize = 8 * 1024;

/// The maximum size of a text that is read, redacted or cut on an async worker, in bytes.
const MOST_TEXT_INLINE: usize = 32 * 1024;

/// Why a value was not validated.
pub(crate) enum ValidationFailure {
    /// The schema cannot be enforced.
    Schema(Arc<str>),
    /// The call was cancelled.
    Cancelled,
    /// The deadline passed.
    TimedOut,
    /// The work panicked.
    Broken(String),
}

/// The problems of a value; empty for a valid one.
type ValidationResult = Result<Vec<String>, ValidationFailure>;

/// Whether texts of this total size are too long for an async worker.
pub(crate) const fn is_large_text(bytes: usize) -> bool {
    bytes > MOST_TEXT_INLINE
}

impl Validators {
    /// Validates arguments or an output if that is trivially cheap.
    pub(crate) fn at_once(
        &self,
        tool: &Tool,
        side: Side,
        value: &Value,
    ) -> Option<ValidationResult> {
        let Some((schema, digest)) = side.schema(tool) else { return Some(Ok(Vec::new())) };
        let fits = match self.compiled.get(digest) {
            Some(known) => known,
            // The rendering contains only the schema of the arguments.
            None if matches!(side, Side::Arguments) && tool.rendering().len() <= LARGEST_INLINE => {
                self.compiled(schema, digest)
            }
            None => return None,
        };
        match fits {
            Ok(fits) => fits.problems_within(MOST_INLINE, value, side.part()).map(Ok),
            Err(problem) => Some(Err(ValidationFailure::Schema(problem))),
        }
    }

    /// Validates arguments or an output on another thread, until the call's deadline.
    pub(crate) async fn in_time(
        self: &Arc<Self>,
        tool: &Tool,
        side: Side,
        value: &mut Value,
        allowed: Duration,
        cancellation: &CancellationToken,
    ) -> ValidationResult {
        let passed = Arc::new(std::mem::take(value));
        let (validators, of, seen) = (Arc::clone(self), tool.clone(), Arc::clone(&passed));
        let work = move || match validators.of(&of, side) {
            Some(fits) => fits.map(|fits| fits.problems(&seen, side.part())),
            None => Ok(Vec::new()),
        };
        let validated = tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(ValidationFailure::Cancelled),
            done = timeout(allowed, self.lanes.run(tool.shared_origin(), work)) => match done {
                Ok(Ok(problems)) => problems.map_err(ValidationFailure::Schema),
                Ok(Err(broken)) => Err(ValidationFailure::Broken(broken)),
                Err(_) => Err(ValidationFailure::TimedOut),
            },
        };
        *value = Arc::unwrap_or_clone(passed);
        validated
    }

    /// Runs other work on one source's texts of this total size, off the async workers if they are
    /// large.
    ///
    /// # Errors
    /// The panic of the work.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        source: &Arc<str>,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        if !is_large_text(bytes) {
            return Ok(work());
        }
        Box::pin(self.lanes.run(source, work)).await
    }

    /// The tools whose schemas were not checked before, if these are too large or too many for an
    /// async worker.
    pub(crate) fn unknown(&self, tools: &[Tool]) -> Option<Vec<Tool>> {
        let of_unknown = |tool: &Tool| {
            let schemas = Side::BOTH.into_iter().filter_map(|side| side.schema(tool));
            let unknown = schemas.filter(|(_, digest)| self.checked.get(*digest).is_none());
            let weight = |(schema, _)| if must_be_compiled(schema) { OF_COMPILED } else { 0 };
            unknown.map(weight).reduce(|a, b| a + b).map(|weight| weight + tool.rendering().len())
        };
        let weighed = tools.iter().filter_map(|tool| Some((tool, of_unknown(tool)?)));
        let (unknown, weights): (Vec<_>, Vec<_>) =
            weighed.map(|(tool, weight)| (tool.clone(), weight)).unzip();
        (weights.iter().sum::<usize>() > MOST_CHECKED_INLINE).then_some(unknown)
    }

    /// Checks the schemas of tools on another thread, so that [`check`](Validators::check) knows
    /// them. If dropped, it ends after the tool that is being checked.
    pub(crate) async fn prepare(self: &Arc<Self>, tools: Vec<Tool>) {
        let waiting = CancellationToken::new();
        let (validators, ended) = (Arc::clone(self), waiting.clone());
        let _waiting = waiting.drop_guard();
        let source = tools.first().map(|tool| Arc::clone(tool.shared_origin())).unwrap_or_default();
        let work = move || {
            for tool in tools.iter().take_while(|_| !ended.is_cancelled()) {
                // Composing the tool reports the problem.
                drop(validators.check(tool));
            }
        };
        // A panic in it happens again when the tool is composed.
        drop(self.lanes.run(&source, work).await);
    }
}
