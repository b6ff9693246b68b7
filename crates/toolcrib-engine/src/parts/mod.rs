//! The parts that all turns of an engine share.

pub(crate) mod resources;
pub(crate) mod session_state;
pub(crate) mod sessions;
pub(crate) mod skill_sources;

use std::{sync::Arc, time::Duration};

use toolcrib_core::{
    Approver, ArtifactPort, CapabilityGranter, Clarifier, Events, Journal, KvStore, Redact,
    Secrets, Tool, ToolRegistry,
};

use self::{
    resources::Resources, session_state::SessionState, sessions::SessionTools,
    skill_sources::SkillSources,
};
use crate::{
    compose::{CompositionCache, Visibility},
    deferral::Indexes,
    middleware::reducers::Reducers,
    personality::Personality,
    plugin::{Contribution, NamedMiddleware},
    provider::Source,
    reliability::Reliability,
    secrets::Redactor,
    skills::Skills,
    validators::Validators,
};

/// A built engine.
#[derive(Clone)]
pub(crate) struct EngineParts {
    /// The ids of the plugins whose parts are included, in order.
    pub(crate) plugins: Vec<Arc<str>>,
    pub(crate) registry: Arc<ToolRegistry>,
    pub(crate) sessions: Arc<SessionTools>,
    pub(crate) session_state: Arc<SessionState>,
    pub(crate) sources: Vec<Contribution<Source>>,
    pub(crate) visibility: Arc<Visibility>,
    /// Results of composing these parts, and no others.
    pub(crate) recent: Arc<CompositionCache>,
    /// Of deferred tools.
    pub(crate) indexes: Arc<Indexes>,
    /// The sources of the skills.
    pub(crate) skill_sources: Arc<SkillSources>,
    pub(crate) validators: Arc<Validators>,
    pub(crate) redactor: Redactor,
    /// The redactor, as tool bodies see it.
    pub(crate) redact: Arc<dyn Redact>,
    pub(crate) middleware: Vec<Contribution<NamedMiddleware>>,
    pub(crate) reducers: Reducers,
    /// The resources that running calls change.
    pub(crate) resources: Arc<Resources>,
    pub(crate) secrets: Option<Arc<dyn Secrets>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) clarifier: Option<Arc<dyn Clarifier>>,
    pub(crate) capability_granter: Option<Arc<dyn CapabilityGranter>>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) kv: Option<Arc<dyn KvStore>>,
    /// Its tools are the last of the sources.
    pub(crate) artifact_port: Option<Arc<dyn ArtifactPort>>,
    pub(crate) limits: Limits,
    /// Whether values that a model wrote as text are read.
    pub(crate) converts_text: bool,
    pub(crate) reliability: Arc<Reliability>,
    pub(crate) events: Events,
}

impl EngineParts {
    /// A copy to be changed, without results derived from these parts.
    pub(crate) fn to_change(&self) -> Self {
        let skill_sources = Arc::new(self.skill_sources.anew());
        Self { skill_sources, recent: Arc::default(), ..self.clone() }
    }

    /// The skills of a personality's turns; the same `Arc` if it reaches all.
    pub(crate) fn skills_of(&self, personality: &Personality) -> Arc<Skills> {
        let all = &self.visibility.skills;
        all.reached_by(personality).map_or_else(|| Arc::clone(all), Arc::new)
    }

    /// Whether a tool belongs to no plugin, or to an existing one.
    pub(crate) fn has_plugin_of(&self, tool: &Tool) -> bool {
        tool.plugin().is_none_or(|plugin| self.plugins.iter().any(|there| **there == *plugin))
    }
}

/// Limits of a batch of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls of one batch that are made; the others are refused. Default: 128.
    pub batch_calls: usize,
    /// The text of the results of all calls that one batch makes, in characters. Default: 80,000.
    /// If a call's share has no room for anything else, its result is only the truncation marker.
    pub batch_result_chars: usize,
    /// Content blocks passed on with the result of one call; of further ones a model reads only the
    /// line that replaces them. Default: 64.
    pub result_blocks: usize,
    /// Total bytes of the images, sounds and resources of one result; a block beyond it is omitted
    /// like one beyond `result_blocks`. Default: 8 MiB.
    pub result_block_bytes: usize,
    /// Timeout of one call, unless the tool sets another. Default: 60 s.
    pub tool_timeout: Duration,
    /// Timeout of one call without [progress](toolcrib_core::ToolContext::progress), within
    /// [`tool_timeout`](Self::tool_timeout). Default: none.
    pub idle_timeout: Option<Duration>,
    /// Timeout of all calls of one batch, from the first that runs on: at its end, those that run are
    /// stopped, and no further one begins. Default: none.
    pub batch_timeout: Option<Duration>,
    /// Time for a cancelled body to end, applied twice: once to report its outcome, once to be
    /// dropped. Default: 250 ms.
    pub cancel_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_calls: 128,
            batch_result_chars: 80_000,
            result_blocks: 64,
            result_block_bytes: 8 * 1024 * 1024,
            tool_timeout: Duration::from_secs(60),
            idle_timeout: None,
            batch_timeout: None,
            cancel_grace: Duration::from_millis(250),
        }
    }
}
