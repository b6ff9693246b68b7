//! An engine as an MCP server: `tools/list` is its menu, `tools/call` its pipe.
//!
//! A client of an era with sessions has a separate [`Turn`](toolcrib_engine::Turn), from
//! `initialize` until its connection ends, and is offered `read_skill`. In the stateless era
//! (2026-07-28) each request has a separate turn, so `read_skill` is not offered: skills are preset,
//! by [`Access`] or by the endpoint `/mcp/skill/S`. What restricts later requests is remembered for
//! the tenant and the principal.
//!
//! # Layers
//!
//! - `serve`: standard input and output; HTTP, with its routes and sessions.
//! - `methods`: the table of methods, and a file for each group of them.
//! - `gateway`: the public [`Gateway`] and its builder.
//! - `client`: a client's connection, session and requests, and what all clients share.
//! - `access`: who may connect, what they may do, and the record of it.
//! - `wire`: messages, headers and responses.
//! - `error`: the errors of a gateway.

mod access;
mod client;
mod error;
mod gateway;
mod methods;
mod serve;
mod wire;

#[doc(hidden)]
pub use self::client::judged::judged_offer;
pub use self::{
    access::{
        Access, Fence, HttpAccess,
        access_log::{AccessEntry, ListedTool},
        limits::CallLimits,
        log_health::LogHealth,
        oauth::{ResourceServer, TokenAlgorithm},
        readiness::Readiness,
        replicas::Replicas,
        tls::Tls,
    },
    client::callers::CallerRestrictions,
    error::GatewayError,
    gateway::{Gateway, GatewayBuilder, ReplacedConfig},
    serve::sessions::MAX_SESSIONS,
};
