use std::{fmt, time::Duration};

/// Limits on a program's use of resources, enforced by the kernel. `None` keeps the host's own
/// limit. A lower limit of the host stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Bytes of address space of each process; 1 GiB by default. Address space is more than memory:
    /// some runtimes (Node, the JVM) reserve far more than they use, and need more or `None`.
    pub memory: Option<u64>,
    /// Processes and threads at the same time, of the program and all its child processes together;
    /// 1,024 by default, at least 2 for root. If [`process_limit`](super::process_limit) is an
    /// error, they are not limited.
    pub processes: Option<u32>,
    /// Bytes of each written file; 4 GiB by default. A process that writes more gets SIGXFSZ.
    pub file_size: Option<u64>,
    /// CPU time of each process, in whole seconds; 10 minutes by default. At the limit it gets
    /// SIGXCPU, a second later SIGKILL.
    pub cpu_time: Option<Duration>,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            memory: Some(1024 * 1024 * 1024),
            processes: Some(1024),
            file_size: Some(4 * 1024 * 1024 * 1024),
            cpu_time: Some(Duration::from_secs(600)),
        }
    }
}

/// The limits that are set, in one line for operators.
impl fmt::Display for ProcessLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, processes, file_size, cpu_time } = *self;
        let known = [
            memory.map(|bytes| format!("{bytes} bytes of address space")),
            processes.map(|most| format!("{most} processes")),
            file_size.map(|bytes| format!("{bytes} bytes per file")),
            cpu_time.map(|time| format!("{time:?} of CPU time")),
        ];
        let known: Vec<_> = known.into_iter().flatten().collect();
        match known.as_slice() {
            [] => f.write_str("no limits"),
            known => f.write_str(&known.join(", ")),
        }
    }
}
