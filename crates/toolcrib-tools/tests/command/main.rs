//! Command tools, from their declaration to what a call gives back, with real programs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod building;
mod calling;
mod failing;
mod harm;
mod keeping;
mod passing;
mod secrets;
mod support;
