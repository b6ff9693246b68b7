//! What a running tool sees.

use std::{
    any::{Any, type_name},
    path::Path,
    sync::{Arc, Weak},
};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    identity::Identity,
    name::SkillId,
    network_rules::NetworkRules,
    output::ToolError,
    secrets::{Redact, Secret, SecretError, Secrets},
};

/// Who may see a progress message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Logs and traces only.
    #[default]
    Internal,
    /// Operators' dashboards too.
    Dashboard,
    /// The user too. Use it where silence would confuse.
    User,
}

/// One progress message of a running tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is going on, for people.
    pub message: String,
    /// How much is done, 0 to 100.
    pub percent: Option<u8>,
    /// Who may see it.
    pub audience: Audience,
}

impl Progress {
    /// An internal message.
    pub fn internal(message: impl Into<String>) -> Self {
        Self { message: message.into(), percent: None, audience: Audience::Internal }
    }

    /// A message that the user may see.
    pub fn user(message: impl Into<String>) -> Self {
        Self { audience: Audience::User, ..Self::internal(message) }
    }

    /// Says how much is done; values over 100 count as 100.
    #[must_use]
    pub fn percent(mut self, percent: u8) -> Self {
        self.percent = Some(percent.min(100));
        self
    }
}

/// Takes the progress of a running tool. It is called on the body's time, so it must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// What a tool's body sees of the call, the run and its limits. Cheap to clone.
///
/// Neighbours: a provider sees a [`ListContext`](crate::ListContext), before anything is called.
#[derive(Clone)]
pub struct ToolContext(Arc<ToolContextParts>);

/// The parts that an engine builds a [`ToolContext`] from. Open, so that an engine that does not
/// know a new part does not compile.
#[derive(Clone)]
pub struct ToolContextParts {
    /// The run's id.
    pub run_id: Arc<str>,
    /// The call's id, as the model gave it.
    pub call_id: Arc<str>,
    /// On whose behalf.
    pub identity: Arc<Identity>,
    /// Which iteration of the turn, from 1.
    pub iteration: u32,
    /// The active skills, the last activated last.
    pub active_skills: Arc<[SkillId]>,
    /// Who acts: the id of the turn's personality.
    pub personality: Arc<str>,
    /// What bounds the hosts that the call may reach, beside what the tool declares.
    pub network: Arc<NetworkRules>,
    /// Relative paths start here.
    pub working_dir: Arc<Path>,
    /// How many characters of text this call is promised.
    pub result_budget_chars: usize,
    /// Fires at cancellation and at the call's deadline.
    pub cancellation: CancellationToken,
    /// Where progress goes; nobody listens when absent.
    pub progress: Option<ProgressSink>,
    /// The secrets that this call may have; none when absent.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// What knows the secrets; nothing is redacted when absent.
    pub redact: Option<Arc<dyn Redact>>,
    /// What the scoper hands out, one value of a type.
    pub handles: Vec<Arc<dyn Any + Send + Sync>>,
}

impl ToolContextParts {
    /// Parts of a call outside any engine, for a tool's own tests: no deadline, nobody listening,
    /// a budget of 80,000 characters.
    pub fn detached() -> Self {
        Self {
            run_id: "detached".into(),
            call_id: "call".into(),
            identity: Arc::new(Identity::conversation("detached")),
            iteration: 1,
            active_skills: Arc::default(),
            personality: "default".into(),
            network: Arc::default(),
            working_dir: Arc::from(Path::new(".")),
            result_budget_chars: 80_000,
            cancellation: CancellationToken::new(),
            progress: None,
            secrets: None,
            redact: None,
            handles: Vec::new(),
        }
    }
}

impl From<ToolContextParts> for ToolContext {
    fn from(parts: ToolContextParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl ToolContext {
    /// For engines: whether some body still holds this context, and so still runs.
    pub fn downgrade(&self) -> Weak<ToolContextParts> {
        Arc::downgrade(&self.0)
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.0.run_id
    }

    /// The call's id, as the model gave it.
    pub fn call_id(&self) -> &str {
        &self.0.call_id
    }

    /// On whose behalf the call is made.
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// Which iteration of the turn, from 1.
    pub fn iteration(&self) -> u32 {
        self.0.iteration
    }

    /// The active skills, the last activated last.
    pub fn active_skills(&self) -> &[SkillId] {
        &self.0.active_skills
    }

    /// Who acts: the id of the turn's personality, `default` unless one was named.
    pub fn personality(&self) -> &str {
        &self.0.personality
    }

    /// What bounds the hosts that the call may reach over HTTP. Whoever hands out a network handle,
    /// or brings a client of its own, narrows it to that; a handle of a
    /// [`Scoper`](crate::Scoper) already is.
    pub fn network_rules(&self) -> &NetworkRules {
        &self.0.network
    }

    /// Relative paths start here.
    pub fn working_dir(&self) -> &Path {
        &self.0.working_dir
    }

    /// How many characters of text this call is promised. What other calls of the batch leave
    /// may be added; what is over in the end is cut.
    pub fn result_budget_chars(&self) -> usize {
        self.0.result_budget_chars
    }

    /// Fires when the run is cancelled or the call's deadline passed. A body that waits or
    /// computes for long watches it; one that ignores it is abandoned after a short grace.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Reports progress. Never blocks and never fails. An engine drops what is reported once the call
    /// has settled, and with more than 64 messages waiting. Of an untrusted tool it shows at most ten
    /// messages a second of each audience: the last one wins, and is cleaned as results are.
    pub fn progress(&self, progress: Progress) {
        if let Some(sink) = &self.0.progress {
            sink(progress);
        }
    }

    /// For scopers: the context with a handle in it.
    #[must_use]
    pub fn with_handle<T: Send + Sync + 'static>(mut self, handle: T) -> Self {
        Arc::make_mut(&mut self.0).handles.push(Arc::new(handle));
        self
    }

    /// The handle of that type, which reaches as far as the tool's declared
    /// [`Capabilities`](crate::Capabilities) and no further.
    ///
    /// # Errors
    /// `not_available` when the tool does not declare the capability behind it.
    pub fn handle<T: Send + Sync + 'static>(&self) -> Result<&T, ToolError> {
        self.0.handles.iter().find_map(|handle| handle.downcast_ref()).ok_or_else(|| {
            ToolError::not_set_up("something").caused_by(format!(
                "the call was handed no `{}`: the tool does not declare the capability",
                type_name::<T>()
            ))
        })
    }

    /// The value of a secret that the tool declares. It is redacted from all that leaves a call
    /// from then on.
    ///
    /// # Errors
    /// `not_available` for one that is not declared or cannot be had. The model is not told its
    /// name; the operator reads name and source in the cause.
    pub async fn secret(&self, name: &str) -> Result<Secret, ToolError> {
        let resolved = match &self.0.secrets {
            Some(secrets) => secrets.resolve(name).await,
            None => Err(SecretError::Undeclared { name: name.into() }),
        };
        resolved.map_err(|error| ToolError::not_set_up("a credential").caused_by(error))
    }

    /// A text without known secrets. Only for bodies that cut a text themselves, before they do.
    pub fn redacted(&self, text: &str) -> String {
        self.0.redact.as_ref().map_or_else(|| text.to_owned(), |redact| redact.redact(text))
    }

    /// The start of a text whose rest is cut off, without known secrets and without an end that may
    /// be the beginning of one.
    pub fn redacted_start(&self, start: &str) -> String {
        self.0.redact.as_ref().map_or_else(|| start.to_owned(), |redact| redact.redact_start(start))
    }
}
