//! When the tools of skills are offered.

use std::fmt;

use toolcrib_core::{SkillId, ToolDefinition};

use super::{Skill, Skills};

/// When the tools that a skill lists are offered, as far as skills go; policy and personality
/// decide too. A tool that several skills list is offered when one of them wants it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ToolsMode {
    /// While no skill is active, and while this one is. The default.
    #[default]
    WhileActive,
    /// At all times, also while only others are active.
    Always,
    /// While no skill is active, and while this one is the one activated last.
    LatestOnly,
    /// While this one is active, and not before.
    HiddenUntilActive,
}

impl ToolsMode {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::WhileActive, Self::Always, Self::LatestOnly, Self::HiddenUntilActive];

    /// As it is written in files: `while_active`, `always`, `latest_only`, `hidden_until_active`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WhileActive => "while_active",
            Self::Always => "always",
            Self::LatestOnly => "latest_only",
            Self::HiddenUntilActive => "hidden_until_active",
        }
    }

    /// Whether a skill of this mode lets its tools be offered.
    fn admits(self, skill: &SkillId, active: &[SkillId]) -> bool {
        match self {
            Self::Always => true,
            Self::WhileActive => active.is_empty() || active.contains(skill),
            Self::LatestOnly => active.last().is_none_or(|latest| latest == skill),
            Self::HiddenUntilActive => active.contains(skill),
        }
    }
}

impl fmt::Display for ToolsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Skills {
    /// When the tools of one of these skills are offered: as it says itself, else as
    /// [set](Self::tools_mode) for all.
    pub fn mode_of(&self, skill: &Skill) -> ToolsMode {
        skill.tools_mode.unwrap_or(self.mode)
    }

    /// Whether skills let a tool be offered. Of a tool that no skill lists this depends on focus
    /// alone, and one that is always included passes in any case.
    pub(crate) fn admit(&self, active: &[SkillId], tool: &ToolDefinition) -> bool {
        if tool.always_include() {
            return true;
        }
        let mut listing = self.listing(tool.name()).peekable();
        if listing.peek().is_none() {
            return !self.focus || active.is_empty();
        }
        listing.any(|skill| self.mode_of(skill).admits(&skill.id, active))
    }

    /// What skills have against a tool; `None` when they [admit](Self::admit) it.
    pub(crate) fn objection<'a>(
        &'a self,
        active: &'a [SkillId],
        tool: &'a ToolDefinition,
    ) -> Option<Objection<'a>> {
        (!self.admit(active, tool)).then_some(Objection { skills: self, active, tool })
    }
}

/// Why skills do not let a tool be offered, as its text says; what would change that is
/// [`activating`](Self::activating).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Objection<'a> {
    skills: &'a Skills,
    active: &'a [SkillId],
    tool: &'a ToolDefinition,
}

impl<'a> Objection<'a> {
    /// The skills each of which, activated last, lets the tool be offered: all that list it.
    pub(crate) fn activating(&self) -> impl Iterator<Item = &'a SkillId> {
        self.skills.listing(self.tool.name()).map(|skill| &skill.id)
    }
}

impl fmt::Display for Objection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let earlier = self.activating().find(|skill| self.active.contains(skill));
        match (earlier, self.activating().next()) {
            // Only a skill whose tools go with the one activated last can be active and object.
            (Some(skill), _) => write!(
                f,
                "skill `{skill}` lists it and offers its tools only while it is the one activated \
                 last (active: {})",
                quoted(self.active)
            ),
            (None, Some(skill)) if self.active.is_empty() => {
                write!(f, "skill `{skill}` lists it and hides its tools until it is active")
            }
            _ => write!(f, "no active skill lists it (active: {})", quoted(self.active)),
        }
    }
}

fn quoted(skills: &[SkillId]) -> String {
    let names: Vec<_> = skills.iter().map(|skill| format!("`{skill}`")).collect();
    names.join(", ")
}
