//! When the tools of skills are offered.

use std::fmt;

use toolcrib_core::{__internal::quoted, SkillId, ToolDefinition};

use super::{Skill, Skills};

/// When the tools that a skill lists are offered, as far as skills decide; policy and personality
/// decide too. A tool that several skills list is offered if one of them admits it.
///
/// For a tool that the host's skills list, only their modes count; otherwise those of the tool's
/// own plugin. A plugin's skill offers tools of others while it is active, unless such skills list
/// them. It has no other effect on them: it neither hides foreign tools nor offers hidden ones.
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
    /// Only while this one is active.
    HiddenUntilActive,
}

impl ToolsMode {
    /// Every mode of an active skill.
    pub const ALL: [Self; 4] =
        [Self::WhileActive, Self::Always, Self::LatestOnly, Self::HiddenUntilActive];

    /// The word in files: `while_active`, `always`, `latest_only`, `hidden_until_active`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WhileActive => "while_active",
            Self::Always => "always",
            Self::LatestOnly => "latest_only",
            Self::HiddenUntilActive => "hidden_until_active",
        }
    }

    /// Whether a skill of this mode admits its tools.
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
    /// When the tools of one of these skills are offered: by its own mode, otherwise by the
    /// [setting](Self::tools_mode) for all.
    pub fn mode_of(&self, skill: &Skill) -> ToolsMode {
        skill.tools_mode.unwrap_or(self.mode)
    }

    /// Whether skills admit a tool. For a tool that no skill decides on this depends on focus; a
    /// tool that is always included passes in any case.
    pub(crate) fn admit(&self, active: &[SkillId], tool: &ToolDefinition) -> bool {
        let is_of_active = |skill: &SkillId| active.contains(skill);
        if tool.always_include() || tool.skill().is_some_and(is_of_active) {
            return true;
        }
        // One pass over the skills, since this runs for each tool; equivalent to `decider` and
        // `offering`.
        let (mut by_host, mut by_own_plugin, mut by_another) = (None, None, false);
        for skill in self.listing(tool.name()) {
            let by = match skill.plugin.as_deref() {
                None => &mut by_host,
                plugin if plugin == tool.plugin() => &mut by_own_plugin,
                Some(_) => {
                    by_another |= active.contains(&skill.id);
                    continue;
                }
            };
            *by.get_or_insert(false) |= self.mode_of(skill).admits(&skill.id, active);
        }
        by_host.or(by_own_plugin).unwrap_or_else(|| by_another || !self.narrow(active))
    }

    /// Whether the active skills hide the tools that belong to none of them. A skill without a list narrows
    /// nothing: it may only have instructions, or its tools have a gate that depends on it. One that is no
    /// longer known may have had a list.
    fn narrow(&self, active: &[SkillId]) -> bool {
        let has_list = |id: &SkillId| {
            let mut known = self.iter().filter(|skill| skill.id == *id);
            known.next().is_none_or(|skill| !skill.tools.is_empty())
        };
        self.focus && active.iter().any(has_list)
    }

    /// The skills that admit a tool when they are active: those whose modes count for it; without
    /// any, all that list it.
    pub(crate) fn offering<'a>(
        &'a self,
        tool: &'a ToolDefinition,
    ) -> impl Iterator<Item = &'a Skill> {
        let decider = self.decider(tool);
        self.listing(tool.name())
            .filter(move |skill| decider.is_none_or(|plugin| skill.plugin.as_deref() == plugin))
    }

    /// The owner of the skills whose modes count for a tool: the host, which is not a plugin, if
    /// one of its skills lists it, otherwise the tool's plugin.
    fn decider<'a>(&self, tool: &'a ToolDefinition) -> Option<Option<&'a str>> {
        let lists = |plugin: &Option<&str>| {
            self.listing(tool.name()).any(|skill| skill.plugin.as_deref() == *plugin)
        };
        [None, tool.plugin()].into_iter().find(lists)
    }

    /// The skills' objection to a tool; `None` when they [admit](Self::admit) it.
    pub(crate) fn objection<'a>(
        &'a self,
        active: &'a [SkillId],
        tool: &'a ToolDefinition,
    ) -> Option<Objection<'a>> {
        (!self.admit(active, tool)).then_some(Objection { skills: self, active, tool })
    }
}

/// Why skills do not admit a tool; [`activating`](Self::activating) says what would change that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Objection<'a> {
    skills: &'a Skills,
    active: &'a [SkillId],
    tool: &'a ToolDefinition,
}

impl<'a> Objection<'a> {
    /// The skills each of which, activated last, admits the tool.
    pub(crate) fn activating(&self) -> impl Iterator<Item = &'a SkillId> {
        self.skills.offering(self.tool).map(|skill| &skill.id)
    }

    /// An active skill that lists the tool without effect on it.
    fn unheard(&self) -> Option<&'a SkillId> {
        let mut listing = self.skills.listing(self.tool.name()).map(|skill| &skill.id);
        listing.find(|skill| self.active.contains(skill))
    }
}

impl fmt::Display for Objection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let active = quoted(self.active.iter().map(|skill| &**skill));
        let earlier = self.activating().find(|skill| self.active.contains(skill));
        match (earlier, self.activating().next(), self.unheard()) {
            // Only a skill whose mode is `LatestOnly` can be active and object.
            (Some(skill), ..) => write!(
                f,
                "skill `{skill}` lists it and offers its tools only while it is the one activated \
                 last (active: {active})"
            ),
            (None, Some(skill), _) if self.active.is_empty() => {
                write!(f, "skill `{skill}` lists it and hides its tools until it is active")
            }
            (None, Some(skill), Some(unheard)) => write!(
                f,
                "skill `{skill}` lists it and is not active; skill `{unheard}` of a plugin does not \
                 decide on it (active: {active})"
            ),
            _ => write!(f, "no active skill lists it (active: {active})"),
        }
    }
}
