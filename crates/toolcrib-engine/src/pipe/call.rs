//! The data of a call on its way through the pipe, until its text is cut.

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use toolcrib_core::{
    __internal::fence_chars, Approver, ArtifactLog, ArtifactPort, Attachments, CallPlan,
    CancellationToken, ClientPort, ContentBlock, Digest, ErrorCode, Journal, Menu, TextOrigin,
    Tool, ToolError, ToolOutput, ToolResult, TurnEvents, TurnInfo,
};

use super::{arguments::InvalidArguments, call_counter::CallCounter, sizes::Sizes};
use crate::{
    compose::{Situation, Withheld},
    parts::EngineParts,
    personality::child::ChildAgents,
    policy::{halt::HaltSignal, questions::Questions},
    reliability::ReliabilityContext,
};

/// The data that every call of a batch shares.
pub(crate) struct Batch<'a> {
    pub(crate) engine: &'a EngineParts,
    pub(crate) events: &'a Arc<TurnEvents>,
    pub(crate) menu: &'a Arc<Menu>,
    pub(crate) withheld: &'a Withheld,
    pub(crate) situation: &'a Situation,
    pub(crate) iteration: u32,
    /// Whether the turn was acknowledged, which ends tools with the lifetime of an iteration.
    pub(crate) is_acked: bool,
    pub(crate) working_dir: &'a Arc<Path>,
    pub(crate) info: &'a Arc<TurnInfo>,
    pub(crate) attachments: &'a Arc<Attachments>,
    /// When its first body began.
    pub(crate) began: OnceLock<Instant>,
    pub(crate) cancellation: &'a CancellationToken,
    pub(crate) halting: &'a HaltSignal,
    pub(crate) call_counter: &'a CallCounter,
    /// The client that remote servers may ask.
    pub(crate) client: Option<&'a Arc<dyn ClientPort>>,
    pub(crate) questions: Option<&'a Questions>,
    /// The beginning of the calls' idempotency keys.
    pub(crate) idempotency_scope: &'a Arc<str>,
    /// The turn's own approver.
    pub(crate) approver: Option<&'a Arc<dyn Approver>>,
    /// The turn's own journal.
    pub(crate) journal: Option<&'a Arc<dyn Journal>>,
    /// `None` if nothing is configured for tools that fail.
    pub(crate) recovery: Option<&'a ReliabilityContext>,
    pub(crate) dry_run: bool,
    /// Whether nothing of the calls can be used after the turn.
    pub(crate) keeps_nothing: bool,
    /// Whether other processes continue the conversation of the turn.
    pub(crate) shares_conversation: bool,
    pub(crate) child_agents: Option<&'a Arc<dyn ChildAgents>>,
}

impl Batch<'_> {
    /// The store of results for later calls, if there is one and the turn keeps anything.
    pub(super) fn artifact_port(&self) -> Option<&Arc<dyn ArtifactPort>> {
        self.engine.artifact_port.as_ref().filter(|_| !self.keeps_nothing)
    }
}

/// One call in the pipe.
pub(super) struct Call {
    pub(super) id: Arc<str>,
    pub(super) name: Arc<str>,
    /// The name that the model called, if it is another.
    pub(super) called: Option<Arc<str>>,
    pub(super) args: Result<Value, InvalidArguments>,
    pub(super) args_digest: Digest,
    pub(super) began: Instant,
    /// Whether its intent was written, so that its outcome must be.
    pub(super) has_intent: AtomicBool,
    /// The artifacts that the tool's body makes, if there is an artifact store.
    pub(super) kept: Option<ArtifactLog>,
    pub(super) sizes: Sizes,
    /// Set if a dry run does not make it.
    pub(super) plan: Option<CallPlan>,
    /// Whether a middleware changed the arguments.
    pub(super) rewritten: bool,
    /// Whether other calls of its batch run at the same time.
    pub(super) has_siblings: bool,
    pub(super) alike: Alike,
    /// The time that it waited for people, in microseconds: not a time of the call.
    pub(super) waited_us: AtomicU64,
}

/// The place of a call among those of its tool that run at the same time.
#[derive(Clone, Copy)]
pub(super) struct Alike {
    /// The index of the call, from 0.
    pub(super) position: usize,
    /// The number of these calls, itself included.
    pub(super) count: usize,
}

impl Default for Alike {
    fn default() -> Self {
        Self { position: 0, count: 1 }
    }
}

impl Call {
    /// Notes a wait for a person.
    pub(super) fn has_waited(&self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited_us.fetch_add(time, Ordering::Relaxed);
    }

    /// The time of all waits for people.
    pub(super) fn waited(&self) -> Duration {
        Duration::from_micros(self.waited_us.load(Ordering::Relaxed))
    }
}

/// A call's outcome, before its text is cut, cleaned and fenced.
pub(super) struct RawResult {
    /// The tool, once it was found.
    pub(super) tool: Option<Tool>,
    pub(super) outcome: Result<ToolOutput, Failure>,
}

/// A call that failed: refused by a stage, or failed by the tool itself.
pub(super) struct Failure {
    pub(super) code: ErrorCode,
    /// For the model.
    pub(super) message: String,
    /// For the operator.
    pub(super) cause: Option<String>,
    /// Whether the tool wrote the message: then it is fenced like the tool's results.
    pub(super) by_tool: bool,
    /// Whether the body was abandoned.
    pub(super) abandoned: bool,
    /// The cost of the failed call.
    pub(super) cost_usd: Option<f64>,
    /// The parts of a tool's result beside its message.
    pub(super) details: Option<Box<ToolOutput>>,
}

impl Failure {
    /// A refusal by a stage.
    pub(super) fn refused(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            cause: None,
            by_tool: false,
            abandoned: false,
            cost_usd: None,
            details: None,
        }
    }

    /// The blocks of the tool's failure.
    pub(super) fn blocks(&self) -> &[ContentBlock] {
        self.details.as_ref().map_or(&[], |details| &details.blocks)
    }

    pub(super) fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

impl From<ToolError> for Failure {
    /// A failure of the tool.
    fn from(error: ToolError) -> Self {
        let cause = error.cause_chain().filter(|chain| *chain != error.message);
        let details = error.details;
        let message = match &details {
            Some(details) if !details.blocks.is_empty() => details.value.clone(),
            _ => error.message,
        };
        Self { cause, by_tool: true, details, ..Self::refused(error.code, message) }
    }
}

/// A call whose result is final, or waits for the budget that the others leave.
pub(super) enum ResultState {
    Done(ToolResult),
    Large(OversizedResult),
}

pub(super) struct OversizedResult {
    pub(super) call: Call,
    pub(super) ended: RawResult,
    /// The number of secrets that the redactor knew when it processed this: it runs again at the
    /// end if another call of the batch has added more.
    pub(super) known: usize,
}

pub(super) fn own_cap(tool: &Tool) -> usize {
    tool.max_result_chars().unwrap_or(usize::MAX)
}

/// Length of the lines for the blocks if none is omitted.
fn below_chars(text: &str, blocks: &[ContentBlock]) -> usize {
    let lines: usize = blocks.iter().map(|block| chars(&block.as_read()) + 1).sum();
    if text.is_empty() { lines.saturating_sub(1) } else { lines }
}

impl RawResult {
    /// The number of characters that a model reads.
    pub(super) fn chars(&self) -> usize {
        let (text, blocks) = match &self.outcome {
            Ok(output) => (&output.value, output.blocks.as_slice()),
            Err(failure) => (&failure.message, failure.blocks()),
        };
        chars(text) + below_chars(text, blocks)
    }

    /// The tool, if its text is untrusted.
    pub(super) fn fenced_tool(&self) -> Option<&Tool> {
        let by_tool = self.outcome.as_ref().err().is_none_or(|failure| failure.by_tool);
        let is_untrusted = |tool: &&Tool| match &self.outcome {
            Ok(output) => output.untrusted || tool.untrusted(),
            Err(_) => tool.untrusted(),
        };
        self.tool.as_ref().filter(|_| by_tool).filter(is_untrusted)
    }

    /// Where the text is from.
    pub(super) fn text_origin(&self) -> TextOrigin {
        let of_output = self.outcome.as_ref().map(|output| output.text_origin);
        let of_tool = self.tool.as_ref().map(|tool| tool.text_origin());
        let is_of_project = |origin: &TextOrigin| *origin == TextOrigin::Project;
        let of_output = of_output.ok().filter(is_of_project);
        of_output.or(of_tool).unwrap_or_default()
    }

    /// Where the text is from, if it will be sanitized.
    pub(super) fn cleaned_as(&self) -> Option<TextOrigin> {
        self.fenced_tool().map(|_| self.text_origin())
    }

    /// The room that the text needs, fence included.
    pub(super) fn needs(&self) -> usize {
        self.chars() + self.fenced_tool().map_or(0, |tool| fence_chars(tool.name()))
    }

    pub(super) fn own_cap(&self) -> usize {
        self.tool.as_ref().map_or(usize::MAX, own_cap)
    }
}

pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}
