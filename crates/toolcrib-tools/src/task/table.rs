//! `[[tool]]` of the kind `task`.

use std::sync::Arc;

use toolcrib_config::{Located, Spot, Table};

use super::TaskSpec;
use crate::{
    BuiltTool, Declaration, DeclaredKind, ExternalAccess, KindForm, KindPorts, KindReader,
    kind::{boxed, explain_of_agent},
};

pub(crate) const KIND: KindReader = KindReader {
    word: "task",
    keys: &["agents", "max_calls", "max_cost_usd", "max_depth", "max_iterations", "max_tokens"],
    form: KindForm::OF_AGENT,
    read: |table| {
        explain_of_agent(table);
        boxed([DeclaredTask::read(table)])
    },
};

/// The tool as read from a table.
#[derive(Debug)]
struct DeclaredTask {
    /// The personalities of children, where they are named.
    agents: Vec<Located<Arc<str>>>,
    spec: TaskSpec,
    cost_at: Option<Spot>,
}

impl DeclaredTask {
    fn read(table: &Table<'_>) -> Self {
        let agents = table.texts("agents");
        let spec = TaskSpec {
            agents: agents.iter().map(|agent| Arc::clone(&agent.value)).collect(),
            max_iterations: table.integer("max_iterations", 1..=u32::MAX),
            max_calls: table.integer("max_calls", 1..=u32::MAX),
            max_tokens: table.integer("max_tokens", 1..=u64::MAX),
            max_cost_usd: table.number("max_cost_usd", 1e-6..),
            max_depth: table.integer("max_depth", 1..=8).unwrap_or(1),
        };
        let cost_at = table.value("max_cost_usd").map(|cost| cost.at());
        Self { agents, spec, cost_at }
    }
}

impl DeclaredKind for DeclaredTask {
    /// Only what the tools of the child reach.
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn cost_at(&self) -> Option<&Spot> {
        self.cost_at.as_ref()
    }

    fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.spec.declaration(base, prefix)
    }

    fn build(&self, declaration: Declaration, ports: &dyn KindPorts) -> BuiltTool {
        ports.may_delegate(&self.agents).then(|| self.spec.build(declaration))
    }
}
