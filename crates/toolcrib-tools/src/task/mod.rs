//! A tool with which a model gives a task to another agent.
//!
//! The agent loop runs the child, with the [delegate](toolcrib_core::Delegate) of the call. It acts for
//! the same principal, under the same policy, and reaches only tools that the turn is offered.

mod table;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_core::{
    AgentTask, Annotations, Capabilities, DelegateHandle, ErrorCode, Tool, ToolContext, ToolError,
    ToolOutput,
};

pub(crate) use self::table::KIND;
use crate::{
    Declaration, ToolErrors,
    arguments::text,
    declaration::{closed, prefixed},
    findings::Findings,
};

/// The usual name of the tool.
pub const TASK: &str = "task";

/// The label of the toolset, unless a project gives it another one.
pub const TOOLSET: &str = "agents";

const PROMPT: &str = "prompt";
const AGENT: &str = "agent";

/// The most characters of a task.
const MOST_CHARS: usize = 50_000;

/// How long a child may take, unless the declaration says otherwise.
const TIMEOUT: Duration = Duration::from_mins(10);

/// How much longer the call may take, so that the child ends first, and its usage is counted.
const GRACE: Duration = Duration::from_secs(10);

/// The agents that may get tasks, and their limits.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskSpec {
    /// The personalities of which the model names one. If empty, the child has that of the turn.
    pub agents: Vec<Arc<str>>,
    /// See [`AgentTask::max_iterations`].
    pub max_iterations: Option<u32>,
    /// See [`AgentTask::max_calls`].
    pub max_calls: Option<u32>,
    /// See [`AgentTask::max_tokens`].
    pub max_tokens: Option<u64>,
    /// See [`AgentTask::max_cost_usd`].
    pub max_cost_usd: Option<f64>,
    /// See [`AgentTask::max_depth`].
    pub max_depth: u32,
}

impl Default for TaskSpec {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            max_iterations: None,
            max_calls: None,
            max_tokens: None,
            max_cost_usd: None,
            max_depth: 1,
        }
    }
}

impl TaskSpec {
    /// The declaration of the tool: its name, description and parameters, and all else as in `base`,
    /// whose timeout is that of a child.
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        let does = "Gives a task to another agent, which works on it on its own, and returns its \
            result. It does not see this conversation. Use it for a part of the work that needs many \
            steps or much reading, but only a short result.";
        let prompt = json!({
            "type": "string", "minLength": 1, "maxLength": MOST_CHARS,
            "description": "The task, with everything that the agent needs to know, and what its \
                result should contain.",
        });
        let agent = json!({
            "type": "string", "enum": self.agents.iter().map(|agent| &**agent).collect::<Vec<_>>(),
            "description": "The agent that works on it.",
        });
        let parameters = match self.agents.as_slice() {
            [] => (vec![PROMPT], vec![(PROMPT, prompt)]),
            _ => (vec![PROMPT, AGENT], vec![(PROMPT, prompt), (AGENT, agent)]),
        };
        Declaration {
            name: prefixed(prefix, TASK),
            description: base.described(does),
            annotations: Annotations::default(),
            input_schema: closed(parameters),
            untrusted: false,
            ..base.in_toolset(TOOLSET)
        }
    }

    /// Makes the tool, of its [`declaration`](Self::declaration).
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn build(&self, mut declaration: Declaration) -> Result<Tool, ToolErrors> {
        let found = Findings::of(&declaration).finish();
        let name = declaration.name.clone();
        let timeout = declaration.timeout.unwrap_or(TIMEOUT);
        declaration.timeout = Some(timeout.saturating_add(GRACE));
        let spec = Arc::new(self.clone());
        let builder = declaration.into_builder().capabilities(Capabilities::none().agents());
        let made =
            builder.handler(move |args: Value, cx| call(args, cx, Arc::clone(&spec), timeout));
        found.or_tool(name, made)
    }
}

async fn call(
    args: Value,
    cx: ToolContext,
    spec: Arc<TaskSpec>,
    timeout: Duration,
) -> Result<ToolOutput, ToolError> {
    let delegate = cx.handle::<DelegateHandle>().map_err(|_| {
        let told = "there are no other agents here; do the work yourself";
        let cause = "only a run of an agent has child agents; this call was made without one";
        ToolError::new(ErrorCode::NotAvailable, told).caused_by(cause)
    })?;
    let mut task = AgentTask::new(&*text(&args, PROMPT).unwrap_or_default());
    task.personality = text(&args, AGENT).map(|agent| (&*agent).into());
    task.max_iterations = spec.max_iterations;
    task.max_calls = spec.max_calls;
    task.max_tokens = spec.max_tokens;
    task.max_cost_usd = spec.max_cost_usd;
    task.max_depth = spec.max_depth;
    task.timeout = timeout;
    delegate.0.delegate(task, &cx).await
}
