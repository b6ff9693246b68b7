//! A client: its connection, its session and its requests, and what all clients of a gateway share.

pub(crate) mod announcements;
pub(crate) mod callers;
pub(crate) mod changes;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod context;
pub(crate) mod downstream;
pub(crate) mod judged;
pub(crate) mod links;
pub(crate) mod log_messages;
pub(crate) mod missing;
pub(crate) mod names;
pub(crate) mod offers;
pub(crate) mod progress;
pub(crate) mod request;
pub(crate) mod request_servers;
pub(crate) mod rounds;
pub(crate) mod sender;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod shared_session;
pub(crate) mod span;
pub(crate) mod state;
pub(crate) mod step;
pub(crate) mod subscription;
