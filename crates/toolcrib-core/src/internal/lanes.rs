//! Work that is kept off the async workers, a few pieces at a time.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{Arc, LazyLock},
    thread::available_parallelism,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// How many sources are remembered; beyond it those are forgotten that nothing runs for.
const MOST_SOURCES: usize = 1_024;

/// How many bytes of JSON are read, and made into tools, on an async worker: about 1 ms.
const MOST_INLINE: usize = 64 * 1024;

/// Runs work whose amount an outsider decides on the blocking pool: at most on half of the processors, of
/// these at most half for one source, so that neither the async workers nor other sources wait for it.
///
/// The work cannot be interrupted, so its amount must be bounded. A caller that no longer waits leaves it
/// behind; it keeps its place until its end.
#[derive(Debug)]
pub struct Lanes {
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
    /// The lanes in which this process reads what servers and catalogs list. Engines have separate lanes
    /// for validation, which never waits for a listing.
    pub fn of_process() -> &'static Self {
        static LANES: LazyLock<Lanes> = LazyLock::new(Lanes::default);
        &LANES
    }

    /// Runs work over this number of bytes: at once where they are at most 64 KiB, else as [`run`](Self::run) does.
    ///
    /// # Errors
    /// That it panicked.
    pub async fn run_large<T: Send + 'static>(
        &self,
        bytes: usize,
        source: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        if bytes <= MOST_INLINE { Ok(work()) } else { self.run(source, work).await }
    }

    /// Runs work on another thread once there is a place for it. Without a runtime there are no async
    /// workers to keep free, and it runs at once.
    ///
    /// # Errors
    /// That it panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        source: &Arc<str>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        if Handle::try_current().is_err() {
            return Ok(work());
        }
        // The own place first: a task that waits for it takes no place of other sources.
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
        let mut sources = self.sources.lock();
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
