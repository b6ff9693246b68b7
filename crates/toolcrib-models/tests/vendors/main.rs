//! Models behind the APIs of their vendors, as their users see them: a request goes in, bytes go
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

mod anthropic;
mod gemini;
mod ollama;
mod openai;

#[path = "../oracle/mod.rs"]
mod oracle;
