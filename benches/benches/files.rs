//! Measures the files capability: reading a range of a large file, beside a plain read with a digest of
//! the same file, in processor time of all threads; and a search of a gigabyte, beside ripgrep on the
//! same folder, by the clock. Both searches use all processors, and leave out what `.ignore` names.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "it compares with the standard library and another program"
)]

use std::{
    fs,
    hint::black_box,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use toolcrib_benches::{Cell, Outcome, Table, cpu_time, median, micros, print};
use toolcrib_capabilities::files::{FileLimits, Files, FilesSpec, Search};
use toolcrib_core::{Digest, ToolContext, ToolContextParts};

/// Number of repetitions, alternating; the figures are medians.
const TIMES: usize = 30;

/// The size of the file.
const MIB: usize = 10;

/// The share of a plain read's time that a range may take.
const GOAL: f64 = 1.3;

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench files";

const NAME: &str = "large.log";

/// The number of files of a search, and the size of each.
const SEARCHED_FILES: usize = 4_000;
const SEARCHED_BYTES: usize = 256 * 1024;

/// Number of repetitions of a search, alternating.
const SEARCHES: usize = 9;

/// The word of one line in each hundredth file.
const NEEDLE: &str = "connection reset by peer";

fn main() -> Outcome {
    print(&[range_table()?, search_table()?])
}

fn search_table() -> Outcome<Table> {
    let version = Command::new("rg").arg("--version").output().map_err(|_| {
        "searches are measured beside ripgrep, and `rg` is not on the PATH; install it with `cargo \
         install ripgrep --locked`, or as the package `ripgrep` of the system"
    })?;
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.lines().next().unwrap_or_default().to_owned();
    let folder = tempfile::tempdir()?;
    let line = format!("{}\n", "2026-11-26 ok took=12ms ".repeat(5));
    let plain = line.repeat(SEARCHED_BYTES / line.len());
    for number in 0..SEARCHED_FILES {
        let below = folder.path().join(format!("part{:02}", number % 40));
        fs::create_dir_all(&below)?;
        let text = match number % 100 {
            0 => format!("{plain}error: {NEEDLE}\n"),
            _ => plain.clone(),
        };
        fs::write(below.join(format!("{number:04}.log")), text)?;
    }
    fs::write(folder.path().join(".ignore"), "part39\n")?;
    let mut limits = FileLimits::default();
    limits.max_total_bytes = 4 * 1024 * 1024 * 1024;
    limits.max_entries = SEARCHED_FILES;
    let files = Files::open(FilesSpec::new("logs", folder.path()).limits(limits))?.read_only();
    let cx = ToolContext::from(ToolContextParts::detached());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let mut rows = Vec::new();
    for (name, pattern) in [("a text", NEEDLE), ("an expression", r"error: \w+ reset")] {
        let (mut ours, mut theirs, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..SEARCHES {
            let began = Instant::now();
            let mut search = Search::new(pattern);
            search.max_matches = SEARCHED_FILES;
            let found = runtime.block_on(files.search(&cx, search));
            let one = micros(began.elapsed()) / 1000.0;
            let found = found.map_err(|error| error.message)?;
            let began = Instant::now();
            let output = Command::new("rg")
                .args(["--no-config", "--color=never", "--line-number", "--regexp", pattern, "."])
                .current_dir(folder.path())
                .output()?;
            let other = micros(began.elapsed()) / 1000.0;
            let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
            if found.is_cut || found.matches.len() != lines || lines == 0 {
                let ours = found.matches.len();
                return Err(format!("{ours} matches, and {lines} of ripgrep").into());
            }
            ours.push(one);
            theirs.push(other);
            shares.push(one / other);
        }
        rows.push(vec![
            name.into(),
            median(ours).into(),
            median(theirs).into(),
            Cell::from(median(shares)),
            GOAL.into(),
        ]);
    }
    eprintln!("beside {version}");
    Ok(Table {
        title: "A search of 4,000 files of 256 KiB",
        command: COMMAND,
        columns: vec!["for", "ms", "ripgrep, ms", "our time / ripgrep's", "goal"],
        rows,
    })
}

fn range_table() -> Outcome<Table> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(NAME);
    let line = format!("{}\n", "a line of a log ".repeat(8));
    let count = MIB * 1024 * 1024 / line.len();
    fs::write(&path, line.repeat(count))?;
    let files = Files::open(FilesSpec::new("logs", folder.path()))?.read_only();
    let reads = Some(Arc::default());
    let cx = ToolContext::from(ToolContextParts { reads, ..ToolContextParts::detached() });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    let mut rows = Vec::new();
    let ranges = [
        ("the first 100 lines", 1, 100),
        ("the last 100 lines", count - 99, 100),
        ("all", 1, count),
    ];
    for (name, first, lines) in ranges {
        let (mut ours, mut plain, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let one = plain_read(&path)?;
            let began = cpu_time();
            let read = runtime.block_on(files.read_lines(&cx, NAME, first, lines));
            let other = millis_since(began);
            let read = read.map_err(|error| error.message)?;
            if read.count != lines || read.total != Some(count) {
                return Err("the range is not what was asked for".into());
            }
            plain.push(one);
            ours.push(other);
            shares.push(other / one);
        }
        rows.push(vec![
            name.into(),
            median(ours).into(),
            median(plain).into(),
            Cell::from(median(shares)),
            GOAL.into(),
        ]);
    }
    Ok(Table {
        title: "A range of a file of 10 MiB",
        command: COMMAND,
        columns: vec!["range", "ms", "plain read and SHA-256, ms", "share", "goal"],
        rows,
    })
}

fn plain_read(path: &Path) -> Outcome<f64> {
    let began = cpu_time();
    black_box(Digest::of(fs::read(path)?));
    Ok(millis_since(began))
}

fn millis_since(began: Duration) -> f64 {
    micros(cpu_time().saturating_sub(began)) / 1000.0
}
