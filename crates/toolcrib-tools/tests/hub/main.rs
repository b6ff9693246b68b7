//! Hubs, from their declaration to a call, against local servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod building;
mod failing;
mod harm;
mod listing;
mod recipes;
mod support;
