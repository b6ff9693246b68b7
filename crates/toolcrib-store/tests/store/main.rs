//! The stores against their contract, and the file of the SQLite store.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod contract;
mod file;
mod postgres;
mod torn;
