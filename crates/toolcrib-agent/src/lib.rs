//! ```
//! use toolcrib_agent::{Agent, RunOptions};
//! use toolcrib_core::Tool;
//! use toolcrib_models::ScriptedModel;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let model = ScriptedModel::from_toml("script.toml", r#"
//!     [[rule]]
//!     called = "clock"
//!     text = "It is {{ results.clock }}."
//!     [[rule]]
//!     calls = [{ tool = "clock" }]
//! "#)?;
//! let clock = Tool::builder("clock")
//!     .description("The time now.")
//!     .handler(|_: serde_json::Value, _| async { "12:30" })?;
//! let agent = Agent::builder().model(model).tool(clock).build()?;
//! let answer = agent.run("What time is it?", RunOptions::default()).await.into_answer()?;
//! assert!(answer.starts_with("It is 12:30"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An agent loop on Toolcrib's engine: it calls the model, runs its tool calls through the engine's
//! pipe, keeps the conversation, and wraps up at the iteration limit.
//!
//! It adds nothing to the decisions of an [`Engine`](toolcrib_engine::Engine); a custom loop has
//! the same menu, the same pipe and the same events.
//!
//! # Layers
//!
//! - `builder`: the builder of an agent, and why one cannot be built.
//! - `structured`: answers that are JSON of a schema.
//! - `agent`: the agent.
//! - `run`: a run.
//! - `outcome`: the outcome of a run.
//! - `options`: settings of an agent and options of a run.
//! - `session`: sessions.
//! - `models`: the models of an agent.
//! - `tally`: the use of a run and its child agents, counted towards the limits of each of them.
//! - `limits`: the limits of a run.

mod agent;
mod builder;
mod limits;
mod models;
mod options;
mod outcome;
mod run;
mod session;
mod structured;
pub(crate) mod tally;

pub use self::{
    agent::Agent,
    builder::{AgentBuilder, AgentError},
    limits::{Allowance, Budget, TurnLimits},
    options::{RunOptions, Settings},
    outcome::{EndReason, MenuSummary, ResultChars, RunError, RunOutcome},
    run::Run,
    session::Session,
    structured::{AnswerSchema, AnswerSchemaError, StructuredOutcome},
};
