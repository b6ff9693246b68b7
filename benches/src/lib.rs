//! What the benches of Toolcrib share: tools and agents to measure, clocks, and tables.
//!
//! The figures, and the command for each, stand in `docs/benchmarks.md`; how they are kept from
//! getting worse unseen, too.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "host crate: it looks at its own process and prints what it finds"
)]

mod clock;
mod fixture;
mod runs;
mod table;
mod wire;

pub use self::{
    clock::{cpu_time, median, micros, peak_rss, quantile},
    fixture::{Caller, Menu, call, engine, runtime, tool, tools},
    runs::{ITERATIONS, PROCESSES, Run, Runs, Times, asked, in_processes},
    table::{Cell, Outcome, Table, print},
    wire::render,
};
