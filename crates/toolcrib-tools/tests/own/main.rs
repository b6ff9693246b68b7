//! The kinds `todo`, `memory` and `clarify`, with real files and SQLite.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the tests look at the files from outside")]

mod asking;
mod harm;
mod keys;
mod remembering;
mod searching;
mod support;
mod tasks;
