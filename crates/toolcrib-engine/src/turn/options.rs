use std::{fmt::Display, path::PathBuf, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use toolcrib_core::{CancellationToken, Events, InvalidTool, SkillId, UnreadableClaim};

use crate::{personality::Personality, pipe::shortened, questions::Questions, skills::Skills};

/// How a turn begins. Everything may be left out.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TurnOptions {
    /// The run's id. Default: a fresh one.
    pub run_id: Option<Arc<str>>,
    /// The customer or organisation.
    pub tenant: Option<Arc<str>>,
    /// The person or service that the turn acts for.
    pub principal: Option<Arc<str>>,
    /// What a token says of the caller, once whoever calls this has verified it. Roles may be given by
    /// claims; see [`Roles`](toolcrib_core::Roles). Default: none.
    pub claims: Map<String, Value>,
    /// The conversation. Default: the run's id, and then the conversation ends with the turn.
    pub conversation: Option<Arc<str>>,
    /// Whether the conversation ends with the turn also where it has a name. What there is of one that
    /// has ended is let go of: its artifacts, and the tools that live for it.
    pub ends_conversation: bool,
    /// Who acts; see [`Personality`](crate::Personality). Default: the one called `default`.
    pub personality: Option<Arc<str>>,
    /// Skills that are active from the start, the last of them as the active one. Each is judged as
    /// a call of `read_skill` by this caller: where personality or policy would not let that call
    /// activate it, the turn does not begin. Nobody is asked to approve it, so a rule with the effect
    /// `ask` refuses. Middleware is shown the call before the first iteration, which does not begin
    /// unless all of it lets the call go on.
    pub skills: Vec<SkillId>,
    /// Whether the turn is not offered `read_skill`, so that its skills stay those that it begins
    /// with. Default: it is, where there are skills.
    pub without_read_skill: bool,
    /// Ends everything that the turn does. Default: only dropping the turn does.
    pub cancellation: Option<CancellationToken>,
    /// Where tools start relative paths. Default: the process's working folder.
    pub working_dir: Option<PathBuf>,
    /// Where to listen to this turn alone.
    pub events: Events,
    /// Where people are asked and answer; see [`Questions`]. Default: there is nobody to ask.
    pub questions: Option<Questions>,
    /// How long an iteration waits for a source; then [`OnFailure`](crate::OnFailure) decides, as for
    /// one that failed. Default: as long as the source takes.
    pub source_timeout: Option<Duration>,
}

impl TurnOptions {
    /// Names the principal.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<Arc<str>>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Names the tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<Arc<str>>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Adds a claim of a token that the caller has verified; see [`claims`](Self::claims).
    #[must_use]
    pub fn claim(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.claims.insert(name.into(), value.into());
        self
    }

    /// Names the conversation.
    #[must_use]
    pub fn conversation(mut self, conversation: impl Into<Arc<str>>) -> Self {
        self.conversation = Some(conversation.into());
        self
    }

    /// Ends the conversation with the turn; see the field of that name.
    #[must_use]
    pub fn ends_conversation(mut self) -> Self {
        self.ends_conversation = true;
        self
    }

    /// Names who acts.
    #[must_use]
    pub fn personality(mut self, personality: impl Into<Arc<str>>) -> Self {
        self.personality = Some(personality.into());
        self
    }

    /// Activates a skill from the start.
    #[must_use]
    pub fn skill(mut self, skill: SkillId) -> Self {
        self.skills.push(skill);
        self
    }

    /// Does not offer `read_skill`: for a turn that serves one call and is gone, where nothing that a
    /// skill activates would come after it.
    #[must_use]
    pub fn without_read_skill(mut self) -> Self {
        self.without_read_skill = true;
        self
    }

    /// Sets what cancels the turn.
    #[must_use]
    pub fn cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.cancellation = Some(cancellation);
        self
    }

    /// Sets where people are asked and answer. One value may serve many turns.
    #[must_use]
    pub fn questions(mut self, questions: Questions) -> Self {
        self.questions = Some(questions);
        self
    }

    /// Sets where to listen to this turn alone.
    #[must_use]
    pub fn events(mut self, events: Events) -> Self {
        self.events = events;
        self
    }
}

/// A turn that cannot begin as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// There is no such skill.
    #[error("there is no skill `{skill}`; {}", these(known))]
    UnknownSkill {
        /// What was asked for.
        skill: SkillId,
        /// What there is.
        known: Vec<SkillId>,
    },
    /// The personality has none of the skills of that plugin.
    #[error(
        "personality `{personality}` has no skill `{skill}`: that is of plugin `{plugin}`, which is \
         not among its `plugins`"
    )]
    SkillOutOfReach {
        /// What was asked for.
        skill: SkillId,
        /// Who does not reach it.
        personality: Arc<str>,
        /// Whose it is.
        plugin: Arc<str>,
    },
    /// `read_skill` would not activate the skill for this caller.
    #[error("skill `{skill}` may not be activated here: {reason}")]
    SkillRefused {
        /// What was asked for.
        skill: SkillId,
        /// The rule or personality that refuses it, for the operator.
        reason: Arc<str>,
    },
    /// There is no such personality.
    #[error("there is no personality `{personality}`; there are: {}", quoted(known))]
    UnknownPersonality {
        /// What was asked for.
        personality: Arc<str>,
        /// What there is.
        known: Vec<Arc<str>>,
    },
    /// A claim that a role depends on cannot be read.
    #[error(transparent)]
    UnreadableClaim(#[from] UnreadableClaim),
    /// The menu of skills could not be made a tool.
    #[error("the tool that reads skills cannot be made")]
    ReadSkill(#[source] InvalidTool),
}

impl TurnError {
    /// What an outsider may read, such as a client of a server; the error itself is the operator's. It
    /// is the same for a skill that does not exist and for one that the caller may not activate, so
    /// that nobody learns from it which skills there are.
    pub fn caller_text(&self) -> String {
        match self {
            Self::UnknownSkill { skill, .. }
            | Self::SkillOutOfReach { skill, .. }
            | Self::SkillRefused { skill, .. } => {
                format!("there is no skill `{}`", shortened(skill))
            }
            _ => "the turn cannot begin as it was asked for".to_owned(),
        }
    }
}

/// Why a skill cannot be activated that is not among those that a turn has.
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
    format!("there are: {}", quoted(skills))
}

fn quoted<N: Display>(names: &[N]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
