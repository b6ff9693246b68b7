//! Time and memory of a process.

use std::{fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this process up to now, all threads together: other programs and waiting do not
/// count.
pub fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime).try_into().unwrap_or_default()
}

/// Peak memory of this process so far, in MiB; 0 if the kernel does not report it: only Linux does.
pub fn peak_rss() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

/// The median; of an even number of values the upper one. 0 without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The quantile of `share`, from 0 to 1. 0 without values.
pub fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    let at = (values.len() as f64 * share) as usize;
    values.get(at).or(values.last()).copied().unwrap_or_default()
}

/// A duration in microseconds.
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
