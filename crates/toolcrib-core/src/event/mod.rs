//! What happened, as typed events with stable dotted names.

mod channel;
mod hub;
mod name;
pub(crate) mod recorder;
#[cfg(feature = "tracing")]
pub(crate) mod spans;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

#[cfg(feature = "tracing")]
pub use self::spans::SpanLink;
pub use self::{
    channel::ChannelAdapter,
    hub::{EventStream, Events, Subscription, UnknownEventError},
    recorder::TurnEvents,
};
use crate::{
    json::digest::Digest,
    messages::message::Usage,
    models::model::{ModelErrorClass, StopReason, ToolChoice},
    names::{
        identity::Identity,
        name::{SkillId, ToolName},
    },
    policy::{Effect, PolicyStage},
    provider::{DiscoveryErrorClass, listing_info::CacheStatus, withheld_tool::WithheldTool},
    reliability::Stage,
    tool::{capabilities::is_false, output::ErrorCode},
};
pub use crate::{
    messages::ImageNotice,
    middleware::Journal,
    tool::{Audience, ProgressCount},
};

/// One event of a turn. Serializes to one flat JSON object with `type`, the fields here and the
/// payload's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The run.
    pub turn_id: Arc<str>,
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

/// The occurrence that an event reports, with its fields.
///
/// Durations are whole milliseconds. Texts and arguments are redacted; results appear as they are
/// after sanitizing and before the fence.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum EventKind {
    /// A turn starts with a user message.
    #[serde(rename = "agent.turn_start")]
    TurnStart {
        /// The user's message.
        message: Arc<str>,
        /// The model's name.
        model: Arc<str>,
        /// The id of the active personality.
        personality: Arc<str>,
        /// Whether the turn is a dry run, which makes no calls that have an effect.
        #[serde(skip_serializing_if = "is_false")]
        dry_run: bool,
        /// The id of the turn that gave this one its task, if it is that of a child agent.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_turn: Option<Arc<str>>,
    },
    /// The turn is the interrupted one of a session, and goes on. Follows `agent.turn_start`. The
    /// lists have the ids of the calls whose results the history lacks.
    #[serde(rename = "agent.turn_resumed")]
    TurnResumed {
        /// The name of the model that the turn began with.
        model: Arc<str>,
        /// The number of the model's responses so far, which are not requested again.
        responses: u32,
        /// Calls that had ended. They keep their results.
        ended: Vec<Arc<str>>,
        /// Calls that are not made again, and have no result, most of them `outcome_unknown`.
        lost: Vec<Arc<str>>,
        /// Calls that were cut off, and are made once more, because that is harmless.
        repeated: Vec<Arc<str>>,
        /// Calls that had not begun, and are made now.
        begun: Vec<Arc<str>>,
    },
    /// A limit of the turn is reached, and ends it. At a limit of calls or denials, a last request
    /// without calls follows.
    #[serde(rename = "agent.limit_reached")]
    LimitReached {
        /// The limit: `max_calls`, `max_calls_per_tool`, `max_identical_calls`, `max_denials`,
        /// `max_tokens` or `max_cost_usd`.
        limit: Arc<str>,
        /// The tool, if the limit counts its calls.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<Arc<str>>,
        /// The limit in words.
        message: String,
    },
    /// The conversation exceeds the model's context window, so the oldest responses of the model with
    /// the results of their calls are left out of this request and all later ones. Messages of the
    /// user, skills and found tools stay. The session keeps everything.
    #[serde(rename = "agent.context_compacted")]
    ContextCompacted {
        /// The number of messages that are left out.
        left_out: usize,
        /// The number of messages that remain.
        remaining: usize,
        /// The size of the messages before, in bytes, with the vendor's content and media.
        bytes_before: u64,
        /// Their size after.
        bytes_after: u64,
    },
    /// The model may not see an image: it is not sent, or whether the model sees images is not known.
    #[serde(rename = "agent.image_noticed")]
    ImageNoticed {
        /// The image, and the reason.
        #[serde(flatten)]
        notice: ImageNotice,
    },
    /// An iteration starts; discovery follows.
    #[serde(rename = "agent.iteration_start")]
    IterationStart,
    /// A provider is queried.
    #[serde(rename = "tools.discovery_started")]
    DiscoveryStarted {
        /// The provider's path, outermost first.
        provider: Arc<str>,
        /// The number of this attempt at this source within the iteration; omitted in JSON for the
        /// first.
        #[serde(skip_serializing_if = "is_first")]
        attempt: u32,
    },
    /// A provider responded.
    #[serde(rename = "tools.discovery_completed")]
    DiscoveryCompleted {
        /// The provider's path.
        provider: Arc<str>,
        /// The id of the innermost provider of the path, which produced the listing.
        leaf: Arc<str>,
        /// Duration.
        duration_ms: u64,
        /// The number of offered tools.
        tool_count: usize,
        /// How the cache was used.
        cache: CacheStatus,
        /// The age of a cached listing, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        age_ms: Option<u64>,
        /// The source's error, if the cache served an older listing because of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A source's listing differs from its previous one in this process for the same tenant,
    /// principal and active skills. Only emitted if there are listeners.
    #[serde(rename = "tools.changed")]
    ToolsChanged {
        /// The provider's path.
        provider: Arc<str>,
        /// Tools that were added.
        added: Vec<ToolName>,
        /// Tools that were removed.
        removed: Vec<ToolName>,
        /// Tools whose definition changed.
        changed: Vec<ToolName>,
    },
    /// A provider failed, or was cancelled.
    #[serde(rename = "tools.discovery_failed")]
    DiscoveryFailed {
        /// The path of the provider that failed.
        provider: Arc<str>,
        /// The id of the innermost provider of that path.
        leaf: Arc<str>,
        /// The error.
        error: String,
        /// The error class.
        error_class: DiscoveryErrorClass,
        /// Duration.
        duration_ms: u64,
        /// The number of this attempt at this source within the iteration.
        attempt: u32,
    },
    /// A source failed, and its last good listing replaces this one. Follows the
    /// `tools.discovery_failed` with the cause.
    #[serde(rename = "tools.provider_stale")]
    ProviderStale {
        /// The source's path.
        provider: Arc<str>,
        /// The age of the listing, in milliseconds.
        age_ms: u64,
        /// The number of offered tools.
        tool_count: usize,
    },
    /// A source failed and is omitted from this iteration. Follows the `tools.discovery_failed`
    /// with the cause.
    #[serde(rename = "tools.provider_omitted")]
    ProviderOmitted {
        /// The source's path.
        provider: Arc<str>,
        /// The pattern of its tools' names, such as `mcp__git__*`; otherwise the source's id.
        name: Arc<str>,
        /// The number of tools in its last good listing, now missing; absent if there is no such
        /// listing.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_count: Option<usize>,
    },
    /// The menu of an iteration is complete. Emitted again if another registry is offered within
    /// the iteration.
    #[serde(rename = "tools.offered")]
    ToolsOffered {
        /// The offered tools, in order.
        tools: Vec<ToolName>,
        /// The origin of each offered tool, in the same order.
        origins: Vec<Arc<str>>,
        /// The number of deferred tools: offered, and not listed here. Omitted in JSON if there
        /// are none.
        #[serde(skip_serializing_if = "is_zero")]
        deferred: usize,
        /// The number of withheld known tools; an omitted source counts as one.
        withheld: usize,
        /// The withheld tools, listed only in the first iteration and when they were recomputed.
        /// Their reasons do not include the change that would offer them.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        withheld_tools: Vec<WithheldTool>,
        /// The menu's fingerprint.
        fingerprint: Digest,
        /// Whether it differs from the previous iteration's.
        changed: bool,
        /// The time to compose the menu, or to detect that the previous one is still valid.
        duration_ms: u64,
    },
    /// A model searched the deferred tools.
    #[serde(rename = "tools.searched")]
    ToolsSearched {
        /// The needs, redacted.
        needs: Vec<String>,
        /// The tools that were found for each need, the best first.
        found: Vec<Vec<ToolName>>,
        /// The number of tools that were searched.
        among: usize,
        /// Why the encoder of the search did not count, redacted.
        #[serde(skip_serializing_if = "Option::is_none")]
        encoder_error: Option<String>,
        /// Duration.
        duration_ms: u64,
    },
    /// Searches found deferred tools that were not revealed.
    #[serde(rename = "tools.revealed")]
    ToolsRevealed {
        /// The tools, in the order in which they were found.
        tools: Vec<ToolName>,
        /// The least recently used ones, which exceeded the limit and are no longer revealed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        evicted: Vec<ToolName>,
        /// The number of revealed tools now.
        total: usize,
    },
    /// Two sources offer the same name, and a declared policy decided.
    #[serde(rename = "tools.collision")]
    Collision {
        /// The name.
        name: ToolName,
        /// The origin of the tool that is offered.
        kept: Arc<str>,
        /// The origin of the other tool.
        dropped: Arc<str>,
    },
    /// A model request starts.
    #[serde(rename = "model.start")]
    ModelStart {
        /// The model's name.
        model: Arc<str>,
        /// The number of messages sent.
        messages: usize,
        /// The number of tools offered.
        tools: usize,
        /// Whether the model may call tools.
        tool_choice: ToolChoice,
        /// The size of the request in bytes: system text, tool definitions, texts and arguments of
        /// the messages. Without images and the vendor's own JSON.
        bytes: u64,
    },
    /// A piece of the model's text.
    #[serde(rename = "model.text")]
    ModelText {
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning, if its vendor exposes it.
    #[serde(rename = "model.reasoning")]
    ModelReasoning {
        /// The piece.
        text: String,
    },
    /// The next model request does not extend the previous one, within a run or, where the caller
    /// named the conversation, between two runs. The vendor's prompt cache is missed from the first
    /// difference on, and that part is paid for again. Order of the prompt: tools, system text,
    /// messages.
    #[serde(rename = "model.prefix_changed")]
    PrefixChanged {
        /// Added tools.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools_added: Vec<ToolName>,
        /// Removed tools.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools_removed: Vec<ToolName>,
        /// Tools whose definition changed.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tools_changed: Vec<ToolName>,
        /// Whether the remaining tools are in another order.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        tools_reordered: bool,
        /// Whether the system text changed.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        system_changed: bool,
        /// Whether the tool choice changed. Anthropic's cached messages depend on it; other
        /// vendors' do not.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        tool_choice_changed: bool,
        /// The index of the first message that differs, from 0.
        #[serde(skip_serializing_if = "Option::is_none")]
        messages_from: Option<usize>,
    },
    /// Discard all `model.text` since the last `model.start`: the response was unusable and is
    /// requested again. User interfaces should remove the text.
    #[serde(rename = "model.superseded")]
    ModelSuperseded {
        /// The model that produced the text.
        model: Arc<str>,
    },
    /// A model has responded, or failed.
    #[serde(rename = "model.end")]
    ModelEnd {
        /// The model's name.
        model: Arc<str>,
        /// The number of tool calls in the response.
        calls: usize,
        /// The finish reason, if it responded.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop: Option<StopReason>,
        /// Token usage.
        usage: Usage,
        /// The size of the response in bytes: its text, and the names and arguments of its calls.
        bytes: u64,
        /// Duration.
        duration_ms: u64,
        /// The time until the first piece of text or reasoning, if there was one.
        #[serde(skip_serializing_if = "Option::is_none")]
        first_ms: Option<u64>,
        /// The error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The error class; absent if the run was cancelled.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_class: Option<ModelErrorClass>,
        /// The retry delay that the vendor requested, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    },
    /// A tool call starts. Each has exactly one `tool.end`.
    #[serde(rename = "tool.start")]
    ToolStart {
        /// The call's id.
        call_id: Arc<str>,
        /// The name, as called.
        tool: Arc<str>,
        /// The tool's origin; absent for a name that is not offered.
        #[serde(skip_serializing_if = "Option::is_none")]
        origin: Option<Arc<str>>,
        /// The arguments.
        args: Value,
        /// The content id of tool and arguments.
        args_digest: Digest,
        /// Values that the model wrote as text, such as `"5"` for an integer, and that were read as the
        /// declared type: the first 16 as JSON Pointers, where the empty one is all of the arguments.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        converted: Vec<Arc<str>>,
    },
    /// A middleware changed a call's arguments; they are validated again.
    #[serde(rename = "tool.rewritten")]
    ToolRewritten {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The middleware.
        middleware: Arc<str>,
        /// The arguments before. The conversation contains the new ones.
        before: Value,
        /// The new arguments.
        args: Value,
        /// The content id of tool and new arguments.
        args_digest: Digest,
    },
    /// A middleware answered a call; the tool is not run.
    #[serde(rename = "tool.answered")]
    ToolAnswered {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The middleware.
        middleware: Arc<str>,
    },
    /// A running tool reports progress.
    #[serde(rename = "tool.progress")]
    ToolProgress {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The progress message.
        message: String,
        /// Percentage done, 0 to 100.
        #[serde(skip_serializing_if = "Option::is_none")]
        percent: Option<u8>,
        /// The count that the percentage comes from, in units of the tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<ProgressCount>,
        /// Metadata of a protocol, if it has at most 1,000 characters.
        #[serde(skip_serializing_if = "Option::is_none")]
        meta: Option<Box<Map<String, Value>>>,
        /// The audience.
        audience: Audience,
    },
    /// A tool call ends.
    #[serde(rename = "tool.end")]
    ToolEnd {
        /// The call's id.
        call_id: Arc<str>,
        /// The name, as called.
        tool: Arc<str>,
        /// Whether it succeeded.
        ok: bool,
        /// The error code, if it failed.
        code: Option<ErrorCode>,
        /// The text of the result, or of the error.
        value: Arc<str>,
        /// Duration, without waits for approval and for answers of people.
        duration_ms: u64,
        /// The cost.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
        /// The size in bytes of the text before the first stage that may change it: the output of
        /// the tool, or the error message.
        produced_bytes: u64,
        /// The stages that changed the text, in order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        stages: Vec<StageBytes>,
        /// Whether the body ignored cancellation and was abandoned.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        abandoned: bool,
        /// The cause, for the operator.
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Arc<str>>,
    },
    /// A result was stored as an artifact, in whole or in part. Precedes the `tool.end` of its
    /// call.
    #[serde(rename = "artifact.kept")]
    ArtifactKept {
        /// The artifact's id, used by the model to read it.
        id: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The kind of artifact, such as `text` or `json`.
        kind: Arc<str>,
        /// Size in bytes.
        bytes: u64,
        /// Number of lines.
        lines: u64,
        /// Number of characters, as far as the content is UTF-8.
        chars: u64,
        /// The digest of its bytes.
        digest: Digest,
    },
    /// A result could not be stored as an artifact; the part that the model does not read is lost.
    #[serde(rename = "artifact.not_kept")]
    ArtifactNotKept {
        /// The call's id.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// The error, for the operator.
        error: Arc<str>,
    },
    /// A skill was activated; its tools are offered from the next iteration.
    #[serde(rename = "skill.activated")]
    SkillActivated {
        /// The skill.
        skill: SkillId,
        /// The source of the activation.
        by: ActivatedBy,
    },
    /// A skill is no longer active; what it narrows or adds ends with the next iteration.
    #[serde(rename = "skill.deactivated")]
    SkillDeactivated {
        /// The skill.
        skill: SkillId,
        /// The source of the deactivation.
        by: DeactivatedBy,
    },
    /// A skill step is done: its tool returned a result that is not an error.
    #[serde(rename = "skill.step_advanced")]
    StepAdvanced {
        /// The skill.
        skill: SkillId,
        /// The step, from 1.
        step: usize,
        /// The total number of steps.
        total: usize,
        /// The step's tool.
        tool: ToolName,
    },
    /// The model or the host asked to skip a skill step.
    #[serde(rename = "skill.step_skipped")]
    StepSkipped {
        /// The skill.
        skill: SkillId,
        /// The step, from 1.
        step: usize,
        /// The reason given.
        reason: Arc<str>,
        /// Whether the skill forbids skipping; then the step is still the current one.
        held: bool,
    },
    /// A turn ended, or a skill was deactivated, with skill steps not done.
    #[serde(rename = "skill.steps_unfinished")]
    StepsUnfinished {
        /// The skill.
        skill: SkillId,
        /// The tools of the remaining steps, in order.
        remaining: Vec<ToolName>,
    },
    /// Changed skills failed to load; the turn keeps the last version that loaded.
    #[serde(rename = "skill.reload_failed")]
    SkillReloadFailed {
        /// The problem and its place.
        problem: Arc<str>,
    },
    /// The policy was evaluated for an offered call: once per decision, and again when a middleware
    /// rewrites the call. Only with a policy.
    #[serde(rename = "policy.checked")]
    PolicyChecked {
        /// The tool.
        tool: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The rule that matched, or `policy_default`.
        rule: Arc<str>,
        /// The rule's effect.
        effect: Effect,
        /// The facts known at that point.
        stage: PolicyStage,
    },
    /// A rule or a middleware denied a call.
    #[serde(rename = "policy.denied")]
    PolicyDenied {
        /// The tool.
        tool: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The rule, the default, or the middleware.
        rule: Arc<str>,
        /// The rule's reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// A rule wants a call approved, and the approver is queried.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        /// The tool.
        tool: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The rule.
        rule: Arc<str>,
        /// The rule's reason.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
    /// The approver has decided on a call, or lets it wait.
    #[serde(rename = "approval.settled")]
    ApprovalSettled {
        /// The tool.
        tool: Arc<str>,
        /// The call's id.
        call_id: Arc<str>,
        /// The decision: `granted`, `denied`, `waiting`, `expired` for a call that waits again because
        /// the time of its approval, or for one, was over, `cancelled` with the turn, or `failed`.
        decision: Arc<str>,
    },
    /// A question to a person was asked; the run waits for the answer.
    #[serde(rename = "question.asked")]
    QuestionAsked {
        /// The question's id.
        id: Arc<str>,
        /// The subject of the question.
        reason: Arc<str>,
        /// The data to decide on.
        payload: Value,
        /// JSON Schema of the answer, if it is restricted.
        #[serde(skip_serializing_if = "Option::is_none")]
        answer_schema: Option<Value>,
        /// The timeout, in milliseconds.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    },
    /// A question is closed: no caller waits for its answer any more. Each question has exactly one
    /// such event.
    #[serde(rename = "question.closed")]
    QuestionClosed {
        /// The question's id.
        id: Arc<str>,
        /// The result: `answered`, `rejected`, `aborted`, `timed_out`.
        result: Arc<str>,
    },
    /// A rule retries a failure. Emitted before the wait, if any.
    #[serde(rename = "reliability.retried")]
    ReliabilityRetried {
        /// The stage that failed.
        stage: Stage,
        /// The rule's action: `retry`, `retry_other` or `fallback`.
        then: Arc<str>,
        /// The path of the source, or the name of the model or tool, that failed.
        provider: Arc<str>,
        /// The replacement that is used instead, if any.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Arc<str>>,
        /// The number of attempts so far.
        attempt: u32,
        /// The wait before the retry.
        wait_ms: u64,
        /// The rule.
        rule: Arc<str>,
        /// The class of the error.
        error_class: Arc<str>,
    },
    /// A retried operation succeeded.
    #[serde(rename = "reliability.recovered")]
    ReliabilityRecovered {
        /// The stage that had failed.
        stage: Stage,
        /// The source, model or tool that succeeded.
        provider: Arc<str>,
        /// The number of attempts.
        attempts: u32,
        /// The last rule's action: `retry`, `retry_other`, `fallback`; `ok` if it was to continue
        /// with the available result.
        via: Arc<str>,
    },
    /// Reliability rules gave up on a failure: one said so, or none has an attempt left. A failure
    /// that no rule matches does not emit this event.
    #[serde(rename = "reliability.fail_fast")]
    ReliabilityFailFast {
        /// The stage that failed.
        stage: Stage,
        /// The source, model or tool that failed last.
        provider: Arc<str>,
        /// The rule author's name for the failure; otherwise the same as `code`.
        kind: Arc<str>,
        /// The outcome: `fail_fast`, `retries_exhausted`, `retry_budget_exhausted`,
        /// `wait_too_long`, `no_other`, `nothing_to_accept`, `mid_stream`, `not_repeatable`.
        code: Arc<str>,
        /// The rule.
        rule: Arc<str>,
        /// The number of attempts.
        attempts: u32,
        /// The error.
        error: String,
        /// The error class.
        error_class: Arc<str>,
    },
    /// A rule's condition failed or panicked; the rule counts as not matching.
    #[serde(rename = "reliability.rule_failed")]
    ReliabilityRuleFailed {
        /// The rule.
        rule: Arc<str>,
        /// The error.
        error: String,
    },
    /// A breaker changed its state: `closed`, `open`, `half_open`.
    #[serde(rename = "breaker.changed")]
    BreakerChanged {
        /// The guarded stage.
        stage: Stage,
        /// The guarded object: a source's path, or the name of a model or tool.
        of: Arc<str>,
        /// The old state.
        from: Arc<str>,
        /// The new state.
        to: Arc<str>,
    },
    /// An iteration ended.
    #[serde(rename = "agent.iteration_end")]
    IterationEnd {
        /// The number of tool calls.
        tool_calls: usize,
    },
    /// The run ended. Always the last event.
    #[serde(rename = "agent.turn_end")]
    TurnEnd {
        /// The stop reason.
        stopped: Arc<str>,
        /// The answer.
        answer: Option<Arc<str>>,
        /// The number of iterations.
        iterations: u32,
        /// Token usage.
        usage: Usage,
        /// Duration.
        duration_ms: u64,
        /// The error.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A stream reader was too slow: events are missing before the next one.
    #[serde(rename = "events.lagged")]
    Lagged {
        /// The number of missing events.
        missed: u64,
    },
    /// A listener panicked and was removed.
    #[serde(rename = "events.listener_failed")]
    ListenerFailed {
        /// Its pattern.
        pattern: Arc<str>,
        /// The panic message.
        error: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_first(attempt: &u32) -> bool {
    *attempt == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A stage of the pipe that changed the text of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StageBytes {
    /// The stage: `reduce`, `redact`, `artifact_store`, `budget`, `sanitize` or `fence`.
    pub stage: &'static str,
    /// The size of the text after it, in bytes.
    pub bytes: u64,
}

/// The source of a skill's activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ActivatedBy {
    /// The model, by calling `read_skill`.
    ReadSkill,
    /// The caller of the turn, at its start or later.
    Caller,
}

/// The source of a skill's deactivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeactivatedBy {
    /// The model, by calling `deactivate_skill`.
    DeactivateSkill,
    /// The caller of the turn.
    Caller,
}
