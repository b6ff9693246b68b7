//! Providers and how they are put together, without an engine: what is listed, when, and how often
//! a source is asked.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod cached;
mod cached_stale;
mod decorators;
mod failures;
mod harm;
mod hubs;
mod merge;
mod registry;
mod registry_properties;
mod stacks;
mod support;
mod tenants;
