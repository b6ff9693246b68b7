//! The database handle against real files, real processes and real kills.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests"
)]

mod files;
mod harm;
mod inspecting;
mod making;
mod processes;
mod running;
mod statements;
mod support;
