//! The engine from its callers' point of view: offers, calls, results.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod availability;
mod blocks;
mod budget;
mod child;
mod compose;
mod context;
mod deferral;
mod deferral_calls;
mod discovery;
mod dry_run;
mod encoder;
mod events;
mod harm;
mod inline_bodies;
mod iterations;
mod middleware;
mod personality;
mod pipe_arguments;
mod pipe_clean;
mod pipe_ports;
mod pipe_run;
mod plugins;
mod policy;
mod policy_calls;
mod policy_facts;
mod providers;
mod questions;
mod registry;
mod reliability;
mod reliability_models;
mod reliability_properties;
mod reliability_tools;
mod schemas;
mod secrets;
mod sessions;
mod skills;
mod sources;
mod support;
mod text_arguments;
mod turns;
mod turns_random;
mod why;
mod why_change;
mod why_random;
