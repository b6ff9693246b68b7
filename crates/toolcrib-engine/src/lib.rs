//! The engine of Toolcrib, used by the library, the agent loop, the command line and the gateway.
//! Per iteration it discovers and composes the tools that a model may see. Every call passes one
//! pipe, which limits it and cleans its result.
//!
//! ```text
//! Engine::turn ─▶ Turn::iteration ─▶ Iteration::menu … Iteration::execute
//!                  │ discover  (discover.rs)       │ resolve → … → record  (pipe/)
//!                  └ compose   (compose/)          └ one file per stage
//! ```

mod builder;
mod called_name;
mod child;
mod clarify;
mod compose;
mod deferral;
mod discover;
mod engine;
mod halt;
mod json;
mod parts;
mod person;
mod personality;
mod pipe;
mod plugin;
mod policy;
mod questions;
mod redactor;
mod reducers;
mod reliability;
mod resources;
mod runner;
mod secrets;
mod session_state;
mod sessions;
mod skills;
mod sources;
mod turn;
mod user_future;
mod validators;

pub use self::{
    builder::{BuildError, EngineBuilder},
    called_name::offered_name,
    child::{ChildAgents, ParentTurn},
    compose::{Cause, CauseStage, Explanation, FactChange, MissingTool, SmallestChange, Withheld},
    deferral::{CALL_TOOL, Deferral, FOUND_PER_NEED, Reveal, RevealedTools, SEARCH_TOOLS},
    engine::Engine,
    halt::HaltedByRule,
    parts::Limits,
    personality::{DEFAULT_PERSONALITY, DuplicatePersonalityError, Personality},
    plugin::{Plugin, PluginError, PluginRegistrar},
    questions::{AnswerError, NotAnsweredError, OpenQuestion, Question, Questions},
    redactor::{REDACTED, RedactedStream, Redactor, SecretTooShortError},
    reducers::{DuplicateReducerError, ReducerRegistration, Reducers},
    reliability::{
        Attempts, ExhaustedReason, FailedAttempt, Health, RecoveryStep, ReliabilityContext,
        RetryBudget, RetryExhausted,
    },
    runner::{TurnOutcome, TurnRunner},
    skills::{
        CurrentSkillStep, DEACTIVATE_SKILL, InvalidSkillError, LIST_SKILLS, LoadedSkills,
        MAX_SKILL_FILE, OnSkip, READ_SKILL, SKILL_TOOLS, SKIP_STEP, Skill, SkillFileError,
        SkillFiles, SkillSource, SkillStep, Skills, ToolsMode,
    },
    sources::{Notice, OnFailure},
    turn::{
        Executor, ExecutorError, ExecutorResult, Iteration, IterationContext, IterationListing,
        MiddlewareError, PendingIteration, Turn, TurnEnd, TurnError, TurnOptions,
    },
};
pub use toolcrib_search::Encoder;

/// Helpers that the crates of this workspace share. Not part of the public API: they may change in
/// any version.
#[doc(hidden)]
pub mod __internal {
    pub use crate::pipe::{JudgedOnly, is_data_note};
}
