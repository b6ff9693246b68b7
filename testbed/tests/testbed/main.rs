//! The servers' raw responses, and the effect of misbehaving ones on an engine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod canned;
mod chaos;
mod support;
