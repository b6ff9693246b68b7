//! Runs what is not trivially cheap off the async workers, a few at a time.
//!
//! Validation cannot be interrupted, so its work is bounded. A call that waits for it ends at its
//! deadline and when it is cancelled; the work goes on for at most that bound, and keeps its place in
//! the lane until then, so that one source cannot fill the threads.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{Arc, Mutex, PoisonError},
    thread::available_parallelism,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};
use toolcrib_core::{CancellationToken, Tool};

use super::{Side, Validators, can_fail, problems::problems};

/// The most steps that are taken on an async worker: a batch has up to 128 calls, and all of them may
/// be taken in one go.
const MOST_INLINE: u64 = 500;

/// The largest definition whose schema is compiled on an async worker, in bytes.
const LARGEST_INLINE: usize = 4 * 1024;

/// The largest unknown definitions that are checked on an async worker, in bytes, all together.
const MOST_CHECKED_INLINE: usize = 32 * 1024;

/// What a schema that must be compiled to be checked counts, in bytes: its patterns decide.
const OF_COMPILED: usize = 8 * 1024;

/// How many sources are remembered; beyond it those are forgotten that nothing runs for.
const MOST_SOURCES: usize = 1_024;

/// Why a value was not validated.
pub(crate) enum NotValidated {
    /// The schema cannot be enforced.
    Schema(Arc<str>),
    /// The call was cancelled.
    Cancelled,
    /// There was no time for it.
    TimedOut,
    /// The work broke off.
    Broken(String),
}

/// What is wrong with a value; nothing where it fits.
type Validated = Result<Vec<String>, NotValidated>;

impl Validators {
    /// Validates arguments or an output if that is trivially cheap.
    pub(crate) fn at_once(&self, tool: &Tool, side: Side, value: &Value) -> Option<Validated> {
        let Some((schema, digest)) = side.schema(tool) else { return Some(Ok(Vec::new())) };
        let fits = match self.compiled.get(digest) {
            Some(known) => known,
            // The rendering has the arguments' schema alone.
            None if matches!(side, Side::Arguments) && tool.rendering().len() <= LARGEST_INLINE => {
                self.compiled(schema, digest)
            }
            None => return None,
        };
        match fits {
            Ok(fits) => {
                fits.plan.steps_to_explain(value, MOST_INLINE)?;
                Some(Ok(problems(&fits.validator, value, side.part())))
            }
            Err(problem) => Some(Err(NotValidated::Schema(problem))),
        }
    }

    /// Validates arguments or an output on another thread, for as long as the call may take.
    pub(crate) async fn in_time(
        self: &Arc<Self>,
        tool: &Tool,
        side: Side,
        value: &mut Value,
        allowed: Duration,
        cancellation: &CancellationToken,
    ) -> Validated {
        let passed = Arc::new(std::mem::take(value));
        let (validators, of, seen) = (Arc::clone(self), tool.clone(), Arc::clone(&passed));
        let work = move || match validators.of(&of, side) {
            Some(fits) => fits.map(|fits| fits.problems(&seen, side.part())),
            None => Ok(Vec::new()),
        };
        let validated = tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(NotValidated::Cancelled),
            done = timeout(allowed, self.lanes.run(tool.shared_origin(), work)) => match done {
                Ok(Ok(problems)) => problems.map_err(NotValidated::Schema),
                Ok(Err(broken)) => Err(NotValidated::Broken(broken)),
                Err(_) => Err(NotValidated::TimedOut),
            },
        };
        *value = Arc::unwrap_or_clone(passed);
        validated
    }

    /// The tools whose schemas were not checked before, where these are too large or too many for an
    /// async worker.
    pub(crate) fn unknown(&self, tools: &[Tool]) -> Option<Vec<Tool>> {
        let of_unknown = |tool: &Tool| {
            let schemas = Side::BOTH.into_iter().filter_map(|side| side.schema(tool));
            let unknown = schemas.filter(|(_, digest)| self.checked.get(*digest).is_none());
            let weight = |(schema, _)| if can_fail(schema) { OF_COMPILED } else { 0 };
            unknown.map(weight).reduce(|a, b| a + b).map(|weight| weight + tool.rendering().len())
        };
        let weighed = tools.iter().filter_map(|tool| Some((tool, of_unknown(tool)?)));
        let (unknown, weights): (Vec<_>, Vec<_>) =
            weighed.map(|(tool, weight)| (tool.clone(), weight)).unzip();
        (weights.iter().sum::<usize>() > MOST_CHECKED_INLINE).then_some(unknown)
    }

    /// Checks the schemas of tools on another thread, so that [`check`](Validators::check) knows them.
    /// It ends after the one that is being checked when nothing waits for it any more.
    pub(crate) async fn prepare(self: &Arc<Self>, tools: Vec<Tool>) {
        let waiting = CancellationToken::new();
        let (validators, ended) = (Arc::clone(self), waiting.clone());
        let _waiting = waiting.drop_guard();
        let source = tools.first().map(|tool| Arc::clone(tool.shared_origin())).unwrap_or_default();
        let work = move || {
            for tool in tools.iter().take_while(|_| !ended.is_cancelled()) {
                // What is wrong is said where the tool is composed.
                drop(validators.check(tool));
            }
        };
        // A panic in it comes again where the tool is composed.
        drop(self.lanes.run(&source, work).await);
    }
}

/// Limits how much runs at the same time: for each source, and for all.
#[derive(Debug)]
pub(super) struct Lanes {
    all: Arc<Semaphore>,
    of_source: usize,
    sources: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
}

impl Default for Lanes {
    fn default() -> Self {
        // Half of the processors, so that the async workers have the others.
        let all = available_parallelism().map_or(1, NonZero::get).div_ceil(2);
        Self {
            all: Arc::new(Semaphore::new(all)),
            of_source: all.div_ceil(2),
            sources: Mutex::default(),
        }
    }
}

impl Lanes {
    async fn run<T: Send + 'static>(
        &self,
        source: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        if Handle::try_current().is_err() {
            // There are no async workers to keep free.
            return Ok(work());
        }
        // First the place among its own: what waits for that keeps nobody else waiting.
        let own = place(&self.of(source)).await?;
        let place = place(&self.all).await?;
        let work = move || {
            let done = work();
            drop((own, place));
            done
        };
        spawn_blocking(work).await.map_err(|error| error.to_string())
    }

    fn of(&self, source: &Arc<str>) -> Arc<Semaphore> {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        if sources.len() >= MOST_SOURCES {
            sources.retain(|_, lane| Arc::strong_count(lane) > 1);
        }
        let lane = sources.entry(Arc::clone(source));
        Arc::clone(lane.or_insert_with(|| Arc::new(Semaphore::new(self.of_source))))
    }
}

async fn place(lane: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, String> {
    Arc::clone(lane).acquire_owned().await.map_err(|closed| closed.to_string())
}
