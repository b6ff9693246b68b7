//! Servers that tests, benches and people talk to instead of a model's vendor.
//!
//! | for | take |
//! |---|---|
//! | a vendor's protocol, with decisions made by any model | [`ModelServer`], [`Protocol`] |
//! | what was sent | [`Recorder`], [`Recorded`] |
//! | an answer that breaks off, stalls, or is no answer | [`CannedServer`], [`Reply`] |
//!
//! What the vendors take, refuse and answer is written down here a second time, from their own
//! documents and clients, and on purpose knows nothing of Toolcrib's adapters: an adapter that
//! misreads a vendor does not find its own mistake here.
//!
//! ```
//! use std::sync::Arc;
//!
//! use toolcrib_models::ScriptedModel;
//! use toolcrib_testbed::{ModelServer, Protocol};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = ScriptedModel::from_toml("script:hello.toml", "[[rule]]\ntext = 'hello'")?;
//! let server = ModelServer::start(Arc::new(model)).await?;
//! let base_url = server.base_url(Protocol::OpenAi);
//! # assert!(base_url.ends_with("/v1"));
//! // … talk to it …
//! for request in server.recorder().requests() {
//!     println!("{} {}", request.method, request.path_and_query);
//! }
//! # Ok(()) }
//! ```

mod cache;
mod canned;
mod conversation;
mod exchange;
mod reading;
mod recorder;
mod refusal;
mod route;
mod said;
mod server;
mod vendor;
mod wire;

pub use axum::{
    body::Bytes,
    http::{HeaderMap, Method},
};

pub use self::{
    canned::{CannedServer, Reply},
    recorder::{Recorded, Recorder},
    server::{ModelServer, ModelServerBuilder},
    vendor::Protocol,
};
