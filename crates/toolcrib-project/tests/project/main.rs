//! Projects on disk, sound and broken, through the public API alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod all_sections;
mod alternatives;
mod any_text;
mod artifacts;
mod broken;
mod broken_kinds;
mod broken_secrets;
mod broken_tools;
mod documented;
mod dry_run;
mod files;
mod folder;
mod harm;
mod hooks;
mod hub;
mod install;
mod keys;
mod mcp;
mod models;
mod openapi;
mod own;
mod own_databases;
mod personality;
mod plugins;
mod policy;
mod reliability;
mod sandbox;
mod schema;
mod skills;
mod slips;
mod sound;
mod state;
mod task;
mod template;
mod terminal;
mod tool_search;
mod trust_rules;
mod web;
