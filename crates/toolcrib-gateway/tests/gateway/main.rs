//! The gateway, as clients of both eras see it: on pipes and over HTTP.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod artifacts;
mod asks;
mod calls;
mod changes;
mod content;
mod doors;
mod endpoints;
mod ends;
mod harm;
mod http;
mod late;
mod lists;
mod log;
mod missing;
mod oauth;
mod own_names;
mod posts;
mod replicas;
mod rounds;
mod skills;
mod subscribers;
mod support;
mod ttl;
mod unreadable;
mod upstream;
mod web;
mod whole;
