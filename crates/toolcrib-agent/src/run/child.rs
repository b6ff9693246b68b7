//! Child agents: runs of the same agent that work on a task of a call, within the limits of the run
//! that makes it.

use std::sync::Arc;

use toolcrib_core::{
    AgentTask, BoxFuture, ErrorCode, EventKind, Events, Progress, ToolContext, ToolError,
    ToolOutput, UsageStore,
};
use toolcrib_engine::{ChildAgents, ParentTurn, TurnOptions};

use super::{Run, parts::AgentParts, spending::Spending};
use crate::{
    limits::TurnLimits,
    options::{Child, RunOptions},
    outcome::{EndReason, RunOutcome},
    tally::Tally,
};

/// Appended to the system text of a child.
pub(super) const CHILD_NOTICE: &str = "Another agent gave you the task in the first message. No user \
    reads your texts; your last message is the result that the agent receives. Put everything that it \
    needs into it, and nothing else.";

/// Runs the children of one run.
pub(super) struct Children {
    agent: Arc<AgentParts>,
    /// The options of each child's turn, without those that depend on the call.
    turn: TurnOptions,
    usage_store: Option<Arc<dyn UsageStore>>,
    session: Option<Arc<str>>,
    tally: Arc<Tally>,
    /// The levels that may follow; `None` if only the tools limit them.
    levels: Option<u32>,
}

impl Children {
    /// The children of a run with these options, before a session completes them. They act for the
    /// same principal with the same roles, and ask the same people.
    pub(super) fn of(
        agent: &Arc<AgentParts>,
        turn: &TurnOptions,
        spending: &Spending,
        child: Option<&Child>,
    ) -> Self {
        Self {
            agent: Arc::clone(agent),
            turn: turn.for_child(),
            usage_store: spending.store.clone(),
            session: spending.session.clone(),
            tally: Arc::clone(spending.tally()),
            levels: child.map(|child| child.levels),
        }
    }

    fn options(
        &self,
        task: &AgentTask,
        parent: ParentTurn,
        cx: &ToolContext,
        levels: u32,
    ) -> RunOptions {
        let mut turn = self.turn.clone();
        let personality = task.personality.as_ref().unwrap_or(&parent.personality().id);
        turn.personality = Some(Arc::clone(personality));
        turn.tainted = cx.is_tainted();
        turn.cancellation = Some(cx.cancellation().clone());
        turn.events = shown_in(cx);
        turn.parent = Some(match levels {
            0 => parent.without_delegation(),
            _ => parent,
        });
        let limits = TurnLimits {
            max_calls: task.max_calls,
            max_tokens: task.max_tokens,
            max_cost_usd: task.max_cost_usd,
            max_calls_per_tool: None,
            ..self.agent.settings.turn_limits.clone()
        };
        RunOptions {
            turn,
            turn_timeout: Some(task.timeout),
            usage_store: self.usage_store.clone(),
            child: Some(Child {
                limits,
                max_iterations: task.max_iterations,
                levels,
                tally: Arc::clone(&self.tally),
                session: self.session.clone(),
            }),
            ..RunOptions::default()
        }
    }
}

impl ChildAgents for Children {
    fn run(
        &self,
        task: AgentTask,
        parent: ParentTurn,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let of_tool = task.max_depth.saturating_sub(1);
        let levels = match self.levels {
            // A tool that a parent could call before this run could not.
            Some(0) => return Box::pin(async { Err(too_deep()) }),
            Some(levels) => of_tool.min(levels - 1),
            None => of_tool,
        };
        let options = self.options(&task, parent, &cx, levels);
        let run = Run::new(Arc::clone(&self.agent), Some(task.prompt), options);
        Box::pin(async move { output(&run.await, cx.is_tainted()) })
    }
}

fn too_deep() -> ToolError {
    ToolError::new(ErrorCode::NotAvailable, "an agent of this depth cannot give tasks; do the work")
}

/// Events that report the child's calls as progress of the call that gave the task.
fn shown_in(cx: &ToolContext) -> Events {
    let events = Events::new();
    let cx = cx.clone();
    // The name is that of an event.
    let _ = events.on("tool.start", move |event| {
        if let EventKind::ToolStart { tool, .. } = &event.kind {
            let name: String = tool.chars().take(64).collect();
            cx.progress(Progress::user(format!("the agent calls {name}")));
        }
    });
    events
}

/// The result of the call that gave the task.
fn output(outcome: &RunOutcome, was_tainted: bool) -> Result<ToolOutput, ToolError> {
    let cause = || {
        let stopped = || outcome.end_reason.to_string();
        outcome.error.as_ref().map_or_else(stopped, ToString::to_string)
    };
    let Some(answer) = &outcome.answer else {
        let (code, message) = match outcome.end_reason {
            EndReason::Cancelled => (ErrorCode::Cancelled, "the agent was stopped"),
            EndReason::Timeout => (
                ErrorCode::Timeout,
                "the agent did not end in time, and was stopped; give it a smaller task",
            ),
            _ => (ErrorCode::ExecutionFailed, "the agent failed before it had an answer"),
        };
        return Err(ToolError::new(code, message).caused_by(cause()));
    };
    let text = match outcome.end_reason {
        EndReason::MaxIterations => {
            format!("(The agent was stopped at its limit of iterations. It says:)\n{answer}")
        }
        EndReason::CutOff => {
            format!("(The agent's answer is cut off at its output limit. It says:)\n{answer}")
        }
        EndReason::LimitReached => {
            format!("(The agent was stopped at a limit. It says:)\n{answer}")
        }
        _ => answer.to_string(),
    };
    let output = ToolOutput::text(text);
    let has_read = outcome.tool_calls.iter().any(|result| result.untrusted);
    Ok(if was_tainted || has_read { output.untrusted() } else { output })
}
