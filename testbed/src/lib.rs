//! Servers for tests and benches, instead of a model's vendor.
//!
//! |  for| take |
//! |---|---|
//! | a conversation over HTTP with the answers of any model | [`ModelServer`] |
//! | recorded requests | [`Recorder`], [`Recorded`] |
//! | prepared answers in any protocol, also broken and stalled ones | [`CannedServer`], [`Reply`] |
//! | a PostgreSQL server | [`PostgresServer`] |
//! | small images | [`images`] |
//! | an OAuth authorization server, and an MCP server with its tokens | [`IdentityProvider`], [`ProtectedServer`] |
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolcrib_models::ScriptedModel;
//! use toolcrib_testbed::ModelServer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::from_toml("script:hello.toml", "[[rule]]\ntext = 'hello'")?;
//! let server = ModelServer::builder(Arc::new(model)).start().await?;
//! assert!(server.base_url().ends_with("/v1"));
//! // … talk to it …
//! for request in server.recorder().requests() {
//!     println!("{} {}", request.method, request.path_and_query);
//! }
//! # Ok(()) }
//! ```
//!
//! # Layers
//!
//! - `chaos`: a program that serves a model while faults are injected.
//! - `canned`: a server that sends prepared bytes, for behavior that no correct server has.
//! - `identity`: an identity provider and an MCP server that requires its tokens.
//! - `images`: small images of each format, which are whole.
//! - `model_server`: a server with OpenAI's Chat Completions, for a model of the caller.
//! - `postgres`: a PostgreSQL server of the machine's binaries, in a temporary folder, for the tests of a process.
//! - `recorder`: records requests.

mod canned;
mod identity;
pub mod images;
mod model_server;
mod postgres;
mod recorder;

pub use axum::{
    body::Bytes,
    http::{HeaderMap, Method},
};

pub use self::{
    canned::{CannedServer, Gate, Reply},
    identity::{IdentityFaults, IdentityProvider, ProtectedServer, browse, visit},
    model_server::{ModelServer, ModelServerBuilder},
    postgres::PostgresServer,
    recorder::{Recorded, Recorder},
};
