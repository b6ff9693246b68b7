//! The context of a running tool.

use std::{
    any::{Any, type_name},
    fmt,
    path::Path,
    sync::{Arc, Weak},
};

use serde::Serialize;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    attachment::Attachments,
    clarification::Clarifier,
    file_reads::FileReads,
    kv::Kv,
    network_rules::NetworkRules,
    output::{ErrorCode, ToolError},
};
use crate::{
    json::digest::Digest,
    kv::{KvArea, KvScope, KvStore},
    names::{
        identity::Identity,
        name::SkillId,
        turn_info::{MemoryScope, TurnInfo},
    },
    secrets::secret::{Redact, Secret, SecretError, Secrets},
};

/// The audience of a progress message.
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
    /// The message, for people.
    pub message: String,
    /// Percentage done, 0 to 100.
    pub percent: Option<u8>,
    /// The count that the percentage comes from, if there is one.
    pub count: Option<ProgressCount>,
    /// Metadata of a protocol, for clients of a gateway.
    pub meta: Option<Box<Map<String, Value>>>,
    /// The audience.
    pub audience: Audience,
}

/// How much is done, in units of the reporter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ProgressCount {
    /// The units done.
    pub done: f64,
    /// All units, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

impl fmt::Display for ProgressCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.total {
            Some(total) => write!(f, "{} of {total}", self.done),
            None => write!(f, "{}", self.done),
        }
    }
}

impl Progress {
    /// A message for operators, which users do not see.
    pub fn internal(message: impl Into<String>) -> Self {
        let audience = Audience::Internal;
        Self { message: message.into(), percent: None, count: None, meta: None, audience }
    }

    /// A message that the user may see.
    pub fn user(message: impl Into<String>) -> Self {
        Self { audience: Audience::User, ..Self::internal(message) }
    }

    /// Sets the percentage done; values over 100 count as 100.
    #[must_use]
    pub fn percent(mut self, percent: u8) -> Self {
        self.percent = Some(percent.min(100));
        self
    }
}

/// Receives the progress of a running tool. Runs on the body's time, so it must not block.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// The context of a tool's body: the call, the run and its limits. Cheap to clone.
///
/// Neighbor: a provider receives a [`ListContext`](crate::ListContext), before any call.
#[derive(Clone)]
pub struct ToolContext(Arc<ToolContextParts>);

/// The parts from which an engine builds a [`ToolContext`]. All fields are public, so that an
/// engine that does not set a new part fails to compile.
#[derive(Clone)]
pub struct ToolContextParts {
    /// The run's id.
    pub turn_id: Arc<str>,
    /// The call's id, given by the model.
    pub call_id: Arc<str>,
    /// The beginning of the call's [idempotency key](ToolContext::idempotency_key): an id that is
    /// unique for all calls with this id, also after a restart.
    pub idempotency_scope: Arc<str>,
    /// The identity that the run acts for.
    pub identity: Arc<Identity>,
    /// The iteration of the turn, from 1.
    pub iteration: u32,
    /// The active skills, the most recently activated last.
    pub active_skills: Arc<[SkillId]>,
    /// The id of the turn's personality.
    pub personality: Arc<str>,
    /// The team of the turn's personality.
    pub team: Option<Arc<str>>,
    /// The host's information on the turn.
    pub info: Arc<TurnInfo>,
    /// Limits on the hosts that the call may reach, besides the tool's declaration.
    pub network: Arc<NetworkRules>,
    /// The folders that the call may reach, by name, of those that the tool declares; if absent,
    /// all of them.
    pub files: Option<Arc<[Arc<str>]>>,
    /// The files that the conversation has read; if absent, none, and a write over an existing file
    /// is refused.
    pub reads: Option<Arc<FileReads>>,
    /// Fires when the conversation has ended; if absent, the call has none that could end.
    pub session_end: Option<CancellationToken>,
    /// Held by work that outlives the call.
    pub running_work: RunningWork,
    /// The base of relative paths.
    pub working_dir: Arc<Path>,
    /// The guaranteed number of characters of this call's text.
    pub result_budget_chars: usize,
    /// Fires at cancellation and at the call's deadline.
    pub cancellation: CancellationToken,
    /// The receiver of progress; if absent, progress is discarded.
    pub progress: Option<ProgressSink>,
    /// The secrets that this call may read; if absent, none.
    pub secrets: Option<Arc<dyn Secrets>>,
    /// The redactor; if absent, nothing is redacted.
    pub redact: Option<Arc<dyn Redact>>,
    /// Whether the conversation had read content of unknown authors when the call was made.
    pub tainted: bool,
    /// Whether the call must have no effect.
    pub dry_run: bool,
    /// Whether nothing of the call can be used after it.
    pub keeps_nothing: bool,
    /// The store of keys and values; if absent, there is none.
    pub kv: Option<Arc<dyn KvStore>>,
    /// The areas of the scopes that the tool declares.
    pub kv_areas: Vec<(KvScope, KvArea)>,
    /// The files that the user attached, if the tool declares them.
    pub attachments: Option<Arc<Attachments>>,
    /// Asks the person of the turn, if the tool declares it.
    pub clarifier: Option<Arc<dyn Clarifier>>,
    /// The trace context of the call; if absent, the call is in no trace.
    pub traceparent: Option<Arc<str>>,
    /// The granter's handles, one per type.
    pub handles: Vec<Arc<dyn Any + Send + Sync>>,
}

impl ToolContextParts {
    /// Parts of a call outside any engine, for a tool's own tests: no deadline, no progress
    /// receiver, a budget of 80,000 characters.
    pub fn detached() -> Self {
        Self {
            turn_id: "detached".into(),
            call_id: "call".into(),
            idempotency_scope: "detached".into(),
            identity: Arc::new(Identity::conversation("detached")),
            iteration: 1,
            active_skills: Arc::default(),
            personality: "default".into(),
            team: None,
            info: Arc::default(),
            network: Arc::default(),
            files: None,
            reads: None,
            session_end: None,
            running_work: RunningWork::default(),
            working_dir: Arc::from(Path::new(".")),
            result_budget_chars: 80_000,
            cancellation: CancellationToken::new(),
            progress: None,
            secrets: None,
            redact: None,
            tainted: false,
            dry_run: false,
            keeps_nothing: false,
            kv: None,
            kv_areas: Vec::new(),
            attachments: None,
            clarifier: None,
            traceparent: None,
            handles: Vec::new(),
        }
    }
}

/// A mark that work which outlives its call keeps for as long as it runs. Clones are the same mark;
/// the default is none.
#[derive(Debug, Clone, Default)]
pub struct RunningWork(Option<Arc<()>>);

impl RunningWork {
    /// For engines: a mark of a conversation.
    pub fn of_conversation() -> Self {
        Self(Some(Arc::default()))
    }

    /// For engines: whether another clone exists.
    pub fn is_shared(&self) -> bool {
        self.0.as_ref().is_some_and(|mark| Arc::strong_count(mark) > 1)
    }
}

impl From<ToolContextParts> for ToolContext {
    fn from(parts: ToolContextParts) -> Self {
        Self(Arc::new(parts))
    }
}

impl ToolContext {
    /// For engines: a weak reference that shows whether a body still uses this context, and so
    /// still runs.
    pub fn downgrade(&self) -> Weak<ToolContextParts> {
        Arc::downgrade(&self.0)
    }

    /// The id of the run that makes the call.
    pub fn turn_id(&self) -> &Arc<str> {
        &self.0.turn_id
    }

    /// The call's id, given by the model.
    pub fn call_id(&self) -> &Arc<str> {
        &self.0.call_id
    }

    /// The key by which a remote system recognizes a repeated call: 32 hexadecimal digits, the same
    /// for every attempt of this call, also after the program was killed and the session was
    /// resumed, and different for every other call. Pass it on if the remote system supports such
    /// keys, and declare the tool idempotent.
    pub fn idempotency_key(&self) -> String {
        let (scope, call) = (&self.0.idempotency_scope, &self.0.call_id);
        // The length separates them, whatever they contain.
        let mut key = Digest::of(format!("{}:{scope}{call}", scope.len())).to_string();
        key.truncate(32);
        key
    }

    /// The identity that the call is made for.
    pub fn identity(&self) -> &Identity {
        &self.0.identity
    }

    /// The call's span as W3C `traceparent`, for a remote system that continues the trace. `None`
    /// unless the engine [exports its spans](crate::Events::write_linked_spans).
    pub fn traceparent(&self) -> Option<&str> {
        self.0.traceparent.as_deref()
    }

    /// The iteration of the turn, from 1.
    pub fn iteration(&self) -> u32 {
        self.0.iteration
    }

    /// The active skills, the most recently activated last.
    pub fn active_skills(&self) -> &[SkillId] {
        &self.0.active_skills
    }

    /// The id of the turn's personality; `default` unless one was named.
    pub fn personality(&self) -> &str {
        &self.0.personality
    }

    /// The team of the turn's personality, if it is a member of one.
    pub fn team(&self) -> Option<&str> {
        self.0.team.as_deref()
    }

    /// The host's information on the turn: platform, session key, agent, number of the turn and of
    /// messages.
    pub fn info(&self) -> &TurnInfo {
        &self.0.info
    }

    /// The opaque id of the turn's memory of a scope, such as `personality:support`: the same in all
    /// calls of a turn, and in all turns that share the memory.
    ///
    /// # Errors
    /// `not_available` for [`MemoryScope::Team`] in a turn without a team.
    pub fn memory_scope_id(&self, scope: MemoryScope) -> Result<String, ToolError> {
        Ok(match scope {
            MemoryScope::Global => "global".to_owned(),
            MemoryScope::Personality => format!("personality:{}", self.personality()),
            MemoryScope::Principal => {
                let Identity { tenant, principal, .. } = self.identity();
                // As JSON, since an id may contain any character.
                format!("principal:{}", serde_json::json!([tenant, principal]))
            }
            MemoryScope::Team => {
                let team = self.team().ok_or_else(|| {
                    ToolError::not_set_up("a team")
                        .caused_by("the turn's personality is a member of no team")
                })?;
                format!("team:{team}")
            }
        })
    }

    /// Limits on the hosts that the call may reach over HTTP. Code that provides a network handle
    /// or its own client must apply them; handles of a
    /// [`CapabilityGranter`](crate::CapabilityGranter) already do.
    pub fn network_rules(&self) -> &NetworkRules {
        &self.0.network
    }

    /// Whether the turn's personality lets the call reach a folder of the files capability, by name.
    /// The handles of the capability apply it.
    pub fn reaches_files(&self, name: &str) -> bool {
        self.0.files.as_ref().is_none_or(|names| names.iter().any(|known| **known == *name))
    }

    /// The files that the conversation has read, for the refusal of
    /// [stale writes](crate::ErrorCode::StaleWrite). The handles of the files capability record and
    /// compare; code with its own access to files may do the same. `None` outside an engine, and in
    /// a tool that declares no files.
    pub fn reads(&self) -> Option<&FileReads> {
        self.0.reads.as_deref()
    }

    /// The context for files that only this tool knows, in an area of the host: no personality limits
    /// them, and the record of what the conversation has read is an empty one.
    #[must_use]
    pub fn for_own_files(mut self) -> Self {
        let parts = Arc::make_mut(&mut self.0);
        (parts.files, parts.reads) = (None, Some(Arc::default()));
        self
    }

    /// Whether the conversation had read content of unknown authors when the call was made: what the
    /// model writes may be what such an author wants.
    pub fn is_tainted(&self) -> bool {
        self.0.tainted
    }

    /// Whether the call must have no effect: the body returns what it would do. True only in a dry run,
    /// and only for a tool that [declares](crate::ToolBuilder::dry_run) it.
    pub fn dry_run(&self) -> bool {
        self.0.dry_run
    }

    /// Whether nothing of the call can be used after it, because its caller cannot be recognized: work
    /// that outlives the call would end with it, so the body refuses to begin any.
    pub fn keeps_nothing(&self) -> bool {
        self.0.keeps_nothing
    }

    /// The keys and values of a scope that the tool [declares](crate::Capabilities::kv).
    ///
    /// # Errors
    /// `not_available` if the tool does not declare the scope, or there is no store.
    pub fn kv(&self, scope: KvScope) -> Result<Kv, ToolError> {
        let refused = |cause: String| ToolError::not_set_up("a store").caused_by(cause);
        if scope == KvScope::Session && self.0.keeps_nothing {
            let message = "nothing can be kept for a later call, because no later call can be \
                recognized as one of the same caller";
            return Err(ToolError::new(ErrorCode::NotAvailable, message));
        }
        let area = self.0.kv_areas.iter().find(|(declared, _)| *declared == scope);
        let (_, area) = area.ok_or_else(|| {
            refused(format!("the tool does not declare keys of the scope `{}`", scope.as_str()))
        })?;
        let store = self.0.kv.as_ref();
        let store = store.ok_or_else(|| {
            refused("the engine has no store of keys; see `EngineBuilder::kv`".to_owned())
        })?;
        Ok(Kv::new(Arc::clone(store), area.clone(), self.clone()))
    }

    /// The files that the user attached to the message of the turn, if the tool
    /// [declares](crate::Capabilities::attachments) them. A model names one by its id.
    ///
    /// # Errors
    /// `not_available` if the tool does not declare them.
    pub fn attachments(&self) -> Result<&Attachments, ToolError> {
        self.0.attachments.as_deref().ok_or_else(|| {
            ToolError::not_set_up("attachments").caused_by("the tool does not declare attachments")
        })
    }

    /// Asks the person of the turn, if the tool [declares](crate::Capabilities::person) it.
    ///
    /// # Errors
    /// `not_available` if the tool does not declare it.
    pub fn clarifier(&self) -> Result<&dyn Clarifier, ToolError> {
        self.0.clarifier.as_deref().ok_or_else(|| {
            ToolError::not_set_up("a person")
                .caused_by("the tool does not declare questions to a person")
        })
    }

    /// Fires when the conversation has ended: what the body starts and leaves running ends then. That is
    /// the end of the turn of a conversation without a name, the end of a session of the gateway, and
    /// the eviction of the least recently used of 1,024 conversations. `None` outside an engine, and
    /// in a tool that declares neither programs nor files.
    pub fn session_end(&self) -> Option<&CancellationToken> {
        self.0.session_end.as_ref()
    }

    /// A mark of the conversation: what the body starts and leaves running keeps it for as long as it
    /// runs, so that a host knows it before it ends a conversation that is not used.
    pub fn running_work(&self) -> &RunningWork {
        &self.0.running_work
    }

    /// The base of relative paths.
    pub fn working_dir(&self) -> &Path {
        &self.0.working_dir
    }

    /// The guaranteed number of characters of this call's text. Budget unused by other calls of the
    /// batch may be added; the excess is truncated.
    pub fn result_budget_chars(&self) -> usize {
        self.0.result_budget_chars
    }

    /// Fires when the run is cancelled or the call's deadline passed. A body that waits or computes
    /// for long watches it; one that ignores it is abandoned after a short grace period.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.0.cancellation
    }

    /// Reports the progress of the call. Never blocks and never fails. An engine drops reports
    /// after the call has ended, and with more than 64 messages waiting. Of an untrusted tool it
    /// shows at most ten messages a second per audience: the last one wins, and is sanitized as
    /// results are.
    pub fn progress(&self, progress: Progress) {
        if let Some(sink) = &self.0.progress {
            sink(progress);
        }
    }

    /// For granters: adds a handle to the context.
    #[must_use]
    pub fn with_handle<T: Send + Sync + 'static>(mut self, handle: T) -> Self {
        Arc::make_mut(&mut self.0).handles.push(Arc::new(handle));
        self
    }

    /// The handle of a type, restricted to the tool's declared
    /// [`Capabilities`](crate::Capabilities).
    ///
    /// # Errors
    /// `not_available` if the tool does not declare the capability.
    pub fn handle<T: Send + Sync + 'static>(&self) -> Result<&T, ToolError> {
        self.0.handles.iter().find_map(|handle| handle.downcast_ref()).ok_or_else(|| {
            ToolError::not_set_up("something").caused_by(format!(
                "the call has no handle `{}`: the tool does not declare the capability",
                type_name::<T>()
            ))
        })
    }

    /// The value of a secret that the tool declares. From then on it is redacted from all output of
    /// the call.
    ///
    /// # Errors
    /// `not_available` if the secret is not declared or cannot be read. The model does not learn
    /// its name; the operator finds name and source in the cause.
    pub async fn secret(&self, name: &str) -> Result<Secret, ToolError> {
        let resolved = match &self.0.secrets {
            Some(secrets) => secrets.resolve(name).await,
            None => Err(SecretError::Undeclared { name: name.into() }),
        };
        resolved.map_err(|error| ToolError::not_set_up("a credential").caused_by(error))
    }

    /// Removes known secrets from a text. Only for bodies that truncate a text themselves; call it
    /// before truncation.
    pub fn redacted(&self, text: &str) -> String {
        self.0.redact.as_ref().map_or_else(|| text.to_owned(), |redact| redact.redact(text))
    }

    /// Redacts a part of a text, with the text before and after it, of which some thousand characters
    /// suffice: a secret at the edge of the part is removed as a whole, so that no two parts contain it.
    pub fn redacted_part(&self, before: &str, part: &str, after: &str) -> String {
        let whole = self.redacted(&[before, part, after].concat());
        let (before, after) = (self.redacted(before), self.redacted(after));
        let is_same = |(one, other): &(char, char)| one == other;
        let length = |(c, _): (char, char)| c.len_utf8();
        let start = whole.chars().zip(before.chars()).take_while(is_same).map(length).sum();
        let rest = whole.get(start..).unwrap_or_default();
        let ends = rest.chars().rev().zip(after.chars().rev());
        let end: usize = ends.take_while(is_same).map(length).sum();
        rest.get(..rest.len().saturating_sub(end)).unwrap_or_default().to_owned()
    }

    /// Redacts the start of a text whose rest is truncated: removes known secrets and an end that
    /// may be the beginning of one.
    pub fn redacted_start(&self, start: &str) -> String {
        self.0.redact.as_ref().map_or_else(|| start.to_owned(), |redact| redact.redact_start(start))
    }
}
