//! The one pipe that every call passes, through the library, the agent loop, the command line or
//! the gateway. Stages, each with a file, in this order:
//!
//! `(call_tool) → resolve → policy(name) → available → validate → policy(arguments) → secret arguments →
//! middleware → plan → approve → grant → intent → run → output → reduce → redact → artifact_store → budget
//! → sanitize → fence → record`
//!
//! A call of `call_tool` becomes a call of its target first. A stage either passes the call on or
//! refuses it. The text of a refusal is cleaned like a result, from `redact` on; a call that a
//! middleware rewrote returns to `validate`. In a turn that a rule has halted, calls are refused at
//! `policy(name)`, and again after `approve`. `grant` to `output` are one attempt, made while no other
//! call changes the same resource; `repeat` makes another one if a reliability rule says so. Calls of
//! a batch run at the same time, except those of `sequential` tools; results are in call order. The
//! other files are parts of stages and the data that flows between them.

mod absent;
mod approve;
mod arguments;
mod artifact;
mod available;
mod budget;
mod call;
mod call_counter;
pub(crate) mod called_name;
pub(crate) mod clarify;
mod client;
mod conversation;
mod convert;
mod cut;
mod fence;
mod grant;
mod indirect;
mod intent;
mod mend;
mod middleware;
mod output;
mod plan;
mod policy;
mod preview;
mod progress;
mod record;
mod redact;
mod reduce;
mod repeat;
mod resolve;
mod run;
mod sanitize;
mod secret_arguments;
pub(crate) mod secrets;
mod sizes;
mod stored_parts;
mod structured;
mod validate;

use std::{
    any::Any,
    collections::HashMap,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Instant,
};

use futures_util::future::join_all;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;
use toolcrib_core::{
    __internal::panic_text, Clarifier, ClientHandle, DelegateHandle, ErrorCode, KvArea, KvScope,
    PendingCall, SessionOwner, Tool, ToolCall, ToolContext, ToolContextParts, ToolOutput,
    ToolResult, args_digest,
};

pub use self::structured::is_data_note;
pub(crate) use self::{
    call::Batch,
    call_counter::CallCounter,
    client::{ClientWait, RuledClient},
    conversation::read_call,
};
use self::{
    call::{Alike, Call, Failure, OversizedResult, RawResult, ResultState},
    clarify::CallClarifier,
    indirect::RedirectedCall,
    secrets::DeclaredSecrets,
    sizes::Sizes,
};
use crate::{
    deferral::{SEARCH_TOOLS, Search},
    personality::child::{CallDelegate, ParentTurn},
};

/// The result of a call in an answer that reached the output limit, for the model.
const CUT_OFF: &str = "not made: your answer reached the output limit and was cut off, so none of its \
    calls was made. Use shorter arguments, for example several calls with a part each, one call per \
    answer.";

impl Batch<'_> {
    /// Passes the calls of one model message through the pipe.
    pub(crate) async fn execute(&self, mut calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let limits = &self.engine.limits;
        let too_many = calls.split_off(calls.len().min(limits.batch_calls));
        let shares = budget::Shares::of(limits.batch_result_chars, calls.len());
        let calls = self.directed(calls).await;
        let settled = self.settle_all(calls, shares).await;
        let mut results = Vec::with_capacity(settled.len() + too_many.len());
        for (settled, cap) in budget::spend_the_rest(shares, settled) {
            results.push(match settled {
                ResultState::Done(result) => result,
                ResultState::Large(OversizedResult { mut call, mut ended, known }) => {
                    if self.engine.redactor.extent() > known {
                        redact::redact(self, &mut ended).await;
                        call.sizes.outcome("redact", &ended);
                    }
                    let kept = artifact::artifact_store(self, &call, &mut ended, cap).await;
                    self.finish(call, ended, cap, kept).await
                }
            });
        }
        let cause = format!("one batch makes {} calls", limits.batch_calls);
        for call in self.directed(too_many).await {
            let message = "not made: too many calls at once";
            results.push(self.refuse(call, ErrorCode::Denied, message, &cause).await);
        }
        results
    }

    /// The calls with their targets.
    async fn directed(&self, calls: Vec<ToolCall>) -> Vec<RedirectedCall> {
        let mut directed = Vec::with_capacity(calls.len());
        for call in calls {
            directed.push(indirect::direct(self, call).await);
        }
        directed
    }

    /// Runs each call up to the budget: at the same time, but a sequential tool runs alone, after
    /// the calls before it and before the calls after it.
    async fn settle_all(
        &self,
        calls: Vec<RedirectedCall>,
        shares: budget::Shares,
    ) -> Vec<ResultState> {
        let is_sequential = |call: &RedirectedCall| {
            self.menu.get(&call.call.name).is_some_and(|tool| tool.sequential())
        };
        let mut settled = Vec::with_capacity(calls.len());
        let mut calls = calls.into_iter().peekable();
        while let Some(first) = calls.next() {
            let alone = is_sequential(&first) || calls.peek().is_none_or(is_sequential);
            if alone {
                settled.push(self.settle(first, shares, None).await);
                continue;
            }
            let mut together = vec![first];
            while let Some(call) = calls.next_if(|call| !is_sequential(call)) {
                together.push(call);
            }
            let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
            let positions = together.iter().map(|call| {
                let count = counts.entry(Arc::clone(&call.call.name)).or_default();
                *count += 1;
                *count - 1
            });
            let positions: Vec<_> = positions.collect();
            let together = together.into_iter().zip(positions).map(|(call, position)| {
                let count = counts.get(&call.call.name).copied().unwrap_or(1);
                self.settle(call, shares, Some(Alike { position, count }))
            });
            settled.extend(join_all(together).await);
        }
        settled
    }

    /// Refuses calls, each with a message.
    pub(crate) async fn deny(&self, calls: Vec<(ToolCall, String)>) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(calls.len());
        for (call, message) in calls {
            let call = indirect::direct(self, call).await;
            results
                .push(self.refuse(call, ErrorCode::Denied, &message, "the host refuses it").await);
        }
        results
    }

    /// Refuses the calls of an answer that reached the output limit.
    pub(crate) async fn refuse_cut_off(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let mut results = Vec::with_capacity(calls.len());
        for call in self.directed(calls).await {
            let cause = "the model's answer reached its output limit";
            results.push(self.refuse(call, ErrorCode::InputInvalid, CUT_OFF, cause).await);
        }
        results
    }

    async fn refuse(
        &self,
        call: RedirectedCall,
        code: ErrorCode,
        message: &str,
        cause: &str,
    ) -> ToolResult {
        let call = record::begin(self, call).await;
        let refusal = Failure::refused(code, message).caused_by(cause);
        let ended = RawResult { tool: None, outcome: Err(refusal) };
        self.finish(call, ended, usize::MAX, stored_parts::StoredParts::default()).await
    }

    /// Runs one call up to the budget: to the end if its result is within its share. `alike` is its
    /// place among the calls of its tool that run at the same time; `None` if it runs alone.
    async fn settle(
        &self,
        call: RedirectedCall,
        shares: budget::Shares,
        alike: Option<Alike>,
    ) -> ResultState {
        let mut call = record::begin(self, call).await;
        call.has_siblings = alike.is_some();
        call.alike = alike.unwrap_or_default();
        let mut ended = self.attempt(&mut call, shares).await;
        call.sizes.outcome("reduce", &ended);
        // Read first: secrets that another call adds from here on may come too late.
        let known = self.engine.redactor.extent();
        redact::redact(self, &mut ended).await;
        call.sizes.outcome("redact", &ended);
        match budget::within(shares, &ended) {
            Some(cap) => {
                let kept = artifact::artifact_store(self, &call, &mut ended, cap).await;
                ResultState::Done(self.finish(call, ended, cap, kept).await)
            }
            None => {
                // Now: the text waits for the other calls of the batch, which may take long.
                let code = ended.outcome.as_ref().err().map(|failure| failure.code);
                intent::after(self, ended.tool.as_ref(), &call, code, None).await;
                ResultState::Large(OversizedResult { call, ended, known })
            }
        }
    }

    /// From `resolve` to `reduce`.
    async fn attempt(&self, call: &mut Call, shares: budget::Shares) -> RawResult {
        let tool = match resolve::resolve(self, call) {
            Ok(tool) => tool,
            Err(refusal) => {
                return RawResult { tool: None, outcome: Err(refusal) };
            }
        };
        let outcome = self.through_the_gates(tool, call, shares).await;
        // The text of a plan is not the tool's: it has neither its schema nor its authors.
        let by_tool = call.plan.is_none();
        RawResult { tool: by_tool.then(|| tool.clone()), outcome }
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
            secret_arguments::refuse(self, tool, call).await?;
            match chain.consult(self, tool, call).await? {
                middleware::ChainVerdict::Proceed => break ruled,
                middleware::ChainVerdict::Rewritten => {}
                middleware::ChainVerdict::Answered(output) => return Ok(output),
            }
        };
        if self.dry_run
            && let Some(planned) = plan::plan(self, tool, call, &ruled)
        {
            self.unless_halted()?;
            return Ok(planned);
        }
        let mut sizes = mem::take(&mut call.sizes);
        let made = self.admitted(tool, call, ruled, shares, &mut sizes).await;
        call.sizes = sizes;
        made
    }

    /// Makes a call that passed all checks of its arguments, from `approve` to `reduce`.
    async fn admitted(
        &self,
        tool: &Tool,
        call: &Call,
        ruled: policy::PolicyDecision<'_>,
        shares: budget::Shares,
        sizes: &mut Sizes,
    ) -> Result<ToolOutput, Failure> {
        let args = validate::as_json(tool, call)?;
        let pending = || self.pending(tool, call, args);
        if let policy::PolicyDecision::Ask(rule) = ruled {
            let asked = Instant::now();
            let preview = preview::preview(self, tool, call, args, shares).await;
            let approved = approve::approve(self, call, pending(), rule, preview).await;
            call.has_waited(asked.elapsed());
            approved?;
        }
        // Meanwhile a rule may have halted at another call.
        self.unless_halted()?;
        let outcome = match self.recovery {
            None => self.make(tool, call, args, &pending, shares).await?,
            Some(recovery) => {
                Box::pin(repeat::repeat(self, recovery, tool, call, args, &pending, shares)).await
            }
        };
        outcome.map(|output| {
            sizes.output("run", &output);
            reduce::reduce(self, tool, args, output)
        })
    }

    /// Makes a call once, from `grant` to `run`. The error of the outer result is a refusal.
    async fn make<'c>(
        &self,
        tool: &Tool,
        call: &Call,
        args: &Value,
        pending: &impl Fn() -> PendingCall<'c>,
        shares: budget::Shares,
    ) -> Result<Result<ToolOutput, Failure>, Failure> {
        // Kept until the body has ended.
        let _turn = self.turn_at_resource(tool, args).await?;
        artifact::before_attempt(self, call);
        let wait = Arc::<ClientWait>::default();
        let (context, progress) = self.context(tool, call, shares, &wait);
        let context = grant::grant(self, pending(), context)?;
        intent::before(self, call, &pending).await?;
        let ran = run::run(self, tool, call, args, context, progress, &wait).await;
        call.has_waited(wait.so_far());
        Ok(match ran {
            Ok(output) => output::fitting(self, tool, output).await,
            failed => failed,
        })
    }

    /// Waits for other calls that change the same resource.
    async fn turn_at_resource(
        &self,
        tool: &Tool,
        args: &Value,
    ) -> Result<Option<OwnedMutexGuard<()>>, Failure> {
        let key = catch_unwind(AssertUnwindSafe(|| tool.resource(args))).map_err(|panic| {
            let message = format!("`{}` failed because of an internal error", tool.name());
            let cause = format!("the key of its resource panicked: {}", panic_text(&*panic));
            Failure::refused(ErrorCode::ExecutionFailed, message).caused_by(cause)
        })?;
        let Some(key) = key else { return Ok(None) };
        let resource = self.engine.resources.of(key);
        if let Ok(turn) = Arc::clone(&resource).try_lock_owned() {
            return Ok(Some(turn));
        }
        intent::before_wait(self).await?;
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => {
                Err(Failure::refused(ErrorCode::Cancelled, "the run was cancelled"))
            }
            turn = resource.lock_owned() => Ok(Some(turn)),
        }
    }

    /// A call as its ports see it.
    fn pending<'c>(&'c self, tool: &'c Tool, call: &'c Call, args: &'c Value) -> PendingCall<'c> {
        PendingCall {
            tool,
            call_id: &call.id,
            args,
            args_digest: call.args_digest,
            identity: self.events.identity(),
            turn_id: self.events.turn_id(),
            personality: &self.situation.personality.id,
        }
    }

    /// Shows a call only to the middleware. If all admit it unchanged, it may be made without the
    /// pipe; the error is for the operator.
    pub(crate) async fn consult(&self, tool: &Tool, id: &str, args: Value) -> Result<(), String> {
        let name = Arc::<str>::from(tool.name().as_str());
        let args_digest = args_digest(&name, &args);
        let (id, began) = (id.into(), Instant::now());
        let args = Ok(args);
        let mut call = Call {
            id,
            name,
            called: None,
            args,
            args_digest,
            began,
            has_intent: AtomicBool::new(false),
            kept: None,
            sizes: Sizes::default(),
            plan: None,
            rewritten: false,
            has_siblings: false,
            alike: Alike::default(),
            waited_us: AtomicU64::new(0),
        };
        match middleware::Chain::of(self, tool).consult(self, tool, &mut call).await {
            Ok(middleware::ChainVerdict::Proceed) => Ok(()),
            Ok(_) => Err("a middleware replaces it".to_owned()),
            Err(refusal) => Err(refusal.cause.unwrap_or(refusal.message)),
        }
    }

    /// Refuses a call that has not begun once a rule has halted at another call of its turn.
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
        wait: &Arc<ClientWait>,
    ) -> (ToolContext, progress::Reports) {
        let (sink, progress) = progress::reports(tool);
        let session = self.engine.session_state.of_call(tool, self.events.identity());
        let parts = ToolContextParts {
            turn_id: Arc::clone(self.events.turn_id()),
            call_id: Arc::clone(&call.id),
            idempotency_scope: Arc::clone(self.idempotency_scope),
            identity: Arc::clone(self.events.identity()),
            iteration: self.iteration,
            active_skills: Arc::clone(&self.situation.active_skills),
            personality: Arc::clone(&self.situation.personality.id),
            team: self.situation.personality.team.clone(),
            info: Arc::clone(self.info),
            network: Arc::clone(&self.situation.personality.network),
            files: self.situation.personality.files.clone(),
            reads: session.reads,
            session_end: session.end,
            running_work: session.work,
            working_dir: Arc::clone(self.working_dir),
            result_budget_chars: shares.promised(tool),
            cancellation: self.cancellation.child_token(),
            progress: Some(sink),
            secrets: DeclaredSecrets::of(tool, self.engine),
            redact: Some(Arc::clone(&self.engine.redact)),
            tainted: self.situation.tainted,
            dry_run: self.dry_run,
            keeps_nothing: self.keeps_nothing,
            kv: self.engine.kv.clone().filter(|_| tool.capabilities().all_kv().next().is_some()),
            kv_areas: self.kv_areas(tool),
            attachments: tool.capabilities().attachments.then(|| Arc::clone(self.attachments)),
            clarifier: self.clarifier(tool, call, wait),
            traceparent: self.events.traceparent(&call.id),
            handles: self.handles(tool, call, wait),
        };
        (parts.into(), progress)
    }

    /// The keys of the scopes that a tool declares.
    fn kv_areas(&self, tool: &Tool) -> Vec<(KvScope, KvArea)> {
        let identity = self.events.identity();
        let owner = || SessionOwner::from(&**identity);
        let area = |scope| match scope {
            KvScope::Tool => {
                let name = tool.name();
                let tool = match tool.plugin() {
                    Some(plugin) => format!("{plugin}/{name}"),
                    None => name.to_string(),
                };
                Some(KvArea::Tool { tenant: identity.tenant.clone(), tool: tool.into() })
            }
            // They would end with the call, and the next one of the caller would find none.
            KvScope::Session if self.keeps_nothing => None,
            KvScope::Session => {
                let (owner, conversation) = (owner(), Arc::clone(&identity.conversation));
                Some(match self.shares_conversation {
                    true => KvArea::Conversation { owner, conversation },
                    false => KvArea::Session { owner, conversation },
                })
            }
            KvScope::Principal => Some(KvArea::Principal { owner: owner() }),
            _ => None,
        };
        let scopes = tool.capabilities().all_kv();
        scopes.filter_map(|scope| Some((scope, area(scope)?))).collect()
    }

    /// Asks the person of the turn for a tool that declares it.
    fn clarifier(
        &self,
        tool: &Tool,
        call: &Call,
        wait: &Arc<ClientWait>,
    ) -> Option<Arc<dyn Clarifier>> {
        tool.capabilities().person.then(|| {
            Arc::new(CallClarifier {
                approver: self.approver.or(self.engine.approver.as_ref()).cloned(),
                clarifier: self.engine.clarifier.clone(),
                questions: self.questions.cloned(),
                events: Arc::clone(self.events),
                redactor: self.engine.redactor.clone(),
                iteration: self.iteration,
                cancellation: self.cancellation.clone(),
                wait: Arc::clone(wait),
                call_id: Arc::clone(&call.id),
            }) as _
        })
    }

    /// The handles that the engine gives to a body, beside the granter's.
    fn handles(
        &self,
        tool: &Tool,
        call: &Call,
        wait: &Arc<ClientWait>,
    ) -> Vec<Arc<dyn Any + Send + Sync>> {
        if tool.is_framework() && *tool.name() == *SEARCH_TOOLS {
            return vec![Arc::new(Search {
                menu: Arc::clone(self.menu),
                indexes: Arc::clone(&self.engine.indexes),
                encoded: self.engine.visibility.deferral.encoded().cloned(),
                events: Arc::clone(self.events),
                iteration: self.iteration,
            })];
        }
        let mut handles = artifact::handles(self, tool, call);
        if tool.capabilities().agents
            && let Some(agents) = self.child_agents
        {
            let parent = ParentTurn {
                turn_id: Arc::clone(self.events.turn_id()),
                call_id: Arc::clone(&call.id),
                personality: Arc::clone(&self.situation.personality),
                menu: Arc::clone(self.menu),
                may_delegate: true,
            };
            let delegate = CallDelegate { agents: Arc::clone(agents), parent };
            handles.push(Arc::new(DelegateHandle(Arc::new(delegate))));
        }
        if tool.mcp_server().is_some()
            && let Some(client) = self.client
        {
            let visibility = &self.engine.visibility;
            let situation = self.situation.clone();
            let ruled = RuledClient::new(client, visibility, situation, Arc::clone(wait));
            handles.push(Arc::new(ClientHandle(Arc::new(ruled))));
        }
        handles
    }

    /// From `budget` to `record`.
    async fn finish(
        &self,
        mut call: Call,
        ended: RawResult,
        cap: usize,
        kept: stored_parts::StoredParts,
    ) -> ToolResult {
        call.sizes.outcome("artifact_store", &ended);
        let tool = ended.tool.clone();
        let cut = budget::fit(ended, cap, &self.engine.limits, kept);
        call.sizes.cut("budget", &cut);
        let mut clean = sanitize::sanitize(cut);
        if let Some(tool) = tool.as_ref().filter(|tool| tool.output_schema().is_some()) {
            output::still_fitting(self, tool, &mut clean);
        }
        call.sizes.cut("sanitize", &clean.0);
        let fenced = fence::fence(clean);
        call.sizes.text("fence", &fenced.text);
        record::end(self, call, tool.as_ref(), fenced).await
    }
}
