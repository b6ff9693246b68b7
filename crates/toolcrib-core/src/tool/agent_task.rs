//! Tasks that the body of a tool gives to child agents.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

use super::{
    context::ToolContext,
    output::{ToolError, ToolOutput},
};

/// A task for a child agent, and its limits. The limits of the run that gives the task apply too.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AgentTask {
    /// The only message that the child reads.
    pub prompt: Arc<str>,
    /// The id of the child's personality. Default: that of the turn that gives the task. Either way the
    /// child reaches only tools that the turn is offered.
    pub personality: Option<Arc<str>>,
    /// The maximum number of iterations. Default: the agent's.
    pub max_iterations: Option<u32>,
    /// The number of calls of the child and its own children. Default: not limited.
    pub max_calls: Option<u32>,
    /// The number of their tokens, input and output together. Default: not limited.
    pub max_tokens: Option<u64>,
    /// Their cost in US dollars. Default: not limited.
    pub max_cost_usd: Option<f64>,
    /// The depth of agents that the tool may cause: with 1, its child cannot give tasks. Default: 1.
    pub max_depth: u32,
    /// The timeout of the child. Default: 10 minutes.
    pub timeout: Duration,
}

impl AgentTask {
    /// A task with the default limits.
    pub fn new(prompt: impl Into<Arc<str>>) -> Self {
        Self {
            prompt: prompt.into(),
            personality: None,
            max_iterations: None,
            max_calls: None,
            max_tokens: None,
            max_cost_usd: None,
            max_depth: 1,
            timeout: Duration::from_mins(10),
        }
    }
}

/// Runs child agents for one call.
pub trait Delegate: Send + Sync + 'static {
    /// Runs a child to its end. It is cancelled with the call, and its result is untrusted if it has
    /// read untrusted content.
    fn delegate(
        &self,
        task: AgentTask,
        cx: &ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>>;
}

/// The [`Delegate`] of a call, as a [handle](ToolContext::handle) of a tool that
/// [declares](crate::Capabilities::agents) it.
#[derive(Clone)]
pub struct DelegateHandle(pub Arc<dyn Delegate>);

crate::internal::debug_fields!(DelegateHandle);
