//! Tools that read pages and search the web, against servers of this machine.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests, and figures for `--nocapture`"
)]

mod bounds;
mod content;
mod fetching;
mod harm;
mod searching;
mod support;
