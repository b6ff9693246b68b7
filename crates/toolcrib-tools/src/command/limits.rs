//! The limits of a program of a tool or an MCP server, and which of them ended it.

use std::{
    ops::{RangeFrom, RangeInclusive},
    time::Duration,
};

use toolcrib_capabilities::process::{ExceededLimit, ProcessEnd, ProcessLimits};
use toolcrib_config::{Located, Spot, Table};

/// With less memory a program cannot start.
const MEMORY: RangeFrom<u64> = 1 << 20..;
/// The kernel cannot limit root to less than 2, and no system supports more than 4 million.
const PROCESSES: RangeInclusive<u32> = 2..=4_000_000;
/// The permitted file sizes.
const FILE: RangeFrom<u64> = 1..;

/// The limits that a section sets.
#[derive(Debug, Default)]
pub struct ProcessLimitsSection {
    memory: Option<Located<u64>>,
    total_memory: Option<Located<u64>>,
    processes: Option<Located<u32>>,
    file: Option<Located<u64>>,
    cpu: Option<Located<Duration>>,
}

impl ProcessLimitsSection {
    /// The keys of the limits.
    pub const KEYS: [&str; 5] =
        ["memory_max", "total_memory_max", "processes_max", "file_max", "cpu_max"];

    /// Reads the keys; problems are recorded.
    pub fn read(table: &Table<'_>) -> Self {
        Self {
            memory: table.value("memory_max").and_then(|value| value.size(MEMORY)),
            total_memory: table.value("total_memory_max").and_then(|value| value.size(MEMORY)),
            processes: table.value("processes_max").and_then(|value| value.integer(PROCESSES)),
            file: table.value("file_max").and_then(|value| value.size(FILE)),
            cpu: table.value("cpu_max").and_then(|value| value.duration()),
        }
    }

    /// The limits, with those of `default` where none is set.
    pub fn or(&self, default: ProcessLimits) -> ProcessLimits {
        fn value<T: Copy>(set: Option<&Located<T>>) -> Option<T> {
            set.map(|set| set.value)
        }
        ProcessLimits {
            memory: value(self.memory.as_ref()).or(default.memory),
            total_memory: value(self.total_memory.as_ref()).or(default.total_memory),
            processes: value(self.processes.as_ref()).or(default.processes),
            file_size: value(self.file.as_ref()).or(default.file_size),
            cpu_time: value(self.cpu.as_ref()).or(default.cpu_time),
        }
    }

    /// The keys that are set, with their positions.
    pub fn keys(&self) -> impl Iterator<Item = (&'static str, &Spot)> {
        let places = [
            self.memory.as_ref().map(|set| &set.at),
            self.total_memory.as_ref().map(|set| &set.at),
            self.processes.as_ref().map(|set| &set.at),
            self.file.as_ref().map(|set| &set.at),
            self.cpu.as_ref().map(|set| &set.at),
        ];
        Self::KEYS.into_iter().zip(places).filter_map(|(key, at)| Some((key, at?)))
    }
}

/// The cause of the end of a program that did not end by itself, and the key of the limit that was exceeded or may have
/// been.
pub(crate) fn ended_by(end: ProcessEnd, limits: ProcessLimits) -> String {
    if let Some(limit) = end.exceeded() {
        let key = match limit {
            ExceededLimit::CpuTime => " (`cpu_max`)",
            ExceededLimit::FileSize => " (`file_max`)",
            ExceededLimit::Memory(_) => " (`memory_max`)",
            ExceededLimit::TotalMemory(_) => " (`total_memory_max`)",
            _ => "",
        };
        return format!("{end}: it exceeded its limit on {limit}{key}");
    }
    let known = [("memory_max", limits.memory), ("total_memory_max", limits.total_memory)];
    let known = known.map(|(key, limit)| Some(format!("`{key}` is {} MiB", limit? >> 20)));
    let known: Vec<_> = known.into_iter().flatten().collect();
    match end.may_lack_memory() && !known.is_empty() {
        true => format!("{end}; if it needs more memory: {}", known.join(", ")),
        false => end.to_string(),
    }
}
