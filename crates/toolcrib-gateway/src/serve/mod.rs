//! The transports: standard input and output, and HTTP with its routes and sessions.

pub(crate) mod forward;
pub(crate) mod handshake;
pub(crate) mod http;
pub(crate) mod pages;
pub(crate) mod post;
pub(crate) mod routes;
pub(crate) mod sealed;
pub(crate) mod sessions;
pub(crate) mod stdio;
