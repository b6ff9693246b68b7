//! Bounds the memory of a running program and its child processes.
//!
//! The kernel's limits count address space, which some runtimes reserve and never use, and they count it
//! for each process alone. So a thread measures the memory that is in use. It measures again before the
//! program could have reached its limit at [`FILL_RATE`].
//!
//! A process's memory is its anonymous pages, its pages of shared memory, and its pages in swap. Mapped
//! files are left out: the kernel can drop their pages. The sum over all processes counts shared pages
//! several times, so it is an upper bound. Only if that exceeds the limit, the
//! [exact sum](Processes::exact_total) decides.

use std::{
    collections::HashMap,
    fs, io,
    path::Path,
    sync::{
        Arc, OnceLock,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::{ExceededLimit, ProcessLimits, tree::TreeState};

/// Bytes per second that programs are assumed to fill at most. One core clears about 4 GiB of pages in
/// a second.
const FILL_RATE: u64 = 8 << 30;

/// The shortest and the longest time between two measurements.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// The share of a core that measuring takes at most is 1 in this number.
const SHARE: u32 = 5;

/// The limit of processes that one measurement visits.
const MAX_PROCESSES: usize = 1 << 16;

/// The limit of the bytes read of one file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Whether the host measures the memory of programs: whether the system lists the child processes of a
/// process.
pub(super) fn is_measured() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let pid = std::process::id();
        Path::new(&format!("/proc/{pid}/task/{pid}/children")).exists()
    })
}

/// The thread that measures. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct MemoryGuard {
    _end: mpsc::Sender<()>,
}

impl MemoryGuard {
    /// Measures the processes of a tree until it is dropped, and kills them if they exceed a limit.
    /// `None` without limits, or if memory is not measured on this system.
    ///
    /// `is_attended`: whether `root` and PID 1 of its children's namespace are not part of the program.
    pub(super) fn new(
        limits: ProcessLimits,
        root: u32,
        is_attended: bool,
        state: Arc<Mutex<TreeState>>,
    ) -> io::Result<Option<Self>> {
        if (limits.memory, limits.total_memory) == (None, None) || !is_measured() {
            return Ok(None);
        }
        let (sender, end) = mpsc::channel::<()>();
        let measure = move || {
            let mut interval = pause(limits, Usage::default(), Duration::ZERO);
            while end.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let began = Instant::now();
                let processes = Processes::below(root, is_attended);
                let usage = processes.usage();
                if let Some(limit) = exceeded(limits, usage, || processes.exact_total()) {
                    return state.lock().exceed(limit);
                }
                interval = pause(limits, usage, began.elapsed());
            }
        };
        thread::Builder::new().name("toolcrib-memory".to_owned()).spawn(measure)?;
        Ok(Some(Self { _end: sender }))
    }
}

/// The memory of a tree of processes, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    /// The memory of the largest process.
    largest: u64,
    /// At most that of all processes.
    total: u64,
}

fn exceeded(
    limits: ProcessLimits,
    usage: Usage,
    exact_total: impl FnOnce() -> u64,
) -> Option<ExceededLimit> {
    if let Some(limit) = limits.memory.filter(|limit| usage.largest > *limit) {
        return Some(ExceededLimit::Memory(limit));
    }
    let limit = limits.total_memory.filter(|limit| usage.total > *limit)?;
    (exact_total() > limit).then_some(ExceededLimit::TotalMemory(limit))
}

/// The time until the next measurement, after one that took `cost`.
fn pause(limits: ProcessLimits, usage: Usage, cost: Duration) -> Duration {
    let pairs = [(limits.memory, usage.largest), (limits.total_memory, usage.total)];
    let left = pairs.iter().filter_map(|(limit, used)| Some((*limit)?.saturating_sub(*used))).min();
    let safe = Duration::from_micros(left.unwrap_or(u64::MAX) / (FILL_RATE / 1_000_000));
    safe.clamp(INTERVALS.0, INTERVALS.1).max(cost * (SHARE - 1))
}

/// A process of a program.
struct ProcessEntry {
    /// The folder that describes it.
    folder: String,
    /// Its memory, in bytes.
    resident: u64,
}

/// The processes of a program.
struct Processes(Vec<ProcessEntry>);

impl Processes {
    /// A process and all its descendants; without those that only attend the program, which have copies
    /// of the host's memory.
    fn below(root: u32, is_attended: bool) -> Self {
        let mut processes = Vec::new();
        let mut waiting = vec![root];
        let mut depth = None;
        let mut visited = 0;
        while let Some(pid) = waiting.pop().filter(|_| visited < MAX_PROCESSES) {
            visited += 1;
            let folder = format!("/proc/{pid}");
            for thread in entries(&format!("{folder}/task")) {
                let children = read(&format!("{folder}/task/{thread}/children"));
                let pids = children.split_ascii_whitespace();
                waiting.extend(pids.filter_map(|pid| pid.parse::<u32>().ok()));
            }
            let status = read(&format!("{folder}/status"));
            // From the host's namespace to the innermost one.
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let numbers: Vec<_> = numbers.unwrap_or_default().split_ascii_whitespace().collect();
            let is_init = *depth.get_or_insert(numbers.len() + 1) == numbers.len()
                && numbers.last() == Some(&"1");
            if !is_attended || (pid != root && !is_init) {
                let resident = resident(&folder, &status);
                processes.push(ProcessEntry { folder, resident });
            }
        }
        Self(processes)
    }

    fn usage(&self) -> Usage {
        let resident = || self.0.iter().map(|process| process.resident);
        let files: u64 = self.memory_files().values().sum();
        Usage { largest: resident().max().unwrap_or(0), total: resident().sum::<u64>() + files }
    }

    /// The bytes of all processes, with each shared page counted once.
    fn exact_total(&self) -> u64 {
        let files = self.memory_files();
        let mappings = self.0.iter().map(|process| {
            // Without a complete description, the upper bound counts; that of a process that has ended
            // in the meantime is zero.
            let bound = || resident(&process.folder, &read(&format!("{}/status", process.folder)));
            mapped(&process.folder, &files).unwrap_or_else(bound)
        });
        mappings.sum::<u64>() + files.values().sum::<u64>()
    }

    /// The open files that exist only in memory, by inode, with their bytes: they need no mapping.
    fn memory_files(&self) -> HashMap<u64, u64> {
        use std::os::unix::fs::MetadataExt as _;
        let mut files = HashMap::new();
        for process in &self.0 {
            let descriptors = format!("{}/fd", process.folder);
            for descriptor in entries(&descriptors) {
                let path = format!("{descriptors}/{descriptor}");
                // The name first: a request for the metadata of a network's file could wait.
                if fs::read_link(&path).is_ok_and(|target| is_in_memory(&target.to_string_lossy()))
                    && let Ok(found) = fs::metadata(&path)
                {
                    files.insert(found.ino(), found.blocks() * 512);
                }
            }
        }
        files
    }
}

/// Whether a path, as the kernel shows it, is that of shared memory with a name.
fn is_in_memory(path: &str) -> bool {
    path.starts_with("/memfd:") || path.starts_with("/dev/shm/")
}

/// The memory of one process with this status, in bytes.
fn resident(folder: &str, status: &str) -> u64 {
    let of = |status: &str| {
        let fields = status.lines().filter_map(|line| {
            let names = ["RssAnon:", "RssShmem:", "VmSwap:"];
            kibibytes(names.into_iter().find_map(|name| line.strip_prefix(name))?)
        });
        fields.reduce(|sum, field| sum + field)
    };
    // The first thread of a process may have ended; then another one describes its memory.
    of(status).unwrap_or_else(|| {
        let threads = entries(&format!("{folder}/task"));
        let statuses = threads.iter().map(|thread| read(&format!("{folder}/task/{thread}/status")));
        statuses.filter_map(|status| of(&status)).max().unwrap_or(0)
    })
}

/// The mapped memory of one process, in bytes, with shared pages divided by the number of their
/// processes, and without these files. `None` if not all of its mappings can be read.
fn mapped(folder: &str, files: &HashMap<u64, u64>) -> Option<u64> {
    let mut smaps = read(&format!("{folder}/smaps"));
    if smaps.is_empty() {
        let threads = entries(&format!("{folder}/task"));
        let maps = threads.iter().map(|thread| read(&format!("{folder}/task/{thread}/smaps")));
        smaps = maps.max_by_key(String::len).unwrap_or_default();
    }
    if smaps.is_empty() || smaps.len() as u64 >= MAX_FILE_BYTES {
        return None;
    }
    let mut mapping = Mapping::Anonymous;
    let mut sum = 0;
    for line in smaps.lines() {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (name, mapping) {
            ("Pss:" | "SwapPss:", Mapping::Anonymous) | ("Anonymous:" | "Swap:", Mapping::File) => {
                sum += kibibytes(rest).unwrap_or(0);
            }
            _ if !name.ends_with(':') => mapping = Mapping::of(rest, files),
            _ => {}
        }
    }
    Some(sum)
}

/// The kind of memory at a range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mapping {
    /// Memory alone, private or shared.
    Anonymous,
    /// A file, of which changed private pages are memory.
    File,
    /// A file that is counted otherwise.
    Counted,
}

impl Mapping {
    /// The mapping of a header after its addresses: permissions, offset, device, inode, path.
    fn of(header: &str, files: &HashMap<u64, u64>) -> Self {
        let mut fields = header.split_ascii_whitespace().skip(3);
        let inode = fields.next().and_then(|inode| inode.parse().ok()).unwrap_or(0);
        let path = fields.next().unwrap_or_default();
        if files.contains_key(&inode) && is_in_memory(path) {
            Self::Counted
        } else if inode == 0
            || is_in_memory(path)
            || path.starts_with("/SYSV")
            || path == "/dev/zero"
        {
            Self::Anonymous
        } else {
            Self::File
        }
    }
}

/// A number of KiB, such as `  12 kB`, in bytes.
fn kibibytes(field: &str) -> Option<u64> {
    field.split_ascii_whitespace().next()?.parse::<u64>().ok().map(|number| number * 1024)
}

/// The names in a folder of `/proc`; none if the process has ended.
#[expect(clippy::disallowed_methods, reason = "it reads about processes, not files")]
fn entries(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// A file of `/proc`; empty if the process has ended.
#[expect(clippy::disallowed_methods, reason = "it reads about processes, not files")]
fn read(path: &str) -> String {
    use io::Read as _;
    let mut bytes = Vec::new();
    let file = fs::File::open(path);
    let _ = file.and_then(|file| file.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn limits(memory: Option<u64>, total_memory: Option<u64>) -> ProcessLimits {
        ProcessLimits { memory, total_memory, ..ProcessLimits::default() }
    }

    #[test]
    fn the_exact_sum_decides_only_if_the_upper_bound_exceeds_the_limit() {
        let usage = Usage { largest: 10 * MIB, total: 30 * MIB };
        let both = limits(Some(10 * MIB), Some(30 * MIB));
        assert_eq!(exceeded(both, usage, || u64::MAX), None);
        let process = limits(Some(10 * MIB - 1), Some(1));
        assert_eq!(exceeded(process, usage, || 0), Some(ExceededLimit::Memory(10 * MIB - 1)));
        let total = limits(None, Some(20 * MIB));
        assert_eq!(exceeded(total, usage, || 20 * MIB), None);
        assert_eq!(
            exceeded(total, usage, || 20 * MIB + 1),
            Some(ExceededLimit::TotalMemory(20 * MIB))
        );
    }

    #[test]
    fn measurements_are_closer_together_near_the_limit_and_bounded_in_cost() {
        let limits = limits(Some(1024 * MIB), None);
        let at = |largest, cost| pause(limits, Usage { largest, total: 0 }, cost);
        assert_eq!(at(0, Duration::ZERO), INTERVALS.1);
        assert!(at(700 * MIB, Duration::ZERO) < at(500 * MIB, Duration::ZERO));
        assert_eq!(at(1024 * MIB, Duration::ZERO), INTERVALS.0);
        assert_eq!(at(1024 * MIB, Duration::from_millis(50)), Duration::from_millis(200));
    }

    #[test]
    fn mappings_are_sorted_by_the_kind_of_their_memory() {
        let files = HashMap::from([(7, MIB)]);
        for (header, mapping) in [
            ("rw-p 00000000 00:00 0", Mapping::Anonymous),
            ("rw-p 00000000 00:00 0                          [heap]", Mapping::Anonymous),
            (
                "rw-s 00000000 00:01 5                          /dev/zero (deleted)",
                Mapping::Anonymous,
            ),
            ("rw-s 00000000 00:01 7                          /memfd:x (deleted)", Mapping::Counted),
            (
                "rw-s 00000000 00:01 8                          /memfd:y (deleted)",
                Mapping::Anonymous,
            ),
            (
                "rw-s 00000000 00:01 9                          /SYSV00000000 (deleted)",
                Mapping::Anonymous,
            ),
            ("r--p 00000000 08:01 7                          /usr/lib/libc.so.6", Mapping::File),
        ] {
            assert_eq!(Mapping::of(header, &files), mapping, "{header}");
        }
    }
}
