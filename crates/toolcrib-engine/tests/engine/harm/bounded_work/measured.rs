//! The cost of a piece of work: processor time, the longest pause of a task beside it, and memory.

#![expect(clippy::print_stdout, reason = "figures for `--nocapture`")]
#![expect(clippy::disallowed_methods, reason = "the memory of this process is in /proc")]

use std::{fs, time::Duration};

use toolcrib_clock::ProcessorTime;

/// The bounds are those of an optimized build. Tests are not optimized, and share caches with others.
const SLACK: u32 = 30;

/// The longest processor time of one piece of work.
const LONGEST: Duration = Duration::from_millis(250);

/// The longest processor time between two runs of another task of the same thread.
const LONGEST_GAP: Duration = Duration::from_millis(50);

/// The cost of one piece of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    time: ProcessorTime,
    grown_mib: u64,
}

impl Cost {
    /// Fails where the cost is above the bounds; prints it for `--nocapture`.
    pub(super) fn is_bounded(self, what: &str, most_mib: u64) {
        let ProcessorTime { total, longest_gap } = self.time;
        println!(
            "{what}: {} ms, longest gap {} ms, {} MiB",
            total.as_millis(),
            longest_gap.as_millis(),
            self.grown_mib
        );
        assert!(total < LONGEST * SLACK, "{what} took {total:?}");
        assert!(longest_gap < LONGEST_GAP * SLACK, "{what} kept the thread for {longest_gap:?}");
        assert!(self.grown_mib < most_mib, "{what} took {} MiB", self.grown_mib);
    }
}

/// Runs the work on its own runtime.
pub(super) fn measured<T>(work: impl Future<Output = T>) -> (T, Cost) {
    let before = reset_peak();
    let (done, time) = toolcrib_clock::measured(work);
    (done, Cost { time, grown_mib: peak().saturating_sub(before) / 1024 })
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
