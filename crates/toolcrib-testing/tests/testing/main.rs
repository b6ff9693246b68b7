//! The kit as its users see it. For each rule of a contract check there is an implementation that
//! breaks it.
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
mod support;
mod tools;
