//! The test kit from its users' view. For each clause of a contract there is an implementation that
//! violates it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod characters;
mod clock;
mod faults;
mod histories;
mod models;
mod providers;
mod recorder;
mod reducers;
mod stores;
mod support;
mod tools;
