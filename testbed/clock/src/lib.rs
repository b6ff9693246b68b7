//! Processor time for tests: unlike elapsed time, it does not depend on other programs.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use tokio::{runtime::Builder, time::sleep};

/// How often [`measured`] looks whether another task can run.
const BEAT: Duration = Duration::from_millis(1);

/// The processor time of a future.
#[derive(Debug, Clone, Copy)]
pub struct ProcessorTime {
    /// On all threads of the runtime, which include those of the blocking pool.
    pub total: Duration,
    /// The longest time for which no other task could run on the thread of the runtime.
    pub longest_gap: Duration,
}

/// The processor time of this thread so far. Waiting does not count, and neither do other threads
/// and other programs, so a busy machine does not decide a test that compares this time.
pub fn processor_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Runs a future on a new runtime with a single thread, and measures its processor time. The
/// function returns when the blocking pool has ended too.
///
/// # Panics
/// If called inside another runtime, and if no runtime can be created.
#[track_caller]
#[expect(clippy::expect_used, reason = "for tests")]
pub fn measured<T>(work: impl Future<Output = T>) -> (T, ProcessorTime) {
    let of_pool = Arc::new(Mutex::new(Duration::ZERO));
    let ended = Arc::clone(&of_pool);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .on_thread_stop(move || *ended.lock() += processor_time())
        .build()
        .expect("a runtime can be created");
    let began = processor_time();
    let (done, longest_gap) = runtime.block_on(beside_a_beat(work));
    let of_thread = processor_time().saturating_sub(began);
    drop(runtime);
    let total = of_thread + *of_pool.lock();
    (done, ProcessorTime { total, longest_gap })
}

/// The longest processor time of the thread between two beats.
async fn beside_a_beat<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = std::pin::pin!(work);
    let (mut last, mut longest) = (processor_time(), Duration::ZERO);
    let mut beat = || {
        let now = processor_time();
        longest = longest.max(now.saturating_sub(last));
        last = now;
    };
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                beat();
                return (done, longest);
            }
            () = sleep(BEAT) => beat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_counts_work_on_all_threads_and_no_waiting() {
        const WORK: Duration = Duration::from_millis(100);
        let work = || {
            let began = processor_time();
            while processor_time() < began + WORK {}
        };
        let (done, time) = measured(async move { tokio::task::spawn_blocking(work).await });
        done.unwrap();
        assert!(time.total >= WORK && time.longest_gap < WORK, "{time:?}");
        let ((), time) = measured(async move {
            work();
            tokio::task::yield_now().await;
        });
        assert!(time.total >= WORK && time.longest_gap >= WORK, "{time:?}");
        let ((), time) = measured(async { std::thread::sleep(3 * WORK) });
        assert!(time.total < WORK && time.longest_gap < WORK, "{time:?}");
    }
}
