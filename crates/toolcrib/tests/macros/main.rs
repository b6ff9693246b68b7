//! `#[tool]`, as a crate that depends on the facade uses it: every tool here is called through an
//! engine. Mistakes, which do not compile, are in `tests/ui`.
//!
//! The lints are those that the macro's output passes in another crate.

#![deny(missing_docs, unreachable_pub, unsafe_code, unused, clippy::all, clippy::pedantic)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::unused_async,
    clippy::unnecessary_wraps,
    reason = "tests"
)]

mod arguments;
mod capabilities;
mod definition;
mod hostile;
mod methods;
mod mistakes;
mod own_ports;
mod ports;
mod returns;
mod running;
mod state;
mod support;
