//! What the servers say over a plain connection, and what those that misbehave do to an engine.
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
mod chaos;
mod failures;
mod network;
mod refused;
mod support;
