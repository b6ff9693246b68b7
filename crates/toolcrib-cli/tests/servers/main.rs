//! The program before and behind MCP servers, and as a gateway: real servers, real clients.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod callers;
mod check_server;
mod clients;
mod deploy;
mod five_hundred;
mod hub;
mod lock;
mod mcp;
mod oauth;
mod operate;
mod peers;
mod replicas;
mod sandbox;
mod serve;
mod server_skills;

#[path = "../support/gateway.rs"]
#[allow(dead_code, reason = "the other test program uses the rest")]
mod gateway;
#[path = "../support/mcp_server.rs"]
#[allow(dead_code, reason = "the other test program uses the rest")]
mod mcp_server;
#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "the other test program uses the rest")]
mod support;
#[path = "../support/terminal.rs"]
#[allow(dead_code, reason = "the other test program uses the rest")]
mod terminal;
