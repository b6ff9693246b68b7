//! The engine as its callers see it: what is offered, what a call may do, what comes back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod blocks;
mod breaker;
mod budget;
mod compose;
mod events;
mod iterations;
mod middleware;
mod pipe_arguments;
mod pipe_clean;
mod pipe_ports;
mod pipe_run;
mod plugins;
mod policy;
mod providers;
mod registry;
mod schemas;
mod secrets;
mod skills;
mod sources;
mod support;
mod why;
