//! Measures reading a range of a large file through the files capability, beside a plain read with a
//! digest of the same file. The figures are processor time of all threads, because both do the same
//! work and other programs should not count.
#![allow(clippy::disallowed_methods, reason = "it compares with the standard library")]

use std::{fs, hint::black_box, path::Path, sync::Arc, time::Duration};

use toolcrib_benches::{Cell, Outcome, Table, cpu_time, median, micros, print};
use toolcrib_capabilities::files::{Files, FilesSpec};
use toolcrib_core::{Digest, ToolContext, ToolContextParts};

/// Number of repetitions, alternating; the figures are medians.
const TIMES: usize = 30;

/// The size of the file.
const MIB: usize = 10;

/// The share of a plain read's time that a range may take.
const GOAL: f64 = 1.3;

const COMMAND: &str = "cargo bench -p toolcrib-benches --bench files";

const NAME: &str = "large.log";

fn main() -> Outcome {
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
            if read.count != lines || read.total != count {
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
    print(&[Table {
        title: "A range of a file of 10 MiB",
        command: COMMAND,
        columns: vec!["range", "ms", "plain read and SHA-256, ms", "share", "goal"],
        rows,
    }])
}

fn plain_read(path: &Path) -> Outcome<f64> {
    let began = cpu_time();
    black_box(Digest::of(fs::read(path)?));
    Ok(millis_since(began))
}

fn millis_since(began: Duration) -> f64 {
    micros(cpu_time().saturating_sub(began)) / 1000.0
}
