//! Child agents: the way from a call to the agent that runs them, and the bounds of their turns.

use std::{fmt, sync::Arc};

use toolcrib_core::{
    AgentTask, BoxFuture, Delegate, Menu, NetworkRules, ToolContext, ToolError, ToolOutput,
};

use super::Personality;

/// The turn that gave a task to a child agent: the maximum of the child's turn, as
/// [`TurnOptions::parent`](crate::TurnOptions::parent).
///
/// The child is offered no tool that this turn was not offered. Each rule decides for its own
/// personality and for this turn's; the stricter decision is used.
#[derive(Clone)]
pub struct ParentTurn {
    pub(crate) turn_id: Arc<str>,
    pub(crate) call_id: Arc<str>,
    pub(crate) personality: Arc<Personality>,
    pub(crate) menu: Arc<Menu>,
    pub(crate) may_delegate: bool,
}

impl ParentTurn {
    /// The id of the turn.
    pub fn turn_id(&self) -> &Arc<str> {
        &self.turn_id
    }

    /// The personality of the turn.
    pub fn personality(&self) -> &Arc<Personality> {
        &self.personality
    }

    /// The child cannot give tasks to other agents.
    #[must_use]
    pub fn without_delegation(mut self) -> Self {
        self.may_delegate = false;
        self
    }

    /// A personality within the limits of this turn.
    pub(crate) fn narrow(self, personality: &Personality) -> Personality {
        let own = &self.personality;
        let network = NetworkRules::clone(&own.network).and(&personality.network);
        let files = match (&own.files, &personality.files) {
            (Some(own), Some(files)) => {
                Some(files.iter().filter(|name| own.contains(name)).cloned().collect())
            }
            (own, files) => own.clone().or_else(|| files.clone()),
        };
        let network = Arc::new(network);
        let team = personality.team.clone().filter(|team| own.team.as_ref() == Some(team));
        Personality { network, files, team, parent: Some(Arc::new(self)), ..personality.clone() }
    }
}

toolcrib_core::__internal::debug_fields!(ParentTurn { turn_id, .. });

/// Runs the child agents of a turn.
pub trait ChildAgents: Send + Sync + 'static {
    /// Runs a child to its end, with [`TurnOptions::parent`](crate::TurnOptions::parent).
    fn run(
        &self,
        task: AgentTask,
        parent: ParentTurn,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

impl fmt::Debug for dyn ChildAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChildAgents")
    }
}

/// The delegate of one call.
pub(crate) struct CallDelegate {
    pub(crate) agents: Arc<dyn ChildAgents>,
    pub(crate) parent: ParentTurn,
}

impl Delegate for CallDelegate {
    fn delegate(
        &self,
        task: AgentTask,
        cx: &ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.agents.run(task, self.parent.clone(), cx.clone())
    }
}
