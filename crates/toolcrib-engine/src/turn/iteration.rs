use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use serde_json::Value;
use toolcrib_core::{
    AlreadyRegisteredError, CancellationToken, ClientAbilities, ClientPort, Fact, Menu, Signal,
    SkillId, Tool, ToolCall, ToolRegistry, ToolResult,
};

use super::state::TurnState;
use crate::{
    compose::{Composition, Explanation, Situation, Withheld, compose},
    parts::{EngineParts, sessions::is_listed_of},
    pipe::{Batch, RuledClient},
    policy::{halt::HaltedByRule, questions::QuestionContext},
    provider::Notice,
    skills::StepPosition,
};

/// One iteration of a turn: the offered tools, and calls of these tools only.
///
/// It is independent: the turn may begin the next iteration while this one's calls still run, also
/// on another task. Dropping the [`Turn`](super::Turn) cancels them.
pub struct Iteration {
    turn: Arc<TurnState>,
    number: u32,
    composed: Arc<Composition>,
    /// The composed menu, with the tools that searches have found.
    menu: Arc<Menu>,
    /// The turn's registry as it was listed, or the registry that was [offered](Self::offer)
    /// instead.
    listed: Arc<ToolRegistry>,
    situation: Situation,
    /// The step of a skill that the menu was composed for.
    steps_at: Option<StepPosition>,
    /// How long the listings of its sources apply.
    pub(super) sources_fresh_for: Duration,
    /// Created on first use: an iteration without calls needs none.
    cancellation: OnceLock<CancellationToken>,
}

impl Iteration {
    pub(super) fn new(
        turn: &Arc<TurnState>,
        number: u32,
        composed: Arc<Composition>,
        menu: Arc<Menu>,
        listed: Arc<ToolRegistry>,
        situation: Situation,
        steps_at: Option<StepPosition>,
    ) -> Self {
        Self {
            turn: Arc::clone(turn),
            number,
            composed,
            menu,
            listed,
            situation,
            steps_at,
            sources_fresh_for: Duration::ZERO,
            cancellation: OnceLock::new(),
        }
    }

    /// An iteration that offers nothing.
    pub(super) fn of_nothing(turn: &Arc<TurnState>, number: u32) -> Self {
        let situation = turn.situation(turn.active_skills.snapshot(), number);
        let nothing = Composition::nothing(&turn.engine.visibility, situation.clone());
        let menu = Arc::clone(&nothing.menu);
        Self::new(turn, number, Arc::new(nothing), menu, Arc::default(), situation, None)
    }

    pub(super) fn turn(&self) -> &TurnState {
        &self.turn
    }

    /// How its questions are asked.
    pub(super) fn asking(&self) -> QuestionContext<'_> {
        QuestionContext {
            questions: self.turn.questions.as_ref(),
            events: &self.turn.events,
            redactor: &self.turn.engine.redactor,
            iteration: self.number,
            cancellation: self.cancellation(),
        }
    }

    /// The number of the iteration in the turn, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The tools that the model is offered.
    pub fn menu(&self) -> &Arc<Menu> {
        &self.menu
    }

    /// The known tools that are not offered, with reasons.
    pub fn withheld(&self) -> &Arc<Withheld> {
        &self.composed.withheld
    }

    /// Why a known tool is offered or withheld: each decision up to the first that withholds it,
    /// and the smallest change of facts that would reverse the outcome. If several tools have the
    /// name: for the offered one, otherwise for the first. `None` for a name that no known tool
    /// has.
    ///
    /// For people: a model that requests a withheld tool must not learn that it exists.
    pub fn why(&self, tool: &str) -> Option<Explanation> {
        match self.menu().get(tool) {
            Some(tool) => Some(self.withheld().why_offered(tool)),
            None => self.withheld().why(tool),
        }
    }

    /// [`why`](Self::why) for every known tool: first the offered ones, in the order of the menu,
    /// then the withheld ones. Each has exactly one chain. Computed lazily; with many tools and
    /// rules it takes time.
    pub fn explanations(&self) -> impl Iterator<Item = Explanation> + '_ {
        let menu = self.menu();
        let offered = menu.stable().iter().chain(menu.deferred());
        let offered = offered.map(|tool| self.withheld().why_offered(tool));
        offered.chain(self.withheld().explanations())
    }

    /// The call at which a rule ended the [turn](super::Turn::halted), if any: end the loop, and
    /// return this as the error. Each call of the batch still has its result, so the history is
    /// valid.
    pub fn halted(&self) -> Option<&HaltedByRule> {
        self.turn.halting.get()
    }

    /// Whether the conversation has read content of unknown authors by now, with the results of this
    /// iteration's calls.
    pub fn is_tainted(&self) -> bool {
        self.turn.is_tainted()
    }

    /// The sources that failed and did not end the iteration, in configured order: omitted ones,
    /// and those whose last good listing is offered; see [`OnFailure`](crate::OnFailure).
    pub fn notices(&self) -> &[Notice] {
        self.withheld().notices()
    }

    /// How long the same turn options give this menu, as far as its sources state it: the least of their
    /// [times](toolcrib_core::ListingInfo::fresh_for). Zero if one of them states nothing, if none states
    /// a limit, or if something else may change the menu [at any time](Self::may_change).
    pub fn fresh_for(&self) -> Duration {
        match self.sources_fresh_for {
            _ if self.may_change() => Duration::ZERO,
            Duration::MAX => Duration::ZERO,
            stated => stated,
        }
    }

    /// Whether something beside the lists of the sources may change what is offered: a failed source
    /// that may return, a tool's check of its availability, skills, or a rule that depends on the
    /// iteration or on what the conversation has read.
    pub fn may_change(&self) -> bool {
        let visibility = &self.turn.engine.visibility;
        !self.notices().is_empty()
            || self.composed.checks_availability()
            || !visibility.skills.is_empty()
            || !self.situation.active_skills.is_empty()
            || visibility.policy.reads(Fact::Tainted)
            || visibility.policy.reads(Fact::Iteration)
    }

    /// The skills that this iteration's menu was composed for.
    pub fn active_skills(&self) -> &[SkillId] {
        &self.situation.active_skills
    }

    /// Whether the menu was composed for a step of a skill: a call may then change the next menu.
    pub fn has_skill_step(&self) -> bool {
        self.steps_at.is_some()
    }

    /// Offers the tools of a registry in this iteration, instead of the turn's
    /// [registry](super::Turn::registry). Merge that in to keep its tools:
    /// [`ToolRegistry::merge`]`([cx.registry(), &forged])`.
    ///
    /// The menu is composed again, with the previous listings of the other sources. Each tool
    /// passes schema checks, availability, personality, skills and policy as in every menu: a tool
    /// that does not pass is [withheld](Self::withheld), with the reason. `tools.offered` reports
    /// the new menu. Calls use it from now on, and the next iteration begins with the turn's
    /// registry again. Neighbor: tools in the turn's registry are offered from the next iteration
    /// on.
    ///
    /// The registry is read now. Tools that are registered in it later are not offered.
    ///
    /// # Errors
    /// [`AlreadyRegisteredError`] when another source offers a tool of the same name, and neither
    /// declares which of the two to keep. The menu is unchanged.
    pub fn offer(&mut self, registry: &ToolRegistry) -> Result<&Arc<Menu>, AlreadyRegisteredError> {
        let began = Instant::now();
        let listed = Arc::new(registry.clone());
        let mut catalog = self.turn.engine.redactor.catalog(listed.catalog());
        let before = self.composed.catalog();
        for tool in before.offered().iter().filter(|tool| !is_listed_of(&self.listed, tool)) {
            catalog.offer(tool.clone());
        }
        for held in before
            .withheld_by_provider()
            .iter()
            .filter(|held| !is_listed_of(&self.listed, &held.tool))
        {
            catalog.withhold(held.tool.clone(), Arc::clone(&held.gate), held.reason.clone());
        }
        let (turn, situation) = (&self.turn, &self.situation);
        let EngineParts { visibility, validators, .. } = &*turn.engine;
        let notices = self.notices().to_vec();
        let composed = compose(visibility, validators, situation, catalog, notices)?;
        self.menu = turn.with_revealed(&composed.menu);
        turn.report_offered(self.number, &composed, &self.menu, true, began.elapsed());
        self.composed = Arc::new(composed);
        self.listed = listed;
        self.sources_fresh_for = Duration::ZERO;
        Ok(self.menu())
    }

    /// Cancels only this iteration's calls. It fires with the [turn's](super::Turn::cancellation).
    pub fn cancellation(&self) -> &CancellationToken {
        self.cancellation.get_or_init(|| self.turn.cancellation.child_token())
    }

    /// Passes the calls of one model message through the pipe: concurrently, except those of a
    /// [sequential](toolcrib_core::ToolBuilder::sequential) tool, which run one by one. Never
    /// fails: each call has exactly one result, in call order.
    ///
    /// Skills that a call activates apply from the next iteration on.
    pub async fn execute(&mut self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        self.execute_for(calls, None).await
    }

    /// As [`execute`](Self::execute), for a client of these calls: the MCP servers that they reach
    /// may ask it, instead of the [turn's](super::TurnOptions::client).
    pub async fn execute_for(
        &mut self,
        calls: Vec<ToolCall>,
        client: Option<&Arc<dyn ClientPort>>,
    ) -> Vec<ToolResult> {
        let mut batch = self.batch();
        batch.client = client.or(batch.client);
        let results = batch.execute(calls).await;
        self.turn.active_skills.settle(self.number, self.steps_at.as_ref(), &results);
        self.turn.report_skills(self.number);
        self.turn.settle_revealed(self.number, &results);
        self.turn.settle_taint(&results);
        results
    }

    /// The abilities of the turn's client for an MCP server, as far as the policy permits it.
    pub fn client_abilities(&self, server: &str) -> ClientAbilities {
        let client = self.turn.client.as_ref();
        client.map(|client| self.ruled(client).abilities(server)).unwrap_or_default()
    }

    /// A client as far as the policy permits it, for requests of servers outside of calls.
    pub fn ruled(&self, client: &Arc<dyn ClientPort>) -> Arc<dyn ClientPort> {
        let (visibility, situation) = (&self.turn.engine.visibility, self.situation.clone());
        Arc::new(RuledClient::new(client, visibility, situation, Arc::default()))
    }

    /// Whether the personality reaches a tool that is on no menu.
    pub fn reaches(&self, tool: &Tool) -> bool {
        self.situation.personality.objection(tool).is_none()
    }

    /// Whether a tool that is on no menu would be offered, by personality, skills and policy: for
    /// what a server offers beside tools, such as a resource. With arguments, whether a call may be
    /// made; a rule that asks permits it.
    pub fn admits(&self, tool: &Tool, arguments: Option<&Value>) -> bool {
        let visibility = &self.turn.engine.visibility;
        let facts = self.situation.facts();
        let ruling = match arguments {
            Some(arguments) => visibility.judge_call(tool, facts, arguments),
            None => visibility.judge(tool, facts),
        };
        self.situation.personality.objection(tool).is_none()
            && visibility.skills.admit(&self.situation.active_skills, tool)
            && ruling.offers()
    }

    /// [`why`](Self::why) for a tool that is on no menu: whether it is [admitted](Self::admits), and the
    /// reasons.
    pub fn why_apart(&self, tool: &Tool) -> Explanation {
        match self.admits(tool, None) {
            true => self.withheld().why_offered(tool),
            false => self.withheld().why_ruled(tool),
        }
    }

    /// Passes one call of a tool that is on no menu through the pipe, if it is
    /// [admitted](Self::admits); otherwise it is refused like a call of an unknown tool.
    pub async fn execute_apart(
        &self,
        tool: &Tool,
        call: ToolCall,
        client: Option<&Arc<dyn ClientPort>>,
    ) -> Option<ToolResult> {
        let tools = if self.admits(tool, None) { vec![tool.clone()] } else { Vec::new() };
        let menu = Arc::new(Menu::new(tools).unwrap_or_default());
        let mut batch = self.batch();
        batch.menu = &menu;
        batch.client = client.or(batch.client);
        let results = batch.execute(vec![call]).await;
        self.turn.settle_taint(&results);
        results.into_iter().next()
    }

    /// The data that its calls share.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            engine: &self.turn.engine,
            events: &self.turn.events,
            menu: self.menu(),
            withheld: self.withheld(),
            situation: &self.situation,
            iteration: self.number,
            is_acked: matches!(self.turn.signals.signal(), Some(Signal::Ack)),
            working_dir: &self.turn.working_dir,
            info: &self.turn.info,
            attachments: &self.turn.attachments,
            began: OnceLock::new(),
            cancellation: self.cancellation(),
            halting: &self.turn.halting,
            call_counter: &self.turn.call_counter,
            client: self.turn.client.as_ref(),
            questions: self.turn.questions.as_ref(),
            idempotency_scope: &self.turn.idempotency_scope,
            approver: self.turn.approver.as_ref(),
            journal: self.turn.journal.as_ref(),
            dry_run: self.turn.dry_run,
            keeps_nothing: self.turn.keeps_nothing,
            shares_conversation: self.turn.shares_conversation,
            child_agents: self.turn.child_agents.as_ref(),
            recovery: Some(&self.turn.recovery).filter(|recovery| recovery.is_for_tools()),
        }
    }

    /// Refuses calls that the host does not let pass, each with a reason for the model: the code is
    /// `denied`.
    pub async fn deny(&self, calls: Vec<(ToolCall, String)>) -> Vec<ToolResult> {
        self.batch().deny(calls).await
    }

    /// Refuses the calls of a response that the model's output limit cut off
    /// ([`StopReason::MaxTokens`](toolcrib_core::StopReason::MaxTokens)): the arguments of each may be
    /// incomplete, even if they are JSON. The code is `input_invalid`.
    pub async fn refuse_cut_off(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        self.batch().refuse_cut_off(calls).await
    }

    /// Refuses calls when none may be made: each gets its result, `not_available`, as if no tool
    /// were offered.
    pub async fn refuse(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        Self::of_nothing(&self.turn, self.number).execute(calls).await
    }
}

toolcrib_core::__internal::debug_fields!(
    Iteration,
    iteration,
    number = iteration.number(),
    offered = iteration.menu().names().collect::<Vec<_>>(),
    withheld = iteration.withheld(),
    ..
);
