use std::{fmt, sync::Arc};

use serde::Serialize;
use toolcrib_core::{HeldBack, Tool, ToolName};

use super::{Situation, Visibility, explain};

/// What is known and not offered in an iteration. Reasons are only worked out and put into words
/// when somebody asks for them.
pub struct Withheld {
    visibility: Arc<Visibility>,
    situation: Situation,
    hidden: Vec<Hidden>,
}

/// A known tool that is not offered, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithheldTool {
    /// The tool.
    pub name: ToolName,
    /// Who withholds it; the first, if several do.
    pub by: WithheldBy,
    /// The rules and gates, and every fact that must change for it to be offered.
    pub reason: String,
}

/// Who withholds a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WithheldBy {
    /// A gate in code, or a provider that is scoped to a skill.
    Gate,
    /// A policy rule, or the default.
    Policy,
    /// No active skill lists it.
    Skill,
    /// Its schema cannot be enforced.
    Schema,
}

impl fmt::Display for WithheldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate",
            Self::Policy => "policy",
            Self::Skill => "skill",
            Self::Schema => "schema",
        })
    }
}

/// Where a tool was lost.
pub(super) enum Hidden {
    /// A provider held it back.
    Gate(HeldBack),
    /// Skills or policy do.
    Rules(Tool),
    /// Its schema is not one.
    Schema { tool: Tool, problem: Arc<str> },
}

impl Hidden {
    fn tool(&self) -> &Tool {
        match self {
            Self::Gate(held_back) => &held_back.tool,
            Self::Rules(tool) | Self::Schema { tool, .. } => tool,
        }
    }
}

impl Withheld {
    pub(super) fn new(
        visibility: Arc<Visibility>,
        situation: Situation,
        hidden: Vec<Hidden>,
    ) -> Self {
        Self { visibility, situation, hidden }
    }

    /// Nothing is withheld.
    pub(crate) fn nothing(visibility: &Arc<Visibility>, situation: Situation) -> Self {
        Self::new(Arc::clone(visibility), situation, Vec::new())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hidden.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hidden.is_empty()
    }

    /// Their names, in the order in which they were found.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ToolName> {
        self.hidden.iter().map(|hidden| hidden.tool().name())
    }

    /// Each with its reason.
    pub fn explain(&self) -> impl ExactSizeIterator<Item = WithheldTool> + '_ {
        self.hidden.iter().map(|hidden| self.explained(hidden))
    }

    /// One with its reason; `None` for a name that is not withheld.
    pub fn why(&self, name: &str) -> Option<WithheldTool> {
        let hidden = self.hidden.iter().find(|hidden| *hidden.tool().name() == *name);
        hidden.map(|hidden| self.explained(hidden))
    }

    /// The policy rule that withholds a tool of this name: what makes `policy.denied`.
    pub(crate) fn denying_rule(&self, name: &str) -> Option<(Arc<str>, Option<Arc<str>>)> {
        self.hidden
            .iter()
            .map(Hidden::tool)
            .filter(|tool| *tool.name() == *name)
            .find_map(|tool| explain::denial(&self.visibility, tool, self.situation.facts()))
    }

    fn explained(&self, hidden: &Hidden) -> WithheldTool {
        let tool = hidden.tool();
        let mut by = None;
        let mut reasons = Vec::new();
        match hidden {
            Hidden::Gate(held_back) => {
                by = Some(WithheldBy::Gate);
                reasons.push(format!("gate `{}`: {}", held_back.gate, held_back.reason));
            }
            Hidden::Schema { problem, .. } => {
                by = Some(WithheldBy::Schema);
                reasons.push(format!("its schema cannot be enforced: {problem}"));
            }
            Hidden::Rules(_) => {}
        }
        let rules = explain::explain(&self.visibility, tool, self.situation.facts());
        reasons.extend(rules.reasons);
        WithheldTool {
            name: tool.name().clone(),
            by: by.or(rules.by).unwrap_or(WithheldBy::Policy),
            reason: reasons.join("; "),
        }
    }
}

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
