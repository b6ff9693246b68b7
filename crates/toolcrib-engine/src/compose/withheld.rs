use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use toolcrib_core::{Catalog, Glob, Tool, WithheldBy, WithheldByProvider, WithheldTool};

use super::{
    Situation, Visibility,
    change::Goal,
    explain,
    missing::MissingTool,
    why::{CauseStage, Explanation},
};
use crate::{policy::facts::Facts, provider::Notice};

/// The tools that are known and not offered in an iteration. Reasons are computed and put into
/// words only on request.
pub struct Withheld {
    visibility: Arc<Visibility>,
    situation: Situation,
    hidden: Vec<HiddenTool>,
    notices: Vec<Notice>,
    missing: OnceLock<Box<[MissingTool]>>,
}

/// Why a tool is not offered.
pub(super) enum HiddenTool {
    /// A provider withheld it.
    Gate(WithheldByProvider),
    /// Personality, policy or skills withhold it.
    Rules(Tool),
    /// Another tool with its name is offered.
    Collision { tool: Tool, kept: Tool },
    /// Its schema is not valid.
    Schema { tool: Tool, problem: Arc<str> },
    /// It is not available now.
    Unavailable { tool: Tool, reason: Arc<str> },
    /// A source was omitted, with all of its tools.
    Source(Notice),
    /// A source was omitted; its last successful listing offered or withheld this tool.
    Omitted { tool: Tool, withheld_by_provider: Option<WithheldByProvider>, notice: Notice },
}

impl HiddenTool {
    /// An omitted source: itself, and its last successful listing.
    pub(super) fn of_omitted(notice: &Notice) -> impl Iterator<Item = Self> {
        let omitted =
            |tool: &Tool, withheld_by_provider: Option<&WithheldByProvider>| Self::Omitted {
                tool: tool.clone(),
                withheld_by_provider: withheld_by_provider.cloned(),
                notice: notice.clone(),
            };
        let listing = notice.last_good.as_ref();
        let offered = listing.into_iter().flat_map(Catalog::offered);
        let withheld_by_provider = listing.into_iter().flat_map(Catalog::withheld_by_provider);
        [Self::Source(notice.clone())]
            .into_iter()
            .chain(offered.map(move |tool| omitted(tool, None)))
            .chain(withheld_by_provider.map(move |held| omitted(&held.tool, Some(held))))
    }

    /// The tool, if it is known.
    pub(super) fn tool(&self) -> Option<&Tool> {
        match self {
            Self::Gate(withheld_by_provider) => Some(&withheld_by_provider.tool),
            Self::Rules(tool)
            | Self::Collision { tool, .. }
            | Self::Schema { tool, .. }
            | Self::Unavailable { tool, .. }
            | Self::Omitted { tool, .. } => Some(tool),
            Self::Source(_) => None,
        }
    }

    /// The tool's origin; for a source, its path.
    pub(super) fn origin(&self) -> Arc<str> {
        match self {
            Self::Source(notice) => Arc::clone(&notice.source),
            _ => self.tool().map(|tool| Arc::clone(tool.shared_origin())).unwrap_or_default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Source(notice) => &notice.name,
            Self::Gate(WithheldByProvider { tool, .. })
            | Self::Rules(tool)
            | Self::Collision { tool, .. }
            | Self::Schema { tool, .. }
            | Self::Unavailable { tool, .. }
            | Self::Omitted { tool, .. } => tool.name(),
        }
    }
}

impl HiddenTool {
    /// The part that withholds it, with the reason, unless that is personality, policy or skills.
    pub(super) fn withheld_by(&self) -> Option<(WithheldBy, String)> {
        Some(match self {
            Self::Rules(_) => return None,
            Self::Gate(held) => (WithheldBy::Gate, gate_says(held)),
            Self::Collision { kept, .. } => {
                let kept = kept.origin();
                let reason = format!("the tool of this name from {kept} is offered in its place");
                (WithheldBy::Collision, reason)
            }
            Self::Schema { problem, .. } => {
                (WithheldBy::Schema, format!("its schema cannot be enforced: {problem}"))
            }
            Self::Unavailable { reason, .. } => {
                (WithheldBy::Availability, format!("it is not available now: {reason}"))
            }
            Self::Source(notice) => {
                (WithheldBy::Discovery, format!("could not be listed: {}", notice.reason))
            }
            Self::Omitted { withheld_by_provider: held, notice, .. } => {
                let Notice { source, reason, .. } = notice;
                let mut reason = format!("its source `{source}` could not be listed: {reason}");
                if let Some(held) = held {
                    reason = format!("{reason}; {}", gate_says(held));
                }
                (WithheldBy::Discovery, reason)
            }
        })
    }
}

impl Withheld {
    pub(super) fn new(
        visibility: Arc<Visibility>,
        situation: Situation,
        hidden: Vec<HiddenTool>,
        notices: Vec<Notice>,
    ) -> Self {
        Self { visibility, situation, hidden, notices, missing: OnceLock::new() }
    }

    /// A result without withheld tools.
    pub(crate) fn nothing(visibility: &Arc<Visibility>, situation: Situation) -> Self {
        Self::new(Arc::clone(visibility), situation, Vec::new(), Vec::new())
    }

    pub(super) fn visibility(&self) -> &Arc<Visibility> {
        &self.visibility
    }

    pub(super) fn situation(&self) -> &Situation {
        &self.situation
    }

    pub(super) fn facts(&self) -> Facts<'_> {
        self.situation.facts()
    }

    pub(super) fn missing_tools(&self) -> &OnceLock<Box<[MissingTool]>> {
        &self.missing
    }

    pub(super) fn hidden(&self) -> &[HiddenTool] {
        &self.hidden
    }

    /// The sources that failed and did not end the iteration.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// The number of withheld tools; an omitted source counts as one more.
    pub fn len(&self) -> usize {
        self.hidden.len()
    }

    /// Whether nothing is withheld.
    pub fn is_empty(&self) -> bool {
        self.hidden.is_empty()
    }

    /// Their [names](WithheldTool::name), in the order of discovery.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.hidden.iter().map(HiddenTool::name)
    }

    /// The withheld tools with reasons: the short form of [`explanations`](Self::explanations).
    pub fn tools(&self) -> impl ExactSizeIterator<Item = WithheldTool> + '_ {
        self.hidden.iter().map(|hidden| self.short(hidden, true))
    }

    /// Like [`tools`](Self::tools), for wanted [origins](WithheldTool::origin) only: no other
    /// reasons are computed.
    pub fn tools_from(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = WithheldTool> + '_ {
        let wanted: Vec<_> =
            self.hidden.iter().filter(|hidden| is_wanted(&hidden.origin())).collect();
        wanted.into_iter().map(|hidden| self.short(hidden, true))
    }

    /// Like [`tools`](Self::tools), without a search for the change that would offer them.
    pub(crate) fn tools_without_change(&self) -> Vec<WithheldTool> {
        self.hidden.iter().map(|hidden| self.short(hidden, false)).collect()
    }

    /// One tool with its reason; `None` if the name is not withheld.
    pub fn tool(&self, name: &str) -> Option<WithheldTool> {
        self.named(name).map(|hidden| self.short(hidden, true))
    }

    /// Why each is withheld, with the smallest change that would offer it, in the order of
    /// discovery.
    pub fn explanations(&self) -> impl ExactSizeIterator<Item = Explanation> + '_ {
        self.hidden.iter().map(|hidden| self.why_hidden(hidden))
    }

    /// Like [`explanations`](Self::explanations), for one name; `None` if the name is not withheld.
    pub fn why(&self, name: &str) -> Option<Explanation> {
        self.named(name).map(|hidden| self.why_hidden(hidden))
    }

    fn named(&self, name: &str) -> Option<&HiddenTool> {
        self.hidden.iter().find(|hidden| hidden.name() == name)
    }

    /// Whether a tool of this name may be offered again once its source can be listed: the source
    /// listed it before, and nothing else withholds it; or the source never listed anything, and
    /// the name fits its pattern. The latter says no more than the source's [`Notice`].
    pub fn is_away(&self, name: &str) -> bool {
        self.hidden.iter().any(|hidden| match hidden {
            HiddenTool::Omitted { tool, withheld_by_provider: None, .. }
                if *tool.name() == *name =>
            {
                explain::objections(&self.visibility, tool, self.facts()).next().is_none()
            }
            HiddenTool::Source(notice) => {
                let is_pattern = notice.name.contains('*');
                is_pattern && notice.last_good.is_none() && Glob::new(&*notice.name).matches(name)
            }
            _ => false,
        })
    }

    /// The policy rule that withholds a tool of this name: for `policy.denied`.
    pub(crate) fn denying_rule(&self, name: &str) -> Option<(Arc<str>, Option<Arc<str>>)> {
        self.hidden
            .iter()
            .filter_map(HiddenTool::tool)
            .filter(|tool| *tool.name() == *name)
            .map(|tool| self.visibility.judge(tool, self.facts()))
            .find(|ruling| !ruling.offers())
            .map(|ruling| (ruling.label(), ruling.reason()))
    }

    fn short(&self, hidden: &HiddenTool, with_change: bool) -> WithheldTool {
        let (visibility, facts) = (&*self.visibility, self.facts());
        let objections =
            hidden.tool().into_iter().flat_map(|tool| explain::objections(visibility, tool, facts));
        let (parts, mut reasons): (Vec<_>, Vec<_>) =
            hidden.withheld_by().into_iter().chain(objections).unzip();
        if let Some(tool) = hidden.tool().filter(|_| with_change)
            && parts.iter().any(|by| CauseStage::from(*by) != CauseStage::Source)
        {
            let mut goals = vec![Goal::Offer(tool)];
            if let HiddenTool::Collision { kept, .. } = hidden {
                goals.push(Goal::Withhold(kept));
            }
            let remedy = explain::remedy(visibility, facts, goals, tool, "offer");
            for further in remedy.further {
                if !reasons.contains(&further) {
                    reasons.push(further);
                }
            }
            reasons.push(remedy.change.text);
        }
        WithheldTool {
            name: hidden.name().into(),
            origin: hidden.origin(),
            by: parts.first().copied().unwrap_or(WithheldBy::Policy),
            reason: visibility.redactor.text(&reasons.join("; ")).into_owned(),
        }
    }
}

/// Why a provider withholds a tool, in words. A source that does so by itself is named like the
/// origin of its tools.
fn gate_says(held: &WithheldByProvider) -> String {
    let WithheldByProvider { tool, gate, reason } = held;
    if **gate == *tool.origin() {
        format!("its source `{gate}` withholds it: {reason}")
    } else {
        format!("gate `{gate}`: {reason}")
    }
}

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
