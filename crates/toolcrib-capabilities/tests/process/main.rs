//! Process trees, with real programs that do what they can to get away.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests"
)]

mod attacks;
mod ending;
mod harm;
mod hosts;
mod sandbox;
mod starting;
mod streams;
mod support;
mod talking;
