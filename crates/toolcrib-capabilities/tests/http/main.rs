//! The HTTP client against real sockets, most of them scripted byte for byte.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod connections;
mod harm;
mod limits;
mod reach;
mod redirects;
mod secure;
mod streams;
mod support;
