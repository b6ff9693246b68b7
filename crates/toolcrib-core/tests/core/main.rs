//! Providers and their composition, without an engine: listings, their timing, and the number of
//! requests to a source.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod breaker;
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
