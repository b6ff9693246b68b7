use std::sync::{Arc, OnceLock};

use toolcrib_core::{CancellationToken, Menu, SkillId, ToolCall, ToolResult};

use super::state::TurnState;
use crate::{
    compose::{Situation, Withheld},
    pipe::Batch,
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
    ) -> Self {
        Self {
            turn: Arc::clone(turn),
            number,
            menu,
            withheld,
            situation,
            cancellation: OnceLock::new(),
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
        let batch = Batch {
            engine: &self.turn.engine,
            events: &self.turn.events,
            menu: &self.menu,
            withheld: &self.withheld,
            situation: &self.situation,
            iteration: self.number,
            working_dir: &self.turn.working_dir,
            cancellation: self.cancellation(),
        };
        let results = batch.execute(calls).await;
        self.turn.active_skills.settle(self.number, &results);
        self.turn.report_activations(self.number);
        results
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
