//! The gateway, as clients of both eras see it: on pipes and over HTTP.
#![cfg(feature = "gateway")]

mod artifacts;
mod calls;
mod changes;
mod ends;
mod http;
mod lists;
mod log;
mod posts;
pub(crate) mod support;
mod unreadable;
mod upstream;
pub(crate) mod web;
