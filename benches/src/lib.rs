//! Shared parts of Toolcrib's benches: tools and agents to measure, clocks, and tables.
//!
//! `docs/benchmarks.md` contains the figures and the command for each, and how regressions are
//! detected.
//!
//! # Layers
//!
//! - `session`: records of sessions.
//! - `vendor`: the vendors' APIs for benches.
//! - `runs`: complete runs of the loop in separate processes.
//! - `fixture`: tools, engines and a model for benches.
//! - `table`: results as Markdown, which is also readable on a terminal, or as JSON.
//! - `clock`: time and memory of a process.
//! - `wire`: a request in the format of OpenAI's Chat Completions, written from scratch each time.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "host crate: it looks at its own process and prints what it finds"
)]

mod clock;
mod fixture;
mod runs;
pub mod session;
mod table;
pub mod vendor;
mod wire;

pub use self::{
    clock::{cpu_time, median, micros, peak_rss, quantile},
    fixture::{Caller, Menu, agent, call, engine, runtime, tool, tools},
    runs::{ITERATIONS, PROCESSES, Run, Runs, Times, asked, in_processes},
    table::{Cell, Outcome, Table, print},
    wire::render,
};
