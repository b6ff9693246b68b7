//! What rules are read against.

use std::sync::Arc;

use toolcrib_core::{PolicyFacts, SkillId, ToolDefinition};

use crate::{
    personality::Personality,
    skills::{Skills, StepsAt},
};

/// What decides on visibility, beside the tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// The active skills, the last activated last.
    pub(crate) skills: &'a [SkillId],
    /// Where those of them stand that have steps.
    pub(crate) steps: &'a [StepsAt],
    /// The turn's roles.
    pub(crate) roles: &'a [Arc<str>],
    /// Those of them that claims give.
    pub(crate) roles_by_claims: &'a [Arc<str>],
    /// The tenant.
    pub(crate) tenant: Option<&'a str>,
    /// The principal.
    pub(crate) principal: Option<&'a str>,
    /// The personality.
    pub(crate) personality: &'a Personality,
    /// Which iteration of the turn, from 1.
    pub(crate) iteration: u32,
}

/// The facts as rules ask for them.
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
        self.facts.personality.id()
    }

    fn iteration(&self) -> u32 {
        self.facts.iteration
    }
}
