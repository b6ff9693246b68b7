//! What happened, as typed events with stable dotted names.

mod hub;
mod recorder;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

pub use self::{
    hub::{EventStream, Events, Subscription, UnknownEventError},
    recorder::{RunEvents, millis},
};
use crate::{
    answered::CacheUse,
    context::Audience,
    digest::Digest,
    identity::Identity,
    message::Usage,
    model::{ModelErrorClass, StopReason, ToolChoice},
    name::{SkillId, ToolName},
    output::ErrorCode,
    policy::Effect,
    provider::DiscoveryErrorClass,
    reliability::Stage,
};

/// One event. Serialises to one flat JSON object with `type`, the fields here and the payload's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The run.
    pub run_id: Arc<str>,
    /// The event's number within the run, from 1.
    pub seq: u64,
    /// The iteration, from 1; absent outside of iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// On whose behalf.
    pub identity: Arc<Identity>,
}

/// What happened.
///
/// Durations are whole milliseconds. Texts and arguments are redacted; results stand as after
/// sanitising and before the fence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum EventKind {
    /// An agent took a message.
    #[serde(rename = "agent.turn_start")]
    TurnStart {
        /// What the user said.
        message: Arc<str>,
        /// The model's name.
        model: Arc<str>,
        /// The id of the personality that acts.
        personality: Arc<str>,
    },
    /// An iteration began; before discovery.
    #[serde(rename = "agent.iteration_start")]
    IterationStart,
    /// A provider is asked.
    #[serde(rename = "tools.discovery_started")]
    DiscoveryStarted {
        /// The provider's path, outermost first.
        provider: Arc<str>,
        /// How often this source has been asked in this iteration, this time included; left out in
        /// JSON the first time.
        #[serde(skip_serializing_if = "is_first")]
        attempt: u32,
    },
    /// A provider answered.
    #[serde(rename = "tools.discovery_completed")]
    DiscoveryCompleted {
        /// The provider's path.
        provider: Arc<str>,
        /// Who answered: the id of the provider at the bottom of that path.
        leaf: Arc<str>,
        /// How long it took.
        duration_ms: u64,
        /// How many tools it offers.
        tool_count: usize,
        /// What a cache had to do with it.
        cache: CacheUse,
        /// How old the answer is, in milliseconds, where a cache had it.
        #[serde(skip_serializing_if = "Option::is_none")]
        age_ms: Option<u64>,
        /// Why a cache gave an older answer, where the source failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A source's answer differs from the one that it gave before, in this process, for the same
    /// tenant, principal and active skills. Only told while somebody listens.
    #[serde(rename = "tools.changed")]
    ToolsChanged {
        /// The provider's path.
        provider: Arc<str>,
        /// Tools that it offers now and did not.
        added: Vec<ToolName>,
        /// Tools that it no longer offers.
        removed: Vec<ToolName>,
        /// Tools of which the model reads something else now.
        changed: Vec<ToolName>,
    },
    /// A provider failed, or was cancelled.
    #[serde(rename = "tools.discovery_failed")]
    DiscoveryFailed {
        /// The path of the provider that failed.
        provider: Arc<str>,
        /// The id of the provider at the bottom of that path.
        leaf: Arc<str>,
        /// What happened.
        error: String,
        /// Its class.
        error_class: DiscoveryErrorClass,
        /// How long it took.
        duration_ms: u64,
        /// How often this source has been asked in this iteration, this time included.
        attempt: u32,
    },
    /// A source failed, and its last good listing takes the place of this one. Right behind the
    /// `tools.discovery_failed` that says why.
    #[serde(rename = "tools.source_stale")]
    SourceStale {
        /// The source's path.
        provider: Arc<str>,
        /// How old the listing is, in milliseconds.
        age_ms: u64,
        /// How many tools it offers.
        tool_count: usize,
    },
    /// A source failed and is left out of this iteration. Right behind the `tools.discovery_failed`
    /// that says why.
    #[serde(rename = "tools.source_omitted")]
    SourceOmitted {
        /// The source's path.
        provider: Arc<str>,
        /// What its tools are called, `mcp__git__*`; else the source's id.
        name: Arc<str>,
        /// How many tools its last good listing offers that are missing now; none when there is no
        /// such listing.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_count: Option<usize>,
    },
    /// The menu of an iteration stands. Emitted again when another registry is offered within it.
    #[serde(rename = "tools.offered")]
    ToolsOffered {
        /// What is offered, in order.
        tools: Vec<ToolName>,
        /// Where each of them comes from, in the same order.
        origins: Vec<Arc<str>>,
        /// How many known tools are withheld; a source that is left out counts as one.
        withheld: usize,
        /// Each of them, when it was worked out anew: told once, and not in every iteration.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        withheld_tools: Vec<NotOffered>,
        /// The menu's fingerprint.
        fingerprint: Digest,
        /// Whether it differs from the iteration before.
        changed: bool,
        /// How long it took to compose the menu, or to see that the one before still holds.
        duration_ms: u64,
    },
    /// Two sources offer one name, and a declared policy decided.
    #[serde(rename = "tools.collision")]
    Collision {
        /// The name.
        name: ToolName,
        /// Where the tool that is offered comes from.
        kept: Arc<str>,
        /// Where the other comes from.
        dropped: Arc<str>,
    },
    /// A model is asked.
    #[serde(rename = "model.start")]
    ModelStart {
        /// The model's name.
        model: Arc<str>,
        /// How many messages it is sent.
        messages: usize,
        /// How many tools it is offered.
        tools: usize,
        /// Whether it may call them.
        tool_choice: ToolChoice,
    },
    /// A model wrote some text.
    #[serde(rename = "model.text")]
    ModelText {
        /// The piece.
        text: String,
    },
    /// A model thinks, and its vendor shows it.
    #[serde(rename = "model.reasoning")]
    ModelReasoning {
        /// The piece.
        text: String,
    },
    /// The next request to a model does not begin as the one before did, within a run or, where
    /// the caller named the conversation, between two of them. What a vendor has cached of the
    /// conversation is read and paid for again from the first difference on; tools come first,
    /// then the system text, then the messages.
    #[serde(rename = "model.prefix_changed")]
    PrefixChanged {
        /// Tools that were not in the tool block.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools_added: Vec<ToolName>,
        /// Tools that were.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools_removed: Vec<ToolName>,
        /// Tools of which the model reads something else now.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools_changed: Vec<ToolName>,
        /// Whether the tools that stay stand in another order.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        tools_reordered: bool,
        /// Whether the system text is another.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        system_changed: bool,
        /// Whether the model may or must call something else. Anthropic caches messages under it, and
        /// others do not mind.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        tool_choice_changed: bool,
        /// The first message that is another, counted from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        messages_from: Option<usize>,
    },
    /// What `model.text` said since the last `model.start` is no part of the answer: it was of no use,
    /// and the answer is asked for again. Whoever shows it takes it back.
    #[serde(rename = "model.superseded")]
    ModelSuperseded {
        /// The model that said it.
        model: Arc<str>,
    },
    /// A model has answered, or failed.
    #[serde(rename = "model.end")]
    ModelEnd {
        /// How many calls it asks for.
        calls: usize,
        /// Why it stopped, if it answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<StopReason>,
        /// What it used.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// Its class; none when the run was cancelled.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_class: Option<ModelErrorClass>,
        /// How long the vendor asks to wait, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// A call came in. Each has exactly one `tool.end`.
    #[serde(rename = "tool.start")]
    ToolStart {
        /// The call's id.
        call_id: Arc<str>,
        /// The name, as called.
        tool: Arc<str>,
        /// Where the tool comes from; absent for a name that is not offered.
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<Arc<str>>,
        /// What was passed.
        args: Value,
        /// The content id of tool and arguments.
        args_digest: Digest,
    },
    /// A middleware changed what a call passes; it is validated again.
    #[serde(rename = "tool.rewritten")]
    ToolRewritten {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// Which middleware.
        middleware: Arc<str>,
        /// What is passed from now on.
        args: Value,
        /// The content id of tool and arguments from now on.
        args_digest: Digest,
    },
    /// A middleware answered a call, which is not run.
    #[serde(rename = "tool.answered")]
    ToolAnswered {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// Which middleware.
        middleware: Arc<str>,
    },
    /// A running tool reports progress.
    #[serde(rename = "tool.progress")]
    ToolProgress {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// What is going on.
        message: String,
        /// How much is done, 0 to 100.
        #[serde(skip_serializing_if = "Option::is_none")]
        percent: Option<u8>,
        /// Who may see it.
        audience: Audience,
    },
    /// A call is settled.
    #[serde(rename = "tool.end")]
    ToolEnd {
        /// The call's id.
        call_id: Arc<str>,
        /// The name, as called.
        tool: Arc<str>,
        /// Whether it succeeded.
        ok: bool,
        /// The class of its failure.
        code: Option<ErrorCode>,
        /// The text, or the error's.
        value: Arc<str>,
        /// How long it took.
        duration_ms: u64,
        /// What it cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// Whether the body ignored cancellation and was left behind.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        abandoned: bool,
        /// The cause, for the operator.
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Arc<str>>,
    },
    /// A result was kept as an artifact, in whole or in part: before the `tool.end` of its call.
    #[serde(rename = "artifact.kept")]
    ArtifactKept {
        /// The artifact's id, which a model reads it by.
        id: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The kind of artifact, such as `text` or `json`.
        kind: Arc<str>,
        /// How many bytes it has.
        bytes: u64,
        /// How many lines.
        lines: u64,
        /// How many characters, as far as it is UTF-8.
        chars: u64,
        /// The digest of its bytes.
        digest: Digest,
    },
    /// A result should have been kept as an artifact, and could not be; what of it a model does not
    /// read is lost.
    #[serde(rename = "artifact.not_kept")]
    ArtifactNotKept {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// What happened, for the operator.
        error: Arc<str>,
    },
    /// A skill became the active one; its tools are offered from the next iteration.
    #[serde(rename = "skill.activated")]
    SkillActivated {
        /// The skill.
        skill: SkillId,
        /// Who activated it.
        by: ActivatedBy,
    },
    /// A skill is no longer active; what it narrows or adds ends with the next iteration.
    #[serde(rename = "skill.deactivated")]
    SkillDeactivated {
        /// The skill.
        skill: SkillId,
        /// Who put it away.
        by: DeactivatedBy,
    },
    /// A step of a skill is done: its tool gave a result that is no error.
    #[serde(rename = "skill.step_advanced")]
    StepAdvanced {
        /// The skill.
        skill: SkillId,
        /// The step that is done, from 1.
        step: usize,
        /// How many there are.
        total: usize,
        /// The tool that it took.
        tool: ToolName,
    },
    /// The model asked to leave a step out, or the host did.
    #[serde(rename = "skill.step_skipped")]
    StepSkipped {
        /// The skill.
        skill: SkillId,
        /// The step, from 1.
        step: usize,
        /// Why, as who asked says.
        reason: Arc<str>,
        /// Whether the skill lets no step be left out: then it is still the current one.
        held: bool,
    },
    /// A turn is over, or a skill no longer active, and steps of it are not done.
    #[serde(rename = "skill.steps_unfinished")]
    StepsUnfinished {
        /// The skill.
        skill: SkillId,
        /// The tools of the steps that are left, in order.
        remaining: Vec<ToolName>,
    },
    /// Skills have changed and cannot be loaded as they are now; the turn has those that could be
    /// loaded last.
    #[serde(rename = "skill.reload_failed")]
    SkillReloadFailed {
        /// What is wrong, and where.
        problem: Arc<str>,
    },
    /// The rule list was held against an offered call: once for each call that is decided on, and
    /// again when a middleware rewrites it. Only where there is a policy.
    #[serde(rename = "policy.checked")]
    PolicyChecked {
        /// The tool.
        tool: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The rule that decided, or `policy_default`.
        rule: Arc<str>,
        /// What it does.
        effect: Effect,
        /// What was known of the call.
        stage: PolicyStage,
    },
    /// A rule or a middleware refused a call.
    #[serde(rename = "policy.denied")]
    PolicyDenied {
        /// The tool.
        tool: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The rule, the default, or the middleware.
        rule: Arc<str>,
        /// Why, as the rule says.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// A person is asked, and something waits for the answer.
    #[serde(rename = "question.asked")]
    QuestionAsked {
        /// The question's id.
        id: Arc<str>,
        /// What it is about.
        reason: Arc<str>,
        /// What there is to decide on.
        payload: Value,
        /// JSON Schema of the answer, where not any will do.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer_schema: Option<Value>,
        /// How long is waited, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// Nobody waits for the answer to a question any more. Each that was asked has one.
    #[serde(rename = "question.closed")]
    QuestionClosed {
        /// The question's id.
        id: Arc<str>,
        /// How: `answered`, `rejected`, `aborted`, `timed_out`.
        result: Arc<str>,
    },
    /// Something failed, and a rule has it tried again: right before the wait, if there is one.
    #[serde(rename = "reliability.retried")]
    ReliabilityRetried {
        /// Where it failed.
        stage: Stage,
        /// What the rule says: `retry`, `retry_other` or `fallback`.
        then: Arc<str>,
        /// Who failed: a source's path, a model's name, a tool's name.
        provider: Arc<str>,
        /// Who is asked instead, if it is somebody else.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Arc<str>>,
        /// How many attempts there were.
        attempt: u32,
        /// How long is waited first.
        wait_ms: u64,
        /// Which rule.
        rule: Arc<str>,
        /// The class of the error.
        error_class: Arc<str>,
    },
    /// What had failed has succeeded.
    #[serde(rename = "reliability.recovered")]
    ReliabilityRecovered {
        /// Where it had failed.
        stage: Stage,
        /// Who succeeded.
        provider: Arc<str>,
        /// How many attempts it took.
        attempts: u32,
        /// What the last rule said: `retry`, `retry_other`, `fallback`; `ok` when it was to go on with
        /// what there is.
        via: Arc<str>,
    },
    /// Rules gave something up that failed: one said so, or none has anything left to try. What no
    /// rule was about fails without this event.
    #[serde(rename = "reliability.fail_fast")]
    ReliabilityFailFast {
        /// Where it failed.
        stage: Stage,
        /// Who failed last.
        provider: Arc<str>,
        /// What the rule's author calls it, else as `code`.
        kind: Arc<str>,
        /// How it ended: `fail_fast`, `retries_exhausted`, `retry_budget_exhausted`, `wait_too_long`,
        /// `no_other`, `nothing_to_accept`, `mid_stream`, `not_repeatable`.
        code: Arc<str>,
        /// Which rule.
        rule: Arc<str>,
        /// How many attempts there were.
        attempts: u32,
        /// What happened.
        error: String,
        /// Its class.
        error_class: Arc<str>,
    },
    /// The condition of a rule failed or panicked; the rule counts as one that does not match.
    #[serde(rename = "reliability.rule_failed")]
    ReliabilityRuleFailed {
        /// Which rule.
        rule: Arc<str>,
        /// What it failed with.
        error: String,
    },
    /// A breaker changed its state: `closed`, `open`, `half_open`.
    #[serde(rename = "breaker.changed")]
    BreakerChanged {
        /// What it guards.
        stage: Stage,
        /// Whom: a source's path, a model's name, a tool's name.
        of: Arc<str>,
        /// What it was.
        from: Arc<str>,
        /// What it is.
        to: Arc<str>,
    },
    /// An iteration is over.
    #[serde(rename = "agent.iteration_end")]
    IterationEnd {
        /// How many calls were made.
        tool_calls: usize,
    },
    /// The run is over: always the last event.
    #[serde(rename = "agent.turn_end")]
    TurnEnd {
        /// How it ended.
        stopped: Arc<str>,
        /// The answer.
        answer: Option<Arc<str>>,
        /// How many iterations there were.
        iterations: u32,
        /// What it used.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
        /// What went wrong.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A reader of a stream was too slow: so many events are missing before the next.
    #[serde(rename = "events.lagged")]
    Lagged {
        /// How many.
        missed: u64,
    },
    /// A listener panicked and was removed.
    #[serde(rename = "events.listener_failed")]
    ListenerFailed {
        /// What it listened to.
        pattern: Arc<str>,
        /// What the panic said.
        error: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

/// A known tool that is not offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotOffered {
    /// The tool; of a source that was left out, what its tools are called.
    pub name: Arc<str>,
    /// Where it comes from.
    pub origin: Arc<str>,
    /// Who withholds it: `gate`, `availability`, `personality`, `policy`, `skill`, `collision`, `schema`
    /// or `discovery`.
    pub by: Arc<str>,
    /// The rules and the gates, with their reasons. What would have to change is not in it.
    pub reason: String,
}

/// What is known of a call when the rule list is held against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PolicyStage {
    /// The tool and the situation. Nothing was said about the arguments yet.
    Name,
    /// The arguments too, which are valid.
    Arguments,
}

/// Who activated a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActivatedBy {
    /// The model, by calling `read_skill`.
    ReadSkill,
    /// Whoever runs the turn, at its start or later.
    Caller,
}

/// Who put a skill away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeactivatedBy {
    /// The model, by calling `deactivate_skill`.
    DeactivateSkill,
    /// Whoever runs the turn.
    Caller,
}

impl EventKind {
    /// The names of all events, grouped by domain.
    pub const NAMES: [&'static str; 42] = [
        "agent.turn_start",
        "agent.iteration_start",
        "agent.iteration_end",
        "agent.turn_end",
        "tools.discovery_started",
        "tools.discovery_completed",
        "tools.discovery_failed",
        "tools.changed",
        "tools.source_stale",
        "tools.source_omitted",
        "tools.offered",
        "tools.collision",
        "model.start",
        "model.text",
        "model.reasoning",
        "model.prefix_changed",
        "model.superseded",
        "model.end",
        "tool.start",
        "tool.rewritten",
        "tool.answered",
        "tool.progress",
        "tool.end",
        "artifact.kept",
        "artifact.not_kept",
        "skill.activated",
        "skill.deactivated",
        "skill.step_advanced",
        "skill.step_skipped",
        "skill.steps_unfinished",
        "skill.reload_failed",
        "policy.checked",
        "policy.denied",
        "question.asked",
        "question.closed",
        "reliability.retried",
        "reliability.recovered",
        "reliability.fail_fast",
        "reliability.rule_failed",
        "breaker.changed",
        "events.lagged",
        "events.listener_failed",
    ];

    /// The event's name, as in `type`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TurnStart { .. } => "agent.turn_start",
            Self::IterationStart => "agent.iteration_start",
            Self::DiscoveryStarted { .. } => "tools.discovery_started",
            Self::DiscoveryCompleted { .. } => "tools.discovery_completed",
            Self::DiscoveryFailed { .. } => "tools.discovery_failed",
            Self::ToolsChanged { .. } => "tools.changed",
            Self::SourceStale { .. } => "tools.source_stale",
            Self::SourceOmitted { .. } => "tools.source_omitted",
            Self::ToolsOffered { .. } => "tools.offered",
            Self::Collision { .. } => "tools.collision",
            Self::ModelStart { .. } => "model.start",
            Self::ModelText { .. } => "model.text",
            Self::ModelReasoning { .. } => "model.reasoning",
            Self::PrefixChanged { .. } => "model.prefix_changed",
            Self::ModelSuperseded { .. } => "model.superseded",
            Self::ModelEnd { .. } => "model.end",
            Self::ToolStart { .. } => "tool.start",
            Self::ToolRewritten { .. } => "tool.rewritten",
            Self::ToolAnswered { .. } => "tool.answered",
            Self::ToolProgress { .. } => "tool.progress",
            Self::ToolEnd { .. } => "tool.end",
            Self::ArtifactKept { .. } => "artifact.kept",
            Self::ArtifactNotKept { .. } => "artifact.not_kept",
            Self::SkillActivated { .. } => "skill.activated",
            Self::SkillDeactivated { .. } => "skill.deactivated",
            Self::StepAdvanced { .. } => "skill.step_advanced",
            Self::StepSkipped { .. } => "skill.step_skipped",
            Self::StepsUnfinished { .. } => "skill.steps_unfinished",
            Self::SkillReloadFailed { .. } => "skill.reload_failed",
            Self::PolicyChecked { .. } => "policy.checked",
            Self::PolicyDenied { .. } => "policy.denied",
            Self::QuestionAsked { .. } => "question.asked",
            Self::QuestionClosed { .. } => "question.closed",
            Self::ReliabilityRetried { .. } => "reliability.retried",
            Self::ReliabilityRecovered { .. } => "reliability.recovered",
            Self::ReliabilityFailFast { .. } => "reliability.fail_fast",
            Self::ReliabilityRuleFailed { .. } => "reliability.rule_failed",
            Self::BreakerChanged { .. } => "breaker.changed",
            Self::IterationEnd { .. } => "agent.iteration_end",
            Self::TurnEnd { .. } => "agent.turn_end",
            Self::Lagged { .. } => "events.lagged",
            Self::ListenerFailed { .. } => "events.listener_failed",
        }
    }
}
