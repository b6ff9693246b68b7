//! `[[tool]]` of the kind `task`.

use std::sync::Arc;

use toolcrib_config::{Located, Spot, Table};
use toolcrib_core::Tool;

use super::TaskSpec;
use crate::{Declaration, DeclaredKind, ExternalAccess, ToolErrors};

/// The keys that only this kind has.
pub const KEYS: &[&str] =
    &["agents", "max_calls", "max_cost_usd", "max_depth", "max_iterations", "max_tokens"];

/// The tool as read from a table.
#[derive(Debug, Clone)]
pub struct DeclaredTask {
    agents: Vec<Located<Arc<str>>>,
    spec: TaskSpec,
    cost_at: Option<Spot>,
}

impl DeclaredTask {
    /// Reads the keys of this kind; problems are recorded.
    pub fn read(table: &Table<'_>) -> Self {
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

    /// The personalities of children, where they are named.
    pub fn agents(&self) -> &[Located<Arc<str>>] {
        &self.agents
    }

    /// The position of the limit of cost.
    pub fn cost_at(&self) -> Option<&Spot> {
        self.cost_at.as_ref()
    }

    /// Its declaration, as [`TaskSpec::declaration`].
    pub fn declaration(&self, base: &Declaration, prefix: Option<&str>) -> Declaration {
        self.spec.declaration(base, prefix)
    }

    /// As [`TaskSpec::build`].
    ///
    /// # Errors
    /// As there.
    pub fn build(&self, declaration: Declaration) -> Result<Tool, ToolErrors> {
        self.spec.build(declaration)
    }
}

impl DeclaredKind for DeclaredTask {
    /// Only what the tools of the child reach.
    fn external_access(&self) -> Vec<ExternalAccess<'_>> {
        Vec::new()
    }

    fn secret_texts(&self) -> Vec<(String, &str)> {
        Vec::new()
    }
}
