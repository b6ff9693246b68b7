//! The cost of a piece of work: time, the longest pause of a task beside it, and memory.

#![expect(clippy::print_stdout, reason = "figures for `--nocapture`")]
#![expect(clippy::disallowed_methods, reason = "the memory of this process is in /proc")]

use std::{
    fs,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use toolcrib_core::CancellationToken;

/// The bounds are those of an optimized build on an idle machine. Tests are not optimized, and run beside
/// others.
const SLACK: u32 = 60;

/// The longest time of one piece of work.
const LONGEST: Duration = Duration::from_millis(250);

/// The longest time between two runs of another task of the same thread.
const LONGEST_GAP: Duration = Duration::from_millis(50);

/// The cost of one piece of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    took: Duration,
    gap: Duration,
    grown_mib: u64,
}

impl Cost {
    /// Fails where the cost is above the bounds; prints it for `--nocapture`.
    pub(super) fn is_bounded(self, what: &str, most_mib: u64) {
        println!(
            "{what}: {} ms, longest gap {} ms, {} MiB",
            self.took.as_millis(),
            self.gap.as_millis(),
            self.grown_mib
        );
        assert!(self.took < LONGEST * SLACK, "{what} took {:?}", self.took);
        assert!(self.gap < LONGEST_GAP * SLACK, "{what} kept the thread for {:?}", self.gap);
        assert!(self.grown_mib < most_mib, "{what} took {} MiB", self.grown_mib);
    }
}

/// Does the work beside a task that runs every millisecond.
pub(super) async fn measured<T>(work: impl Future<Output = T>) -> (T, Cost) {
    let longest = Arc::new(Mutex::new((Instant::now(), Duration::ZERO)));
    let (end, beating) = (CancellationToken::new(), Arc::clone(&longest));
    let ended = end.clone();
    let beat = move || {
        let mut beating = beating.lock().unwrap_or_else(PoisonError::into_inner);
        *beating = (Instant::now(), beating.1.max(beating.0.elapsed()));
    };
    let last = beat.clone();
    let heart = tokio::spawn(async move {
        while !ended.is_cancelled() {
            beat();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    tokio::task::yield_now().await;
    let before = reset_peak();
    let began = Instant::now();
    let done = work.await;
    let took = began.elapsed();
    last();
    let grown_mib = peak().saturating_sub(before) / 1024;
    end.cancel();
    heart.await.unwrap();
    let gap = longest.lock().unwrap().1;
    (done, Cost { took, gap, grown_mib })
}

/// Sets the peak of this process to what it has now, in KiB. Tests beside it count too.
fn reset_peak() -> u64 {
    let _ = fs::write("/proc/self/clear_refs", "5");
    peak()
}

/// Zero where the system does not say.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
