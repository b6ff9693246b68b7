use std::{
    sync::{Arc, OnceLock},
    time::Instant,
};

use toolcrib_core::{
    AlreadyRegistered, CancellationToken, Catalog, Menu, Signal, SkillId, ToolCall, ToolRegistry,
    ToolResult,
};

use super::state::TurnState;
use crate::{
    compose::{Composed, Situation, Why, Withheld, compose},
    halt::Halt,
    parts::EngineParts,
    pipe::Batch,
    questions::Asking,
    sessions::is_in,
    skills::StepsAt,
    sources::Notice,
};

/// One iteration of a turn: what is offered, and calls against that and nothing else.
///
/// It stands for itself: the turn may begin the next iteration while this one's calls still run,
/// on another task too. Dropping the [`Turn`](super::Turn) cancels them.
pub struct Iteration {
    turn: Arc<TurnState>,
    number: u32,
    composed: Arc<Composed>,
    /// The turn's registry as it was listed, or what was [offered](Self::offer) in its place.
    listed: Arc<ToolRegistry>,
    situation: Situation,
    /// The step of a skill that the menu was composed under.
    steps_at: Option<StepsAt>,
    /// Made when it is first needed: an iteration without calls needs none.
    cancellation: OnceLock<CancellationToken>,
}

impl Iteration {
    pub(super) fn new(
        turn: &Arc<TurnState>,
        number: u32,
        composed: Arc<Composed>,
        listed: Arc<ToolRegistry>,
        situation: Situation,
        steps_at: Option<StepsAt>,
    ) -> Self {
        Self {
            turn: Arc::clone(turn),
            number,
            composed,
            listed,
            situation,
            steps_at,
            cancellation: OnceLock::new(),
        }
    }

    /// One in which nothing is offered.
    pub(super) fn of_nothing(turn: &Arc<TurnState>, number: u32) -> Self {
        let situation = turn.situation(turn.active_skills.snapshot(), number);
        let nothing = Composed::nothing(&turn.engine.visibility, situation.clone());
        Self::new(turn, number, Arc::new(nothing), Arc::default(), situation, None)
    }

    pub(super) fn turn(&self) -> &TurnState {
        &self.turn
    }

    /// How people are asked on its behalf.
    pub(super) fn asking(&self) -> Asking<'_> {
        Asking {
            questions: self.turn.questions.as_ref(),
            events: &self.turn.events,
            redactor: &self.turn.engine.redactor,
            iteration: self.number,
            cancellation: self.cancellation(),
        }
    }

    /// Which iteration of the turn, from 1.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What is offered.
    pub fn menu(&self) -> &Arc<Menu> {
        &self.composed.menu
    }

    /// What is known and not offered, and why.
    pub fn withheld(&self) -> &Arc<Withheld> {
        &self.composed.withheld
    }

    /// Why a known tool is offered or withheld: every cause up to the first that withholds it, and the
    /// smallest change of facts that would turn the matter round. Where several have the name, of the
    /// one that is offered, else of the first. `None` for a name that no known tool has.
    ///
    /// For people: a model that asks for what is withheld must not learn that it is there.
    pub fn why(&self, tool: &str) -> Option<Why> {
        match self.menu().get(tool) {
            Some(tool) => Some(self.withheld().why_offered(tool)),
            None => self.withheld().whys_of(tool).next(),
        }
    }

    /// [`why`](Self::why) of every known tool: first those that are offered, in the order of the menu,
    /// then those that are not. Each has exactly one chain. It is worked out as it is asked for, and
    /// takes its time over many tools and rules.
    pub fn whys(&self) -> impl Iterator<Item = Why> + '_ {
        let offered = self.menu().tools().iter().map(|tool| self.withheld().why_offered(tool));
        offered.chain(self.withheld().whys())
    }

    /// The call at which a rule ended the [turn](super::Turn::halted), once there was one: end the loop,
    /// and hand it on as the error that it is. Each call of the batch has its result all the same, so
    /// the history is valid.
    pub fn halted(&self) -> Option<&Halt> {
        self.turn.halting.get()
    }

    /// The sources that failed and did not end the iteration, in configured order: those that are
    /// left out, and those whose last good listing is offered; see
    /// [`OnFailure`](crate::OnFailure).
    pub fn notices(&self) -> &[Notice] {
        self.withheld().notices()
    }

    /// The skills that this iteration's menu was composed under.
    pub fn active_skills(&self) -> &[SkillId] {
        &self.situation.active_skills
    }

    /// Whether the menu was composed under a step of a skill: a call may then change the next one.
    pub fn is_at_a_step(&self) -> bool {
        self.steps_at.is_some()
    }

    /// Offers the tools of a registry in this iteration, in place of the turn's own
    /// [registry](super::Turn::registry). Merge that in to keep its tools:
    /// [`ToolRegistry::merge`]`([cx.registry(), &forged])`.
    ///
    /// The menu is composed anew, with what the other sources listed before. Each tool passes schema
    /// checks, availability, personality, skills and policy as in every menu: one that does not pass is
    /// [withheld](Self::withheld), with the reason. `tools.offered` reports the new menu. Calls go against
    /// it from now on, and the next iteration begins with the turn's registry again. Neighbor: what is
    /// registered in the turn's registry is offered from the next iteration on.
    ///
    /// The registry is read now. What is registered in it later is not offered.
    ///
    /// # Errors
    /// [`AlreadyRegistered`] when another source offers a tool of the same name, and neither declares
    /// which of the two to keep. The menu stays as it was.
    pub fn offer(&mut self, registry: &ToolRegistry) -> Result<&Arc<Menu>, AlreadyRegistered> {
        let began = Instant::now();
        let listed = Arc::new(registry.clone());
        let mut catalog = Catalog::new();
        listed.list_into(&mut catalog);
        let before = self.composed.catalog();
        catalog.offer_all(before.offered().iter().filter(|tool| !is_in(&self.listed, tool)));
        for held in before.held_back().iter().filter(|held| !is_in(&self.listed, &held.tool)) {
            catalog.hold_back(held.tool.clone(), Arc::clone(&held.gate), held.reason.clone());
        }
        let (turn, situation) = (&self.turn, &self.situation);
        turn.active_skills.narrow(&situation.active_skills, &situation.steps, &mut catalog);
        let EngineParts { visibility, validators, .. } = &*turn.engine;
        let notices = self.notices().to_vec();
        let composed = compose(visibility, validators, situation, catalog, notices)?;
        turn.report_offered(self.number, &composed, true, began.elapsed());
        self.composed = Arc::new(composed);
        self.listed = listed;
        Ok(self.menu())
    }

    /// What ends this iteration's calls and nothing else of the turn. It fires with the
    /// [turn's](super::Turn::cancellation).
    pub fn cancellation(&self) -> &CancellationToken {
        self.cancellation.get_or_init(|| self.turn.cancellation.child_token())
    }

    /// Takes the calls of one model message through the pipe: at the same time, but those of a
    /// [sequential](toolcrib_core::ToolBuilder::sequential) tool one by one. Never fails: each call
    /// has exactly one result, in call order.
    ///
    /// Skills that a call activates count from the next iteration that begins.
    pub async fn execute(&mut self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let results = self.batch().execute(calls).await;
        self.turn.active_skills.settle(self.number, self.steps_at.as_ref(), &results);
        self.turn.report_skills(self.number);
        results
    }

    /// What its calls share.
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
            cancellation: self.cancellation(),
            halting: &self.turn.halting,
            made: &self.turn.made,
            questions: self.turn.questions.as_ref(),
            recovery: self.turn.recovery.as_ref(),
        }
    }

    /// Refuses calls that come when none may be made: each gets its one result, `not_available`, as if
    /// nothing were offered.
    pub async fn refuse(&self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        Self::of_nothing(&self.turn, self.number).execute(calls).await
    }
}

impl std::fmt::Debug for Iteration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iteration")
            .field("number", &self.number())
            .field("offered", &self.menu().names().collect::<Vec<_>>())
            .field("withheld", self.withheld())
            .finish_non_exhaustive()
    }
}
