//! Possible catalogs, and the findings about them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests"
)]

mod formats;
mod harm;
mod hostile;
mod instructions;
mod names;
mod properties;
mod real;
mod rules;
mod support;
