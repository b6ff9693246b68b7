//! Models with the APIs of their vendors, from a user's point of view: a request goes in, bytes go
//! over the wire, an answer comes out.
#![cfg(feature = "vendors")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

mod alternating;
mod anthropic;
mod building;
mod connections;
mod conversations;
mod faults;
mod gemini;
mod harm;
mod listing;
mod ollama;
mod openai;
mod reveals;
mod schemas;
mod sent_parts;

#[path = "../oracle/mod.rs"]
mod oracle;
