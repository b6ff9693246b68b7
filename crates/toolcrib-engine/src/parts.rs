//! What all turns of an engine share.

use std::{collections::HashMap, sync::Arc, time::Duration};

use toolcrib_core::{
    Approver, Events, Journal, Redact, Reducer, Scoper, Secrets, Spooler, Tool, ToolRegistry,
};

use crate::{
    compose::{Recent, Visibility},
    personality::Personality,
    plugin::{Brought, NamedMiddleware},
    redactor::Redactor,
    reliability::Reliability,
    sessions::SessionTools,
    skills::{SkillSources, Skills},
    sources::Source,
    validators::Validators,
};

/// An engine, once it is built.
#[derive(Clone)]
pub(crate) struct EngineParts {
    /// The ids of the plugins whose parts are among these, in order.
    pub(crate) plugins: Vec<Arc<str>>,
    pub(crate) registry: Arc<ToolRegistry>,
    pub(crate) sessions: Arc<SessionTools>,
    pub(crate) sources: Vec<Brought<Source>>,
    pub(crate) visibility: Arc<Visibility>,
    /// What was composed of these parts; none of it of others.
    pub(crate) recent: Arc<Recent>,
    /// Where the skills come from.
    pub(crate) skill_sources: Arc<SkillSources>,
    pub(crate) validators: Arc<Validators>,
    pub(crate) redactor: Redactor,
    /// The same, as bodies see it.
    pub(crate) redact: Arc<dyn Redact>,
    pub(crate) middleware: Vec<Brought<NamedMiddleware>>,
    pub(crate) reducers: HashMap<String, Brought<Arc<dyn Reducer>>>,
    pub(crate) secrets: Option<Arc<dyn Secrets>>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) scoper: Option<Arc<dyn Scoper>>,
    pub(crate) journal: Option<Arc<dyn Journal>>,
    /// Its tools are the last of the sources.
    pub(crate) spooler: Option<Arc<dyn Spooler>>,
    pub(crate) limits: Limits,
    /// `None` where nothing is to be done about failures.
    pub(crate) reliability: Option<Arc<Reliability>>,
    pub(crate) events: Events,
}

impl EngineParts {
    /// The same parts, to be changed: nothing was worked out of them yet.
    pub(crate) fn to_change(&self) -> Self {
        let skill_sources = Arc::new(self.skill_sources.anew());
        Self { skill_sources, recent: Arc::default(), ..self.clone() }
    }

    /// The skills that turns of a personality have; the very same where it reaches all.
    pub(crate) fn skills_of(&self, personality: &Personality) -> Arc<Skills> {
        let all = &self.visibility.skills;
        all.reached_by(personality).map_or_else(|| Arc::clone(all), Arc::new)
    }

    /// Whether a tool is nobody's, or of a plugin that there is.
    pub(crate) fn has_plugin_of(&self, tool: &Tool) -> bool {
        tool.plugin().is_none_or(|plugin| self.plugins.iter().any(|there| **there == *plugin))
    }
}

/// What a batch of calls may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many calls of one batch are made; the others are refused. Default: 128.
    pub batch_calls: usize,
    /// The text of the results of all calls that one batch makes, in characters. Default: 80,000.
    /// Where a call's part of it has no room for anything else, its result is the marker of the
    /// cut alone.
    pub batch_result_chars: usize,
    /// How many blocks come along with the result of one call; of the others a model reads the line
    /// that stands for them. Default: 64.
    pub result_blocks: usize,
    /// How many bytes the images, sounds and resources of one result hold, all together; a block that
    /// is over is left out like one too many. Default: 8 MiB.
    pub result_block_bytes: usize,
    /// One call, where the tool says nothing else. Default: 60 s.
    pub tool_timeout: Duration,
    /// How long a body that is asked to stop may take to do so, twice: once to say how it ended,
    /// once to be dropped. Default: 250 ms.
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
            cancel_grace: Duration::from_millis(250),
        }
    }
}
