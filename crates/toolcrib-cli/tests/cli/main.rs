//! The program as its users meet it: real processes, real databases, a copy of the example.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod acp;
mod approvals;
mod arguments;
mod artifacts;
mod attachments;
mod cancel;
mod chat;
mod check;
mod claims;
mod command;
mod completions;
mod desk;
mod editor;
mod explain;
mod files;
mod find;
mod harm;
mod http;
mod images;
mod init;
mod lint;
mod live;
mod look_back;
mod menu;
mod model_faults;
mod models;
mod night_shift;
mod no_answer;
#[cfg(feature = "otlp")]
mod otlp;
mod own_databases;
mod personality;
mod pictures;
mod plugins;
mod problems;
mod readme;
mod run;
mod secrets;
mod sent_parts;
mod sessions;
mod skills;
mod streams;
mod texts;
mod tools;
mod trace;
mod usage;
mod vendor_answers;
mod widths;
mod workers;

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
