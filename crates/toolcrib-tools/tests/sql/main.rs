//! SQL tools, from their declaration to what a call gives back, over real databases.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod building;
mod calling;
mod exploring;
mod harm;
mod server;
mod support;
mod writing;
