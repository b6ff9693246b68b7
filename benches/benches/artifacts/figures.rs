//! The tables.

use serde_json::{Value, json};
use toolcrib_benches::{Cell, Outcome, Table, in_processes, median, quantile};

use crate::{
    COMMAND,
    beside::ripgrep,
    contents::{DOCUMENT, LOG, Place},
    role::{Found, Role},
};

/// Number of repetitions of each search, alternating with ripgrep.
const ROUNDS: usize = 7;

/// Number of repetitions of other slow operations.
const TIMES: usize = 3;

/// Number of ranges read.
const RANGES: usize = 2_000;

/// Number of bytes written.
const WRITTEN: u64 = 2_000_000_000;

/// Bytes per microsecond, which equals megabytes per second.
fn rate(bytes: u64, micros: f64) -> f64 {
    bytes as f64 / micros
}

fn alone(role: &Role, times: usize) -> Outcome<Vec<Found>> {
    let found = in_processes(times, &[serde_json::to_string(role)?])?;
    Ok(found.into_iter().flatten().collect())
}

fn middle(found: &[Found]) -> f64 {
    median(found.iter().flat_map(|found| found.times.iter().copied()))
}

fn memory(found: &[Found]) -> f64 {
    found.iter().map(|found| found.peak_rss).fold(0.0, f64::max)
}

/// The answer of one of the processes; all are the same.
fn answer(found: &[Found]) -> Outcome<&Result<String, String>> {
    Ok(&found.last().ok_or("no process was started")?.answer)
}

/// Searches of the log, for a text with seven matches, or with none.
pub(crate) fn searches(place: &Place) -> Outcome<Table> {
    const GOAL: (f64, f64) = (500.0, 64.0);
    let searches = [
        ("a text that is not there", "connection reset by peer", ""),
        ("a text", "disk quota exceeded", ""),
        ("a text in whatever case", "Disk Quota Exceeded", "i"),
        ("two texts in one line", "ERROR .*quota", ""),
        ("an end of a line", r"took=\d{4}ms$", ""),
        ("words of classes alone", r"\b[a-z]{4} [a-z]{5} [a-z]{8}\b", ""),
    ];
    let file = place.file()?;
    let mut rows = Vec::new();
    for (name, pattern, flags) in searches {
        let role = Role::Search {
            folder: place.folder().to_owned(),
            pattern: pattern.to_owned(),
            flags: flags.to_owned(),
        };
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.extend(alone(&role, 1)?);
            let (time, lines) = ripgrep(&file, pattern, flags)?;
            let found = answer(&ours)?.as_ref().map_err(String::as_str)?;
            let ours_found = found.lines().filter(|line| line.contains("quota")).count();
            if ours_found != lines {
                return Err(format!("`{pattern}`: {ours_found} lines, ripgrep {lines}").into());
            }
            theirs.push(time);
            ratios.extend(ours.last().and_then(|ours| ours.times.first()).map(|ours| ours / time));
        }
        rows.push(vec![
            name.into(),
            Cell::Text(format!("`{pattern}`")),
            rate(LOG, middle(&ours)).into(),
            GOAL.0.into(),
            rate(LOG, median(theirs)).into(),
            median(ratios).into(),
            memory(&ours).into(),
            GOAL.1.into(),
        ]);
    }
    Ok(Table {
        title: "A search of a log of 1 GB",
        command: COMMAND,
        columns: vec![
            "for",
            "pattern",
            "MB/s",
            "goal",
            "ripgrep, MB/s",
            "our time / ripgrep's",
            "peak memory, MiB",
            "goal, MiB",
        ],
        rows,
    })
}

/// Ranges of the log that were not read before.
pub(crate) fn ranges(place: &Place) -> Outcome<Table> {
    const GOAL: f64 = 1_000.0;
    let mut rows = Vec::new();
    for (name, lines) in [("20 lines", true), ("2,000 bytes", false)] {
        let folder = place.folder().to_owned();
        let found = alone(&Role::Ranges { folder, count: RANGES, lines }, TIMES)?;
        answer(&found)?.as_ref().map_err(String::as_str)?;
        let times = || found.iter().flat_map(|found| found.times.iter().copied());
        rows.push(vec![
            name.into(),
            median(times()).into(),
            quantile(times(), 0.99).into(),
            GOAL.into(),
            memory(&found).into(),
        ]);
    }
    Ok(Table {
        title: "A random range of it",
        command: COMMAND,
        columns: vec!["read by the tool", "median, µs", "p99, µs", "goal, µs", "peak memory, MiB"],
        rows,
    })
}

/// A log of two gigabytes, streamed into the file store.
pub(crate) fn writing(place: &Place) -> Outcome<Table> {
    const GOAL: f64 = 32.0;
    let mut rows = Vec::new();
    for (name, redacts) in [("as it comes", false), ("redacted on the way", true)] {
        let mut found = Vec::new();
        for _ in 0..TIMES {
            let role = Role::Write { folder: place.folder().to_owned(), bytes: WRITTEN, redacts };
            found.extend(alone(&role, 1)?);
            place.clear()?;
        }
        answer(&found)?.as_ref().map_err(String::as_str)?;
        rows.push(vec![
            name.into(),
            rate(WRITTEN, middle(&found)).into(),
            memory(&found).into(),
            GOAL.into(),
        ]);
    }
    Ok(Table {
        title: "A result of 2 GB, kept in files",
        command: COMMAND,
        columns: vec!["written", "MB/s, with making it", "peak memory, MiB", "goal, MiB"],
        rows,
    })
}

/// Queries of a JSON document of 100 MB.
pub(crate) fn queries(place: &Place) -> Outcome<Table> {
    let asked: [(&str, &str, Value); 6] = [
        ("a JSONPath over all of it", "path", json!({ "path": "$.orders[?@.total > 9999].id" })),
        ("a JSONPath over a part", "path", json!({ "path": "$.of", "at": "/page" })),
        ("the value of all of it", "get", json!({})),
        ("its shape", "type", json!({ "at": "/orders" })),
        (
            "a filter that nothing passes",
            "filter",
            json!({ "at": "/orders", "field": "total", "op": "gt", "value": 1e9 }),
        ),
        ("items at its end", "slice", json!({ "at": "/orders", "start": 900_000, "end": 900_010 })),
    ];
    let mut rows = Vec::new();
    for (name, query, args) in asked {
        let folder = place.folder().to_owned();
        let found = alone(&Role::Query { folder, query: query.to_owned(), args }, TIMES)?;
        let became = match answer(&found)? {
            Ok(_) => "answered",
            Err(why) if why.contains("too much to be read as a whole") => "refused",
            Err(why) => return Err(format!("{name}: {why}").into()),
        };
        let time = middle(&found);
        rows.push(vec![
            name.into(),
            Cell::Text(format!("`{query}`")),
            became.into(),
            (time / 1000.0).into(),
            rate(DOCUMENT, time).into(),
            memory(&found).into(),
        ]);
    }
    Ok(Table {
        title: "A JSON document of 100 MB",
        command: COMMAND,
        columns: vec!["asked for", "query", "is", "ms", "MB/s", "peak memory, MiB"],
        rows,
    })
}
