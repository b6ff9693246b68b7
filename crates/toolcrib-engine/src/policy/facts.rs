//! The facts that rules are evaluated against.

use std::sync::Arc;

use toolcrib_core::{PolicyFacts, SkillId, ToolDefinition};

use crate::{
    personality::Personality,
    skills::{Skills, StepPosition},
};

/// The facts that decide visibility, beside the tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// The active skills, the last activated last.
    pub(crate) skills: &'a [SkillId],
    /// The current steps of those that have steps.
    pub(crate) steps: &'a [StepPosition],
    /// The turn's roles.
    pub(crate) roles: &'a [Arc<str>],
    /// The roles that claims add.
    pub(crate) roles_by_claims: &'a [Arc<str>],
    /// The tenant.
    pub(crate) tenant: Option<&'a str>,
    /// The principal.
    pub(crate) principal: Option<&'a str>,
    /// The personality.
    pub(crate) personality: &'a Personality,
    /// The number of the iteration in the turn, from 1.
    pub(crate) iteration: u32,
    /// Whether the conversation has read content of unknown authors.
    pub(crate) tainted: bool,
}

/// The facts in the form that rules use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleFacts<'a> {
    pub(crate) facts: Facts<'a>,
    pub(crate) skills: &'a Skills,
}

impl PolicyFacts for RuleFacts<'_> {
    fn active_skills(&self) -> &[SkillId] {
        self.facts.skills
    }

    fn is_listed(&self, tool: &ToolDefinition) -> bool {
        self.skills.lists(self.facts.skills, tool.name())
    }

    fn has_role(&self, role: &str) -> bool {
        self.facts.roles.iter().any(|held| **held == *role)
    }

    fn tenant(&self) -> Option<&str> {
        self.facts.tenant
    }

    fn principal(&self) -> Option<&str> {
        self.facts.principal
    }

    fn personality(&self) -> &str {
        &self.facts.personality.id
    }

    fn iteration(&self) -> u32 {
        self.facts.iteration
    }

    fn is_tainted(&self) -> bool {
        self.facts.tainted
    }
}
