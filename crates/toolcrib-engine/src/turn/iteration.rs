use std::sync::{Arc, OnceLock};

use toolcrib_core::{CancellationToken, Menu, Signal, SkillId, ToolCall, ToolResult};

use super::state::TurnState;
use crate::{
    compose::{Situation, Why, Withheld},
    halt::Halt,
    pipe::Batch,
    questions::Asking,
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
    menu: Arc<Menu>,
    withheld: Arc<Withheld>,
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
        menu: Arc<Menu>,
        withheld: Arc<Withheld>,
        situation: Situation,
        steps_at: Option<StepsAt>,
    ) -> Self {
        Self {
            turn: Arc::clone(turn),
            number,
            menu,
            withheld,
            situation,
            steps_at,
            cancellation: OnceLock::new(),
        }
    }

    /// One in which nothing is offered.
    pub(super) fn of_nothing(turn: &Arc<TurnState>, number: u32) -> Self {
        let situation = turn.situation(turn.active_skills.snapshot(), number);
        let withheld = Withheld::nothing(&turn.engine.visibility, situation.clone());
        Self::new(turn, number, Arc::default(), Arc::new(withheld), situation, None)
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
        &self.menu
    }

    /// What is known and not offered, and why.
    pub fn withheld(&self) -> &Arc<Withheld> {
        &self.withheld
    }

    /// Why a known tool is offered or withheld: every cause up to the first that withholds it, and the
    /// smallest change of facts that would turn the matter round. Where several have the name, of the
    /// one that is offered, else of the first. `None` for a name that no known tool has.
    ///
    /// For people: a model that asks for what is withheld must not learn that it is there.
    pub fn why(&self, tool: &str) -> Option<Why> {
        match self.menu.get(tool) {
            Some(tool) => Some(self.withheld.why_offered(tool)),
            None => self.withheld.whys_of(tool).next(),
        }
    }

    /// [`why`](Self::why) of every known tool: first those that are offered, in the order of the menu,
    /// then those that are not. Each has exactly one chain. It is worked out as it is asked for, and
    /// takes its time over many tools and rules.
    pub fn whys(&self) -> impl Iterator<Item = Why> + '_ {
        let offered = self.menu.tools().iter().map(|tool| self.withheld.why_offered(tool));
        offered.chain(self.withheld.whys())
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
        self.withheld.notices()
    }

    /// The skills that this iteration's menu was composed under.
    pub fn active_skills(&self) -> &[SkillId] {
        &self.situation.active_skills
    }

    /// Whether the menu was composed under a step of a skill: a call may then change the next one.
    pub fn is_at_a_step(&self) -> bool {
        self.steps_at.is_some()
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
            menu: &self.menu,
            withheld: &self.withheld,
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
            .field("offered", &self.menu.names().collect::<Vec<_>>())
            .field("withheld", &self.withheld)
            .finish_non_exhaustive()
    }
}
