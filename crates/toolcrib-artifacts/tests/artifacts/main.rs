//! Artifacts from their callers' view: stored, shown as a handle, read, searched and queried.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod engine;
mod forged;
mod harm;
mod hostile;
mod indexes;
mod json;
mod keeping;
mod kinds;
mod pages;
mod reading;
mod searching;
mod sharing;
mod stores;
mod support;
mod surprises;
mod tables;
mod tools;
