//! MCP servers as providers, and an engine as an MCP server, from outside.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod client;
mod doors;
mod gateway;
mod harm;
#[cfg(not(portable))]
mod peers;
mod wire;
