//! HTTP tools, from their declaration to what a call gives back, against a scripted server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod answering;
mod asking;
mod building;
mod failing;
mod harm;
mod secrets;
mod support;
