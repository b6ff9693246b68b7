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
mod callers;
mod cancel;
mod chat;
mod check;
mod check_server;
mod claims;
mod clients;
mod command;
mod deploy;
mod desk;
mod editor;
mod explain;
mod files;
mod find;
mod five_hundred;
mod harm;
mod http;
mod hub;
mod images;
mod init;
mod lint;
mod live;
mod lock;
mod look_back;
mod mcp;
mod menu;
mod model_faults;
mod models;
mod night_shift;
mod no_answer;
mod oauth;
mod operate;
#[cfg(feature = "otlp")]
mod otlp;
mod own_databases;
mod peers;
mod personality;
mod plugins;
mod problems;
mod readme;
mod run;
mod sandbox;
mod secrets;
mod sent_parts;
mod serve;
mod server_skills;
mod sessions;
mod skills;
mod streams;
mod support;
mod terminal;
mod texts;
mod tools;
mod trace;
mod usage;
mod vendor_answers;
mod widths;
mod workers;
