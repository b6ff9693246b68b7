//! MCP servers as providers, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod client;
mod configs;
mod files;
mod harm;
mod oauth;
#[cfg(not(portable))]
mod peers;
mod wire;
