//! The one pipe that every call goes through, whichever door it came in by. One file per stage,
//! in this order:
//!
//! `resolve → policy(name) → available → validate → policy(arguments) → secret arguments → middleware →
//! approve → scope → intent → run → output → reduce → redact → spool → budget → sanitise → fence → record`
//!
//! A stage either hands on or refuses; a refused call goes straight to `record`, and one that a
//! middleware rewrote back to `validate`. Calls of a batch run at the same time, except those of
//! `sequential` tools; results stand in call order.

mod absent;
mod approve;
mod arguments;
mod available;
mod budget;
mod fence;
mod intent;
mod made;
mod middleware;
mod output;
mod policy;
mod progress;
mod record;
mod redact;
mod reduce;
mod repeat;
mod resolve;
mod run;
mod sanitise;
mod scope;
mod secret_arguments;
mod spool;
mod structured;
mod validate;

use std::{path::Path, sync::Arc, time::Instant};

use futures_util::future::join_all;
use serde_json::Value;
use toolcrib_core::{
    CancellationToken, Digest, ErrorCode, KeptEntries, Menu, PendingCall, RunEvents, Tool,
    ToolCall, ToolContext, ToolContextParts, ToolError, ToolOutput, ToolResult, args_digest,
};

use self::arguments::NotJson;
pub(crate) use self::made::CallsMade;
pub use self::structured::is_data_note;
use crate::{
    compose::{Situation, Withheld},
    halt::Halting,
    parts::EngineParts,
    questions::Questions,
    reliability::Recovery,
    secrets::DeclaredSecrets,
};

/// What every call of a batch shares.
pub(crate) struct Batch<'a> {
    pub(crate) engine: &'a EngineParts,
    pub(crate) events: &'a RunEvents,
    pub(crate) menu: &'a Menu,
    pub(crate) withheld: &'a Withheld,
    pub(crate) situation: &'a Situation,
    pub(crate) iteration: u32,
    /// Whether the turn was acked, which ends what lives for an iteration.
    pub(crate) is_acked: bool,
    pub(crate) working_dir: &'a Arc<Path>,
    pub(crate) cancellation: &'a CancellationToken,
    pub(crate) halting: &'a Halting,
    pub(crate) made: &'a CallsMade,
    pub(crate) questions: Option<&'a Questions>,
    pub(crate) recovery: Option<&'a Recovery>,
}

/// One call on its way.
struct Call {
    id: Arc<str>,
    name: Arc<str>,
    args: Result<Value, NotJson>,
    args_digest: Digest,
    began: Instant,
    /// The artifacts that the tool's body makes, where there is a place for any.
    kept: Option<KeptEntries>,
}

/// How a call ended, before its text is cut, cleaned and fenced.
struct Ended {
    /// The tool, once it was found.
    tool: Option<Tool>,
    outcome: Result<ToolOutput, Failure>,
}

/// A call that failed: refused by a stage, or failed by the tool itself.
struct Failure {
    code: ErrorCode,
    /// For the model.
    message: String,
    /// For the operator.
    cause: Option<String>,
    /// Whether the tool wrote the message: then it is fenced like the tool's results.
    by_tool: bool,
    /// Whether the body was left behind.
    abandoned: bool,
    /// What it cost all the same.
    cost_usd: Option<f64>,
}

impl Failure {
    /// A stage refuses.
    fn refused(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            cause: None,
            by_tool: false,
            abandoned: false,
            cost_usd: None,
        }
    }

    fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

impl From<ToolError> for Failure {
    /// The tool failed.
    fn from(error: ToolError) -> Self {
        let cause = error.cause_chain().filter(|chain| *chain != error.message);
        Self { cause, by_tool: true, ..Self::refused(error.code, error.message) }
    }
}

impl Batch<'_> {
    /// Takes the calls of one model message through the pipe.
    pub(crate) async fn execute(&self, mut calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let limits = &self.engine.limits;
        let too_many = calls.split_off(calls.len().min(limits.batch_calls));
        let shares = budget::Shares::of(limits.batch_result_chars, calls.len());
        let settled = self.settle_all(calls, shares).await;
        let mut results = Vec::with_capacity(settled.len() + too_many.len());
        for (settled, cap) in budget::spend_the_rest(shares, settled) {
            results.push(match settled {
                Settled::Done(result) => result,
                Settled::Large(Large { call, mut ended, known }) => {
                    if self.engine.redactor.extent() > known {
                        redact::redact(self, &mut ended);
                    }
                    let kept = spool::spool(self, &call, &mut ended, cap).await;
                    self.finish(call, ended, cap, kept)
                }
            });
        }
        results.extend(too_many.into_iter().map(|call| self.refuse(call)));
        results
    }

    /// Takes calls as far as each can go alone: at the same time, but a sequential tool runs by
    /// itself, after those before it and before those behind it.
    async fn settle_all(&self, calls: Vec<ToolCall>, shares: budget::Shares) -> Vec<Settled> {
        let is_sequential =
            |call: &ToolCall| self.menu.get(&call.name).is_some_and(|tool| tool.sequential());
        let mut settled = Vec::with_capacity(calls.len());
        let mut calls = calls.into_iter().peekable();
        while let Some(first) = calls.next() {
            let alone = is_sequential(&first) || calls.peek().is_none_or(is_sequential);
            if alone {
                settled.push(self.settle(first, shares).await);
                continue;
            }
            let mut together = vec![first];
            while let Some(call) = calls.next_if(|call| !is_sequential(call)) {
                together.push(call);
            }
            settled
                .extend(join_all(together.into_iter().map(|call| self.settle(call, shares))).await);
        }
        settled
    }

    /// A call beyond what one batch may hold: it is not made.
    fn refuse(&self, call: ToolCall) -> ToolResult {
        let call = record::begin(self, call);
        let refusal = Failure::refused(ErrorCode::Denied, "not made: too many calls at once")
            .caused_by(format!("one batch makes {} calls", self.engine.limits.batch_calls));
        let ended = Ended { tool: None, outcome: Err(refusal) };
        self.finish(call, ended, usize::MAX, spool::Kept::default())
    }

    /// Takes one call as far as it can go alone: to the end if its result keeps within its share.
    async fn settle(&self, call: ToolCall, shares: budget::Shares) -> Settled {
        let mut call = record::begin(self, call);
        let mut ended = self.attempt(&mut call, shares).await;
        // Asked first: what another call teaches it from here on may have come too late.
        let known = self.engine.redactor.extent();
        redact::redact(self, &mut ended);
        match budget::within(shares, &ended) {
            Some(cap) => {
                let kept = spool::spool(self, &call, &mut ended, cap).await;
                Settled::Done(self.finish(call, ended, cap, kept))
            }
            None => Settled::Large(Large { call, ended, known }),
        }
    }

    /// From `resolve` to `reduce`.
    async fn attempt(&self, call: &mut Call, shares: budget::Shares) -> Ended {
        let tool = match resolve::resolve(self, call) {
            Ok(tool) => tool,
            Err(refusal) => {
                return Ended { tool: None, outcome: Err(refusal) };
            }
        };
        let outcome = self.through_the_gates(tool, call, shares).await;
        Ended { tool: Some(tool.clone()), outcome }
    }

    async fn through_the_gates(
        &self,
        tool: &Tool,
        call: &mut Call,
        shares: budget::Shares,
    ) -> Result<ToolOutput, Failure> {
        self.unless_halted()?;
        policy::by_name(self, tool, call)?;
        available::available(tool)?;
        let mut chain = middleware::Chain::of(self, tool);
        let ruled = loop {
            validate::validate(self, tool, call).await?;
            let ruled = policy::by_arguments(self, tool, call)?;
            secret_arguments::refuse(self, tool, call)?;
            match chain.consult(self, tool, call).await? {
                middleware::Consulted::Proceed => break ruled,
                middleware::Consulted::Rewritten => {}
                middleware::Consulted::Answered(output) => return Ok(output),
            }
        };
        let call = &*call;
        let args = validate::as_json(tool, call)?;
        let pending = || PendingCall {
            tool,
            call_id: &call.id,
            args,
            args_digest: call.args_digest,
            identity: self.events.identity(),
            run_id: self.events.run_id(),
            personality: &self.situation.personality.id,
        };
        if let policy::Ruled::Ask(rule) = ruled {
            approve::approve(self, call, pending(), rule).await?;
        }
        // While this one was looked at, a rule may have halted at another.
        self.unless_halted()?;
        let outcome = match self.recovery {
            None => self.make(tool, call, args, &pending, shares).await?,
            Some(recovery) => {
                Box::pin(repeat::repeat(self, recovery, tool, call, args, &pending, shares)).await
            }
        };
        outcome.map(|output| reduce::reduce(self, tool, args, output))
    }

    /// Makes a call: from `scope` to `run`, once. The error of the outer result is a refusal.
    async fn make<'c>(
        &self,
        tool: &Tool,
        call: &Call,
        args: &Value,
        pending: &impl Fn() -> PendingCall<'c>,
        shares: budget::Shares,
    ) -> Result<Result<ToolOutput, Failure>, Failure> {
        spool::before_attempt(self, call);
        let (context, progress) = self.context(tool, call, shares);
        let context = scope::scope(self, pending(), context)?;
        intent::before(self, pending()).await?;
        let outcome = run::run(self, tool, call, args, context, progress).await;
        let outcome = match outcome {
            Ok(output) => output::fitting(self, tool, output).await,
            failed => failed,
        };
        intent::after(self, pending(), outcome.as_ref().err().map(|failure| failure.code)).await;
        Ok(outcome)
    }

    /// Shows a call to the middleware alone. Only where all let it go on unchanged it may be done without
    /// the pipe; the error is the operator's.
    pub(crate) async fn consult(&self, tool: &Tool, id: &str, args: Value) -> Result<(), String> {
        let name = Arc::<str>::from(tool.name().as_str());
        let args_digest = args_digest(&name, &args);
        let (id, began) = (id.into(), Instant::now());
        let mut call = Call { id, name, args: Ok(args), args_digest, began, kept: None };
        match middleware::Chain::of(self, tool).consult(self, tool, &mut call).await {
            Ok(middleware::Consulted::Proceed) => Ok(()),
            Ok(_) => Err("a middleware does something else in its place".to_owned()),
            Err(refusal) => Err(refusal.cause.unwrap_or(refusal.message)),
        }
    }

    /// Refuses a call that has not begun once a rule has halted at another one of its turn.
    fn unless_halted(&self) -> Result<(), Failure> {
        match self.halting.get() {
            Some(_) => Err(self.not_begun()),
            None => Ok(()),
        }
    }

    fn not_begun(&self) -> Failure {
        let refusal = Failure::refused(ErrorCode::Denied, "not made: the run was ended");
        match self.halting.get() {
            Some(halt) => refusal.caused_by(halt.to_string()),
            None => refusal,
        }
    }

    fn context(
        &self,
        tool: &Tool,
        call: &Call,
        shares: budget::Shares,
    ) -> (ToolContext, progress::Reports) {
        let (sink, progress) = progress::reports(tool);
        let parts = ToolContextParts {
            run_id: Arc::clone(self.events.run_id()),
            call_id: Arc::clone(&call.id),
            identity: Arc::clone(self.events.identity()),
            iteration: self.iteration,
            active_skills: Arc::clone(&self.situation.active_skills),
            personality: Arc::clone(&self.situation.personality.id),
            network: Arc::clone(&self.situation.personality.network),
            working_dir: Arc::clone(self.working_dir),
            result_budget_chars: shares.promised(tool),
            cancellation: self.cancellation.child_token(),
            progress: Some(sink),
            secrets: DeclaredSecrets::of(tool, self.engine),
            redact: Some(Arc::clone(&self.engine.redact)),
            handles: spool::handles(self, tool, call),
        };
        (parts.into(), progress)
    }

    /// From `budget` to `record`.
    fn finish(&self, call: Call, ended: Ended, cap: usize, kept: spool::Kept) -> ToolResult {
        let shaped = ended.tool.as_ref().filter(|tool| tool.output_schema().is_some()).cloned();
        let cut = budget::fit(ended, cap, &self.engine.limits, kept);
        let mut clean = sanitise::sanitise(cut);
        if let Some(tool) = shaped {
            output::still_fitting(self, &tool, &mut clean);
        }
        let fenced = fence::fence(clean);
        record::end(self, call, fenced)
    }
}

/// A call whose result is final, or waits for what the others leave of the budget.
enum Settled {
    Done(ToolResult),
    Large(Large),
}

struct Large {
    call: Call,
    ended: Ended,
    /// How much the redactor knew when it looked at this: it looks again at the end if another call
    /// of the batch has taught it more.
    known: usize,
}

/// A name that a model made up can be anything: it is quoted, but not at any length.
pub(crate) fn shortened(name: &str) -> String {
    const LONGEST: usize = 64;
    let mut short: String = name.chars().take(LONGEST).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    short.escape_debug().to_string()
}
