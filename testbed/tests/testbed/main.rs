//! What the servers say over a plain connection.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod answers;
mod canned;
mod failures;
mod network;
mod refused;
mod support;
