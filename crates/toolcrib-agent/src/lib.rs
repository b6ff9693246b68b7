//! An agent loop on Toolcrib's engine: it asks the model, takes its calls through the engine's
//! pipe, keeps the history, and wraps up when it runs out of steps.
//!
//! It adds nothing to what an [`Engine`](toolcrib_engine::Engine) decides; a loop of one's own has
//! the same menu, the same pipe and the same events.

mod agent;
mod builder;
mod models;
mod options;
mod outcome;
mod run;

pub use self::{
    agent::Agent,
    builder::{AgentBuilder, AgentError},
    options::{RunOptions, Settings},
    outcome::{MenuSummary, ResultChars, RunError, RunOutcome, Stopped},
    run::Run,
};
