//! The engine behind every door of Toolcrib: per iteration it discovers and composes what a model
//! may see, and takes calls through one pipe that bounds what they may do and cleans what they
//! bring back.
//!
//! ```text
//! Engine::turn ─▶ Turn::iteration ─▶ Iteration::menu … Iteration::execute
//!                  │ discover  (discover.rs)       │ resolve → … → record  (pipe/)
//!                  └ compose   (compose/)          └ one file per stage
//! ```

mod asked;
mod breaker;
mod builder;
mod compose;
mod discover;
mod engine;
mod halt;
mod json;
mod parts;
mod personality;
mod pipe;
mod plugin;
mod policy;
mod questions;
mod redactor;
mod reliability;
mod runner;
mod secrets;
mod sessions;
mod skills;
mod sources;
mod turn;
mod validators;

pub use self::{
    breaker::{Breaker, BreakerConfig, BreakerOpen, BreakerState, Permit},
    builder::{BuildError, EngineBuilder},
    compose::{
        Cause, CauseStage, FactChange, SmallestChange, Why, Withheld, WithheldBy, WithheldTool,
    },
    engine::Engine,
    halt::Halt,
    parts::Limits,
    personality::{DEFAULT_PERSONALITY, DuplicatePersonality, Personality},
    pipe::is_data_note,
    plugin::{Plugin, PluginError, PluginRegistrar},
    questions::{AnswerError, NotAnswered, OpenQuestion, Question, Questions},
    redactor::{REDACTED, RedactedStream, Redactor, SecretTooShort},
    reliability::{
        Attempts, FailedAttempt, GaveUp, GaveUpCode, Health, NextStep, Recovery, ReliabilityError,
        RetryBudget,
    },
    runner::{TurnOutcome, TurnRunner},
    skills::{
        CurrentStep, DEACTIVATE_SKILL, DuplicateSkill, LIST_SKILLS, LoadedSkills, MAX_SKILL_FILE,
        OnSkip, READ_SKILL, SKILL_TOOLS, SKIP_STEP, Skill, SkillFileError, SkillFiles, SkillSource,
        Skills, Step, ToolsMode,
    },
    sources::{Notice, OnFailure},
    turn::{
        Beginning, Executed, Executor, ExecutorError, Iteration, IterationContext, IterationError,
        Listed, MiddlewareError, Turn, TurnEnd, TurnError, TurnFailure, TurnOptions,
    },
    validators::{check_schema, check_schema_work},
};
