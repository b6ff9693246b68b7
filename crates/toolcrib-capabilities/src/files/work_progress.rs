//! Reports of work on files that takes long, for the person who waits.

use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolcrib_core::{__internal::ProgressPace, Progress, ProgressCount, ToolContext};

/// The bytes and the names after which a report follows. Shorter work is reported only if it is slow.
const REPORTED_BYTES: u64 = 32 * 1024 * 1024;
const REPORTED_NAMES: u64 = 10_000;

/// The time after which slow work is reported.
const REPORTED_TIME: Duration = Duration::from_secs(2);

const KIB: u64 = 1024;
const MIB: u64 = 1024 * 1024;

/// The work.
pub(super) enum FileWork<'a> {
    /// A file of this number of bytes is read.
    Read { path: &'a str, size: u64 },
    /// Files are searched.
    Search,
    /// Folders are listed.
    List,
}

/// Counts the work of one call, and reports it at a limited rate. Threads share it.
pub(super) struct WorkProgress<'a> {
    cx: &'a ToolContext,
    work: FileWork<'a>,
    counts: Mutex<Counts>,
}

struct Counts {
    bytes: u64,
    names: u64,
    files: u64,
    /// As they were reported, and when.
    reported: (u64, u64),
    reported_at: Instant,
    pace: ProgressPace,
    next: tokio::time::Instant,
}

impl<'a> WorkProgress<'a> {
    pub(super) fn new(cx: &'a ToolContext, work: FileWork<'a>) -> Self {
        let counts = Counts {
            bytes: 0,
            names: 0,
            files: 0,
            reported: (0, 0),
            reported_at: Instant::now(),
            pace: ProgressPace::default(),
            next: tokio::time::Instant::now(),
        };
        Self { cx, work, counts: Mutex::new(counts) }
    }

    /// Counts bytes that were read.
    pub(super) fn read(&self, bytes: usize) {
        self.count(|counts| counts.bytes += bytes as u64);
    }

    /// Counts a name that was seen.
    pub(super) fn seen(&self) {
        self.count(|counts| counts.names += 1);
    }

    /// Counts a file that is begun.
    pub(super) fn begun(&self) {
        self.counts.lock().files += 1;
    }

    fn count(&self, add: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.lock();
        add(&mut counts);
        let (bytes, names) = counts.reported;
        let is_due = counts.bytes - bytes >= REPORTED_BYTES
            || counts.names - names >= REPORTED_NAMES
            || counts.reported_at.elapsed() >= REPORTED_TIME;
        if !is_due || tokio::time::Instant::now() < counts.next {
            return;
        }
        counts.reported = (counts.bytes, counts.names);
        counts.reported_at = Instant::now();
        counts.next = counts.pace.count();
        let report = self.report(&counts);
        drop(counts);
        self.cx.progress(report);
    }

    fn report(&self, Counts { bytes, names, files, .. }: &Counts) -> Progress {
        let mut message = String::new();
        match &self.work {
            FileWork::Read { path, size } => {
                let _ = write!(message, "read {} of {} of {path}", shown(*bytes), shown(*size));
                #[expect(clippy::cast_precision_loss, reason = "for people")]
                let count = ProgressCount { done: *bytes as f64, total: Some(*size as f64) };
                let percent = bytes.saturating_mul(100) / (*size).max(1);
                let progress = Progress::user(message);
                let percent = u8::try_from(percent).unwrap_or(100);
                return Progress { count: Some(count), ..progress.percent(percent) };
            }
            FileWork::Search if *bytes > 0 => {
                let plural = if *files == 1 { "" } else { "s" };
                let _ = write!(message, "searched {} in {files} file{plural}", shown(*bytes));
            }
            FileWork::Search | FileWork::List => {
                let _ = write!(message, "looked at {names} names");
            }
        }
        Progress::user(message)
    }
}

/// A size for people.
fn shown(bytes: u64) -> String {
    match bytes {
        0..MIB => format!("{} KiB", bytes / KIB),
        _ => format!("{} MiB", bytes / MIB),
    }
}
