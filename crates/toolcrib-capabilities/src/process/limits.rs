use std::{fmt, time::Duration};

/// Limits on a program's use of resources, enforced by the kernel except where a field says otherwise.
/// `None` keeps the host's own limit. A lower limit of the host stays.
///
/// Memory is what a process uses: anonymous pages, pages of shared memory, pages in swap. Reserved
/// addresses and mapped files are not counted. On Linux the host measures it up to 200 times a second, with
/// at most a fifth of a core, and kills the program with all its child processes at a limit. A program can
/// exceed it by what it fills between two measurements. Memory that is shared but neither mapped nor an
/// open file, such as a detached System V segment, is not counted. In addition no process gets more private
/// writable address space than the larger of both limits (`RLIMIT_DATA`). Without the kernel's list of child
/// processes (`CONFIG_PROC_CHILDREN`), and on other systems, `memory` limits address space instead, and
/// `total_memory` nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Bytes of memory of each process; 1 GiB by default.
    pub memory: Option<u64>,
    /// Bytes of memory of the program and all its child processes together; 4 GiB by default. Shared
    /// pages are counted once.
    pub total_memory: Option<u64>,
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
            total_memory: Some(4 * 1024 * 1024 * 1024),
            processes: Some(1024),
            file_size: Some(4 * 1024 * 1024 * 1024),
            cpu_time: Some(Duration::from_secs(600)),
        }
    }
}

/// The limits that are set, in one line for operators.
impl fmt::Display for ProcessLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, total_memory, processes, file_size, cpu_time } = *self;
        let known = [
            memory.map(|bytes| format!("{bytes} bytes of memory per process")),
            total_memory.map(|bytes| format!("{bytes} bytes of memory in total")),
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

/// A limit of [`ProcessLimits`] that a program exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExceededLimit {
    /// The CPU time of one process.
    CpuTime,
    /// The size of a written file.
    FileSize,
    /// The memory of one process, in bytes.
    Memory(u64),
    /// The memory of all processes together, in bytes.
    TotalMemory(u64),
}

/// The limited resource, as in "it exceeded its limit on …".
impl fmt::Display for ExceededLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CpuTime => f.write_str("CPU time"),
            Self::FileSize => f.write_str("file size"),
            Self::Memory(bytes) => write!(f, "the memory of one process, {} MiB", bytes >> 20),
            Self::TotalMemory(bytes) => {
                write!(f, "the memory of all its processes, {} MiB", bytes >> 20)
            }
        }
    }
}
