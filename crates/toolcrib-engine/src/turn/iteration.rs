use std::sync::Arc;

use toolcrib_core::{Menu, SkillId, ToolCall, ToolResult};

use super::state::TurnState;
use crate::{
    compose::{Situation, Withheld},
    pipe::Batch,
};

/// One iteration of a turn: what is offered, and calls against that and nothing else.
pub struct Iteration<'turn> {
    turn: &'turn TurnState,
    menu: Arc<Menu>,
    withheld: Arc<Withheld>,
    situation: Situation,
}

impl<'turn> Iteration<'turn> {
    pub(super) fn new(
        turn: &'turn TurnState,
        menu: Arc<Menu>,
        withheld: Arc<Withheld>,
        situation: Situation,
    ) -> Self {
        Self { turn, menu, withheld, situation }
    }

    /// Which iteration of the turn, from 1.
    pub fn number(&self) -> u32 {
        self.turn.iteration
    }

    /// What is offered.
    pub fn menu(&self) -> &Arc<Menu> {
        &self.menu
    }

    /// What is known and not offered, and why.
    pub fn withheld(&self) -> &Arc<Withheld> {
        &self.withheld
    }

    /// The skills that this iteration's menu was composed under.
    pub fn active_skills(&self) -> &[SkillId] {
        &self.situation.active_skills
    }

    /// Takes the calls of one model message through the pipe: at the same time, but those of a
    /// [sequential](toolcrib_core::ToolBuilder::sequential) tool one by one. Never fails: each call
    /// has exactly one result, in call order.
    ///
    /// Skills that a call activates count from the next iteration.
    pub async fn execute(&mut self, calls: Vec<ToolCall>) -> Vec<ToolResult> {
        let batch = Batch {
            engine: &self.turn.engine,
            events: &self.turn.events,
            menu: &self.menu,
            withheld: &self.withheld,
            situation: &self.situation,
            iteration: self.turn.iteration,
            working_dir: &self.turn.working_dir,
            cancellation: &self.turn.cancellation,
        };
        let results = batch.execute(calls).await;
        let succeeded = results.iter().filter(|result| result.is_ok());
        self.turn.active_skills.settle(succeeded.map(|result| &result.call_id));
        self.turn.report_activations();
        results
    }
}

impl std::fmt::Debug for Iteration<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iteration")
            .field("number", &self.number())
            .field("offered", &self.menu.names().collect::<Vec<_>>())
            .field("withheld", &self.withheld)
            .finish_non_exhaustive()
    }
}
