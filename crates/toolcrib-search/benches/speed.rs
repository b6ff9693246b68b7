//! Processor time and memory of the index, over catalogs of made tools.
//!
//! `cargo xtask search-bench` runs it.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a program for developers: it prints, and may stop at an error"
)]

use std::{hint::black_box, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use toolcrib_core::Tool;
use toolcrib_search::Index;

/// Needs of each measurement.
const SEARCHES: usize = 2_000;

/// Tools that change.
const CHANGED: usize = 50;

/// The words of made tools: a few in most texts, most in few, as in natural texts.
const VERBS: [&str; 12] = [
    "list", "get", "create", "delete", "update", "search", "send", "read", "write", "move",
    "close", "merge",
];

fn main() {
    println!("| tools | index | memory | a search, median | p99 | {CHANGED} tools change |");
    println!("|---|---|---|---|---|---|");
    for count in [500, 2_000, 10_000] {
        let tools: Vec<Tool> = (0..count).map(|number| tool(number, 0)).collect();
        let began = now();
        let (info, index) = allocated(|| Index::new(&tools));
        let built = now().saturating_sub(began);
        let mut times: Vec<Duration> = (0..SEARCHES).map(|number| search(&index, number)).collect();
        times.sort_unstable();
        let changed = change(&index, tools);
        println!(
            "| {count} | {:.0} ms | {:.1} MB | {} µs | {} µs | {:.1} ms |",
            built.as_secs_f64() * 1e3,
            info as f64 / 1e6,
            times[SEARCHES / 2].as_micros(),
            times[SEARCHES * 99 / 100].as_micros(),
            changed.as_secs_f64() * 1e3,
        );
    }
}

/// The processor time of this thread: other programs do not count.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// The bytes that stay allocated.
fn allocated<T>(work: impl FnOnce() -> T) -> (i64, T) {
    let mut made = None;
    let info = allocation_counter::measure(|| made = Some(work()));
    (info.bytes_current, made.unwrap())
}

fn search(index: &Index, number: usize) -> Duration {
    let noun = noun(number * 7);
    let need = format!("{} the {noun} of a customer by its number", VERBS[number % VERBS.len()]);
    let began = now();
    black_box(index.search(&need, 5));
    now().saturating_sub(began)
}

/// The median time to apply a change.
fn change(index: &Index, mut tools: Vec<Tool>) -> Duration {
    let step = tools.len() / CHANGED;
    for (number, tool) in tools.iter_mut().enumerate().step_by(step) {
        *tool = self::tool(number, 1);
    }
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let began = now();
            let updated = black_box(index.updated(&tools));
            let took = now().saturating_sub(began);
            drop(updated);
            took
        })
        .collect();
    times.sort_unstable();
    times[10]
}

fn noun(number: usize) -> String {
    const PARTS: [&str; 20] = [
        "order", "invoice", "ticket", "branch", "report", "user", "page", "event", "file", "mail",
        "label", "issue", "account", "device", "region", "policy", "token", "cluster", "image",
        "backup",
    ];
    format!("{}_{}", PARTS[number % 20], PARTS[number / 20 % 20])
}

/// A tool of usual size: 60 to 80 different words.
fn tool(number: usize, version: usize) -> Tool {
    let (verb, noun) = (VERBS[number % VERBS.len()], noun(number / VERBS.len()));
    let parameter = |of: usize| {
        let text =
            format!("The {} of the {noun}, as listed by {}.", self::noun(of), VERBS[of % 12]);
        (self::noun(of), json!({ "type": "string", "description": text }))
    };
    let parameters: serde_json::Map<String, Value> =
        (1..6).map(|of| parameter(number * 3 + of * 31)).collect();
    Tool::builder(format!("{verb}_{noun}_{number}"))
        .description(format!(
            "Can {verb} a {noun} in workspace {number}. Version {version} needs permission to \
             {verb} it, returns the changed {noun} with its identifier and state, and fails if the \
             {noun} belongs to another customer or was archived meanwhile."
        ))
        .input_schema(json!({ "type": "object", "properties": parameters }))
        .handler(|_: Value, _| async { "" })
        .unwrap()
}
