//! Parked calls, decisions and grants, through the pipe and over a store in a file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod attacks;
mod deciding;
mod harm;
mod setup;
