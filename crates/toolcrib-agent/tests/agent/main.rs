//! The agent loop from its callers' view: answers, wrap-up, every way out, and remaining state.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod approving;
mod asking;
mod budgets;
mod building;
mod compaction;
mod ending;
mod events;
mod harm;
mod limits;
mod looping;
mod noticing;
mod personality;
mod reliability;
mod resuming;
mod retrying;
mod segments;
mod sent_parts;
mod sessions;
mod spans;
mod structured;
mod support;
mod trace;
mod transactions;
mod turns;
