//! The errors of a turn.

use std::{error::Error, sync::Arc};

use toolcrib_core::{
    __internal::{quoted, shortened},
    AlreadyRegisteredError, DiscoveryError, InvalidClaimError, InvalidToolError, SkillId,
};

use super::MiddlewareError;
use crate::{
    personality::Personality, policy::halt::HaltedByRule, reliability::RetryExhausted,
    skills::Skills,
};

/// Why a turn cannot begin, has no further iteration, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// There is no such skill.
    #[error("unknown skill `{skill}`; {}", these(known))]
    UnknownSkill {
        /// The requested id.
        skill: SkillId,
        /// The existing skills.
        known: Vec<SkillId>,
    },
    /// The personality does not reach the skills of that plugin.
    #[error(
        "personality `{personality}` has no skill `{skill}`: it belongs to plugin `{plugin}`, which is \
         not in its `plugins`"
    )]
    SkillOutOfReach {
        /// The requested id.
        skill: SkillId,
        /// The personality.
        personality: Arc<str>,
        /// The skill's plugin.
        plugin: Arc<str>,
    },
    /// `read_skill` would not activate the skill for this caller.
    #[error("skill `{skill}` may not be activated here: {reason}")]
    SkillRefused {
        /// The requested id.
        skill: SkillId,
        /// The rule or personality that refuses it, for the operator.
        reason: Arc<str>,
    },
    /// There is no such personality.
    #[error("unknown personality `{personality}`; there are: {}", quoted(known.iter().map(|id| &**id)))]
    UnknownPersonality {
        /// The requested id.
        personality: Arc<str>,
        /// The existing personalities.
        known: Vec<Arc<str>>,
    },
    /// A claim that a role depends on cannot be read.
    #[error(transparent)]
    InvalidClaim(#[from] InvalidClaimError),
    /// The skill tools could not be built.
    #[error("the tool that reads skills cannot be built")]
    ReadSkill(#[source] InvalidToolError),
    /// A provider or a gate failed. Nothing is offered, and no call is possible; another iteration
    /// may be tried.
    #[error("the tools of this step could not be listed: {0}")]
    Discovery(#[source] DiscoveryError),
    /// Like [`Discovery`](Self::Discovery), after reliability rules gave up.
    #[error("the tools of this step could not be listed: {source} ({exhausted})")]
    Reliability {
        /// How rules gave up.
        exhausted: RetryExhausted,
        /// The error of the last attempt.
        source: DiscoveryError,
    },
    /// Two sources offer one name, and neither declares which tool to keep.
    #[error(transparent)]
    Collision(#[from] AlreadyRegisteredError),
    /// The turn was cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The turn was acked or nacked: it has no further iteration.
    #[error("the turn is over: its executor has signaled")]
    Over,
    /// A middleware failed. An earlier signal remains in effect, and its actions are done.
    #[error(transparent)]
    Middleware(#[from] MiddlewareError),
    /// A policy rule ended the turn at a call, whatever the executor signals.
    #[error(transparent)]
    Halted(HaltedByRule),
    /// The executor failed after it had signaled. The signal remains in effect.
    #[error("the executor failed after it had signaled: {0}")]
    Executor(Box<dyn Error + Send + Sync>),
}

impl TurnError {
    /// The skill because of which a turn cannot begin.
    pub fn skill(&self) -> Option<&SkillId> {
        match self {
            Self::UnknownSkill { skill, .. }
            | Self::SkillOutOfReach { skill, .. }
            | Self::SkillRefused { skill, .. } => Some(skill),
            _ => None,
        }
    }

    /// The text for an external caller, such as a client of a server; the error itself is for the
    /// operator. It is the same for a skill that does not exist and for one that the caller may not
    /// activate, so it does not reveal which skills exist.
    pub fn caller_text(&self) -> String {
        match self.skill() {
            Some(skill) => format!("unknown skill `{}`", shortened(skill)),
            None => "the turn cannot begin with these options".to_owned(),
        }
    }
}

/// Why a skill that the turn does not have cannot be activated.
pub(super) fn no_skill(
    skill: SkillId,
    reached: &Skills,
    all: &Skills,
    of: &Personality,
) -> TurnError {
    match all.get(&skill).and_then(|skill| skill.plugin.clone()) {
        Some(plugin) => {
            TurnError::SkillOutOfReach { skill, personality: Arc::clone(&of.id), plugin }
        }
        None => {
            let known = reached.iter().map(|skill| skill.id.clone()).collect();
            TurnError::UnknownSkill { skill, known }
        }
    }
}

fn these(skills: &[SkillId]) -> String {
    if skills.is_empty() {
        return "this engine has no skills".to_owned();
    }
    format!("there are: {}", quoted(skills.iter().map(|skill| &**skill)))
}
