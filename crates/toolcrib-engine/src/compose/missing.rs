//! The tools that a caller misses for reasons other than its own rights, as far as it may know them.

use std::sync::Arc;

use toolcrib_core::{Annotations, Glob, MissingReason, Reason, Tool, WithheldByProvider};

use super::{
    explain,
    request_tools::JudgedOnly,
    withheld::{HiddenTool, Withheld},
};
use crate::provider::Notice;

/// A missing tool that its caller may know: nothing but the reason withholds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MissingTool {
    /// The tool; for a source that is not ready, the pattern of its tools' names.
    pub name: Arc<str>,
    /// The origin; for a source, its path.
    pub origin: Arc<str>,
    /// The reason.
    pub reason: MissingReason,
}

impl HiddenTool {
    /// Why it is missing; `None` if only a right of the caller, a gate or a skill withholds it.
    fn missing_reason(&self) -> Option<MissingReason> {
        match self {
            Self::Gate(WithheldByProvider { reason: Reason::Definition(of, _), .. }) => Some(*of),
            Self::Gate(_) | Self::Rules(_) | Self::Omitted { .. } => None,
            Self::Collision { .. } => Some(MissingReason::SameName),
            Self::Schema { .. } => Some(MissingReason::Schema),
            Self::Unavailable { tool, .. } => {
                Some(tool.refusal().unwrap_or(MissingReason::NotAvailable))
            }
            Self::Source(_) => Some(MissingReason::NotReady),
        }
    }
}

impl Withheld {
    /// The missing tools that the caller may know: personality, policy and skills would offer each of
    /// them. In the order of discovery. Computed once.
    pub fn missing(&self) -> &[MissingTool] {
        self.missing_tools().get_or_init(|| {
            let missing = |hidden: &HiddenTool| {
                let reason = hidden.missing_reason()?;
                let may_know = match hidden {
                    HiddenTool::Source(notice) => self.may_know(notice),
                    hidden => hidden.tool().is_some_and(|tool| self.would_offer(tool)),
                };
                let name = self.visibility().redactor.text(hidden.name()).as_ref().into();
                may_know.then(|| MissingTool { name, origin: hidden.origin(), reason })
            };
            self.hidden().iter().filter_map(missing).collect()
        })
    }

    /// The tools that are withheld for their definition or state, regardless of the
    /// caller: the origin of each.
    pub fn missing_origins(&self) -> impl Iterator<Item = Arc<str>> {
        let hidden = self.hidden().iter().filter(|hidden| {
            !matches!(hidden, HiddenTool::Source(_)) && hidden.missing_reason().is_some()
        });
        hidden.map(HiddenTool::origin)
    }

    /// Whether the caller may know of an omitted source: some tool of it would be offered.
    pub fn may_know(&self, notice: &Notice) -> bool {
        if let Some(last) = &notice.last_good {
            return last.offered().iter().any(|tool| self.would_offer(tool));
        }
        let leaf = notice.source.rsplit(" > ").next().unwrap_or_default();
        let Some(server) = leaf.strip_prefix("mcp:") else { return true };
        // Any tool, and those that rules name.
        let pattern = Glob::new(Arc::clone(&notice.name));
        let rules = self.visibility().policy.rules.iter();
        let globs = rules.flat_map(|rule| &rule.tools.names).map(Glob::as_str);
        let names = globs.chain([&*notice.name]).map(|glob| glob.replace(['*', '?'], "x"));
        names.filter(|name| pattern.matches(name)).any(|name| {
            let tool = Tool::builder(name)
                .description("A tool.")
                .toolset("mcp")
                .origin(leaf)
                .mcp_server(server)
                .untrusted()
                .annotations(Annotations { destructive: true, ..Annotations::default() })
                .body(JudgedOnly);
            tool.is_ok_and(|tool| self.would_offer(&tool))
        })
    }

    fn would_offer(&self, tool: &Tool) -> bool {
        let (visibility, situation) = (self.visibility(), self.situation());
        let is_of_another_step = || {
            let (skills, steps) = (&situation.active_skills, &situation.steps);
            let mut all = visibility.skills.steps_that_hold(skills, steps);
            all.any(|(_, steps, position)| steps.withhold(position, tool).is_some())
        };
        explain::objections(visibility, tool, self.facts()).next().is_none()
            && !is_of_another_step()
    }
}
