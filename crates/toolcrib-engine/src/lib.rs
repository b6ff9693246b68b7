//! The engine behind every door of Toolcrib: per iteration it discovers and composes what a model
//! may see, and takes calls through one pipe that bounds what they may do and cleans what they
//! bring back.
//!
//! ```text
//! Engine::turn ─▶ Turn::iteration ─▶ Iteration::menu … Iteration::execute
//!                  │ discover  (discover.rs)       │ resolve → … → record  (pipe/)
//!                  └ compose   (compose/)          └ one file per stage
//! ```

mod breaker;
mod builder;
mod compose;
mod discover;
mod engine;
mod json;
mod parts;
mod pipe;
mod plugin;
mod policy;
mod redactor;
mod secrets;
mod skills;
mod sources;
mod turn;
mod validators;

pub use self::{
    breaker::{Breaker, BreakerConfig, BreakerOpen, BreakerState, Permit},
    builder::{BuildError, EngineBuilder},
    compose::{Withheld, WithheldBy, WithheldTool},
    engine::Engine,
    parts::Limits,
    plugin::{Plugin, PluginError, PluginRegistrar},
    redactor::{REDACTED, RedactedStream, Redactor, SecretTooShort},
    skills::{DuplicateSkill, READ_SKILL, Skill, Skills},
    sources::{Notice, OnFailure},
    turn::{Iteration, IterationError, Turn, TurnError, TurnOptions},
};
