//! The limits of a run.

/// Budgets of tokens and money over all runs that share a
/// [store](crate::AgentBuilder::store) of usage, also in other processes. A day begins at
/// midnight UTC.
///
/// Each model request is counted after its end, and the budgets are compared before each: the
/// request that exceeds one is the last, of each run that has one in flight. Then the run ends with
/// [`EndReason::LimitReached`](crate::EndReason::LimitReached), as at a [limit](TurnLimits) of cost. A
/// request that broke off before the vendor reported its usage counts with an estimate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budget {
    /// For all principals together, per day.
    pub day: Allowance,
    /// For each tenant and principal, per day.
    pub principal: Allowance,
}

impl Budget {
    /// Whether it limits nothing.
    pub fn is_empty(&self) -> bool {
        self.day.is_empty() && self.principal.is_empty()
    }
}

/// An amount of tokens and money.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Allowance {
    /// The number of tokens, input and output together. Default: not limited.
    pub max_tokens: Option<u64>,
    /// The cost of models and tools, in US dollars. A run whose models do not report their cost
    /// fails with [`RunError::COST_UNKNOWN`](crate::RunError::COST_UNKNOWN). Default: not limited.
    pub max_cost_usd: Option<f64>,
}

impl Allowance {
    /// Whether it limits nothing.
    pub fn is_empty(&self) -> bool {
        self.max_tokens.is_none() && self.max_cost_usd.is_none()
    }
}

/// Limits of one turn, which end a loop that makes no progress or costs too much. A resumed turn
/// counts what it did before; only denials are counted from zero.
///
/// At a limit of calls or denials, the calls beyond it are not made, and the model answers with the
/// results that it has, without further calls. At a limit of tokens or cost no further call and no
/// further request is made, and the answer says so. Either way the run ends with
/// [`EndReason::LimitReached`](crate::EndReason::LimitReached), after the event
/// `agent.limit_reached`.
///
/// Neighbor: [`Limits`](toolcrib_engine::Limits) are those of one batch of calls.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnLimits {
    /// The number of calls, refused ones included. Default: none.
    pub max_calls: Option<u32>,
    /// The number of calls of one name. Default: none.
    pub max_calls_per_tool: Option<u32>,
    /// The number of calls in a row with the same tool and arguments. Default: 10.
    pub max_identical_calls: Option<u32>,
    /// The number of calls that a rule, an approver or a middleware denies. Default: 20.
    pub max_denials: Option<u32>,
    /// The number of tokens, input and output together. The request that exceeds it is the last.
    /// Default: none.
    pub max_tokens: Option<u64>,
    /// The cost of models and tools, in US dollars. The request or call that exceeds it is the last.
    /// A run whose models do not report their cost fails with
    /// [`RunError::COST_UNKNOWN`](crate::RunError::COST_UNKNOWN). Default: none.
    pub max_cost_usd: Option<f64>,
}

impl TurnLimits {
    /// No limit of any kind.
    pub const NONE: Self = Self {
        max_calls: None,
        max_calls_per_tool: None,
        max_identical_calls: None,
        max_denials: None,
        max_tokens: None,
        max_cost_usd: None,
    };
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { max_identical_calls: Some(10), max_denials: Some(20), ..Self::NONE }
    }
}
