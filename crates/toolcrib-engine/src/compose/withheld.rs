use std::{fmt, sync::Arc};

use serde::Serialize;
use toolcrib_core::{Catalog, Glob, HeldBack, NotOffered, Tool};

use super::{Situation, Visibility, change::Goal, explain, why::Why};
use crate::{policy::Facts, sources::Notice};

/// What is known and not offered in an iteration. Reasons are only worked out and put into words
/// when somebody asks for them.
pub struct Withheld {
    visibility: Arc<Visibility>,
    situation: Situation,
    hidden: Vec<Hidden>,
    notices: Vec<Notice>,
}

/// A known tool that is not offered, and why; or a source that was left out, which stands for
/// whatever tools it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WithheldTool {
    /// The tool; of a source, what its tools are called, such as `mcp__git__*`.
    pub name: Arc<str>,
    /// Where the tool comes from; of a source, its path.
    pub origin: Arc<str>,
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
    /// A gate in code, a provider that is scoped to a skill, or the tool's own source.
    Gate,
    /// The run's personality.
    Personality,
    /// A policy rule, or the default.
    Policy,
    /// No active skill lists it.
    Skill,
    /// Another tool of its name is offered.
    Collision,
    /// Its schema cannot be enforced.
    Schema,
    /// It says itself that it is not available now.
    Availability,
    /// Its source could not be listed and was left out.
    Discovery,
}

impl fmt::Display for WithheldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gate => "gate",
            Self::Personality => "personality",
            Self::Policy => "policy",
            Self::Skill => "skill",
            Self::Collision => "collision",
            Self::Schema => "schema",
            Self::Availability => "availability",
            Self::Discovery => "discovery",
        })
    }
}

/// Where a tool was lost.
pub(super) enum Hidden {
    /// A provider held it back.
    Gate(HeldBack),
    /// Personality, policy or skills do.
    Rules(Tool),
    /// Another tool of its name took its place.
    Collision { tool: Tool, kept: Tool },
    /// Its schema is not one.
    Schema { tool: Tool, problem: Arc<str> },
    /// It is not available now.
    Unavailable { tool: Tool, reason: Arc<str> },
    /// A source was left out: whatever tools it has.
    Source(Notice),
    /// A source was left out, which listed this when it last could, or held it back.
    Omitted { tool: Tool, held_back: Option<HeldBack>, notice: Notice },
}

impl Hidden {
    /// A source that was left out: itself, and what it listed when it last could.
    pub(super) fn of_omitted(notice: &Notice) -> impl Iterator<Item = Self> {
        let omitted = |tool: &Tool, held_back: Option<&HeldBack>| Self::Omitted {
            tool: tool.clone(),
            held_back: held_back.cloned(),
            notice: notice.clone(),
        };
        let listing = notice.last_good.as_deref();
        let offered = listing.into_iter().flat_map(Catalog::offered);
        let held_back = listing.into_iter().flat_map(Catalog::held_back);
        [Self::Source(notice.clone())]
            .into_iter()
            .chain(offered.map(move |tool| omitted(tool, None)))
            .chain(held_back.map(move |held| omitted(&held.tool, Some(held))))
    }

    /// The tool, where it is one that is known.
    pub(super) fn tool(&self) -> Option<&Tool> {
        match self {
            Self::Gate(held_back) => Some(&held_back.tool),
            Self::Rules(tool)
            | Self::Collision { tool, .. }
            | Self::Schema { tool, .. }
            | Self::Unavailable { tool, .. }
            | Self::Omitted { tool, .. } => Some(tool),
            Self::Source(_) => None,
        }
    }

    /// Where the tool comes from; of a source, its path.
    pub(super) fn origin(&self) -> Arc<str> {
        match self {
            Self::Source(notice) => Arc::clone(&notice.source),
            _ => self.tool().map(|tool| Arc::clone(tool.shared_origin())).unwrap_or_default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Source(notice) => &notice.name,
            Self::Gate(HeldBack { tool, .. })
            | Self::Rules(tool)
            | Self::Collision { tool, .. }
            | Self::Schema { tool, .. }
            | Self::Unavailable { tool, .. }
            | Self::Omitted { tool, .. } => tool.name(),
        }
    }
}

impl Hidden {
    /// Why it was lost before anything was decided on it, in words.
    pub(super) fn lost_at_the_source(&self) -> Option<String> {
        Some(match self {
            Self::Rules(_) | Self::Collision { .. } => return None,
            Self::Gate(held_back) => held(held_back),
            Self::Schema { problem, .. } => format!("its schema cannot be enforced: {problem}"),
            Self::Unavailable { reason, .. } => format!("it is not available now: {reason}"),
            Self::Source(notice) => format!("could not be listed: {}", notice.reason),
            Self::Omitted { held_back, notice, .. } => {
                let omitted = format!(
                    "its source `{}` could not be listed: {}",
                    notice.source, notice.reason
                );
                match held_back {
                    Some(held_back) => format!("{omitted}; {}", held(held_back)),
                    None => omitted,
                }
            }
        })
    }

    /// Who withholds it, unless it is personality, policy or skills.
    fn by(&self) -> Option<WithheldBy> {
        match self {
            Self::Rules(_) => None,
            Self::Collision { .. } => Some(WithheldBy::Collision),
            Self::Gate(_) => Some(WithheldBy::Gate),
            Self::Schema { .. } => Some(WithheldBy::Schema),
            Self::Unavailable { .. } => Some(WithheldBy::Availability),
            Self::Source(_) | Self::Omitted { .. } => Some(WithheldBy::Discovery),
        }
    }
}

impl Withheld {
    pub(super) fn new(
        visibility: Arc<Visibility>,
        situation: Situation,
        hidden: Vec<Hidden>,
        notices: Vec<Notice>,
    ) -> Self {
        Self { visibility, situation, hidden, notices }
    }

    /// Nothing is withheld.
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

    pub(super) fn hidden(&self) -> &[Hidden] {
        &self.hidden
    }

    /// The sources that failed and did not end the iteration.
    pub(crate) fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// How many there are; a source that was left out counts as one more.
    pub fn len(&self) -> usize {
        self.hidden.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hidden.is_empty()
    }

    /// Their [names](WithheldTool::name), in the order in which they were found.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.hidden.iter().map(Hidden::name)
    }

    /// Each with its reason.
    pub fn explain(&self) -> impl ExactSizeIterator<Item = WithheldTool> + '_ {
        self.hidden.iter().map(|hidden| self.explained(hidden, true))
    }

    /// As [`explain`](Self::explain), of those whose [origin](WithheldTool::origin) is wanted: of the
    /// others no reason is worked out.
    pub fn explain_from(
        &self,
        is_wanted: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = WithheldTool> + '_ {
        let wanted: Vec<_> =
            self.hidden.iter().filter(|hidden| is_wanted(&hidden.origin())).collect();
        wanted.into_iter().map(|hidden| self.explained(hidden, true))
    }

    /// Each with what withholds it, without what would have to change: nothing is searched for.
    pub(crate) fn not_offered(&self) -> Vec<NotOffered> {
        let told = |hidden| {
            let WithheldTool { name, origin, by, reason } = self.explained(hidden, false);
            NotOffered { name, origin, by: by.to_string().into(), reason }
        };
        self.hidden.iter().map(told).collect()
    }

    /// One with its reason; `None` for a name that is not withheld.
    pub fn why(&self, name: &str) -> Option<WithheldTool> {
        let hidden = self.hidden.iter().find(|hidden| hidden.name() == name);
        hidden.map(|hidden| self.explained(hidden, true))
    }

    /// Whether a tool of this name may be offered again once its source can be listed: the source
    /// listed it before, and nothing else withholds it; or the source never listed anything, and the
    /// name is one that its tools can have. The latter says no more than the source's [`Notice`].
    pub fn is_away(&self, name: &str) -> bool {
        self.hidden.iter().any(|hidden| match hidden {
            Hidden::Omitted { tool, held_back: None, .. } if *tool.name() == *name => {
                explain::objections(&self.visibility, tool, self.facts()).by.is_none()
            }
            Hidden::Source(notice) => {
                let is_pattern = notice.name.contains('*');
                is_pattern && notice.last_good.is_none() && Glob::new(&*notice.name).matches(name)
            }
            _ => false,
        })
    }

    /// The policy rule that withholds a tool of this name: what makes `policy.denied`.
    pub(crate) fn denying_rule(&self, name: &str) -> Option<(Arc<str>, Option<Arc<str>>)> {
        self.hidden
            .iter()
            .filter_map(Hidden::tool)
            .filter(|tool| *tool.name() == *name)
            .find_map(|tool| explain::denial(&self.visibility, tool, self.situation.facts()))
    }

    /// Why each is withheld, with the smallest change that would offer it, in the order in which
    /// they were found.
    pub fn whys(&self) -> impl ExactSizeIterator<Item = Why> + '_ {
        self.hidden.iter().map(|hidden| self.why_hidden(hidden))
    }

    /// The same of those of a name.
    pub(crate) fn whys_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Why> + 'a {
        let of_name = self.hidden.iter().filter(move |hidden| hidden.name() == name);
        of_name.map(|hidden| self.why_hidden(hidden))
    }

    fn explained(&self, hidden: &Hidden, with_remedy: bool) -> WithheldTool {
        let (visibility, facts) = (&*self.visibility, self.facts());
        let mut reasons: Vec<_> = hidden.lost_at_the_source().into_iter().collect();
        let mut goals = Vec::new();
        if let Hidden::Collision { kept, .. } = hidden {
            reasons.push(format!(
                "the tool of this name from {} is offered in its place",
                kept.origin()
            ));
            goals.push(Goal::Withhold(kept));
        }
        let objections = hidden.tool().map(|tool| explain::objections(visibility, tool, facts));
        let ruled_by = objections.as_ref().and_then(|objections| objections.by);
        reasons.extend(objections.into_iter().flat_map(|objections| objections.reasons));
        if let (true, Some(tool), true) =
            (with_remedy, hidden.tool(), ruled_by.is_some() || !goals.is_empty())
        {
            goals.insert(0, Goal::Offer(tool));
            let remedy = explain::remedy(visibility, facts, goals, tool, "offer");
            for further in remedy.further {
                if !reasons.contains(&further) {
                    reasons.push(further);
                }
            }
            reasons.push(remedy.text);
        }
        WithheldTool {
            name: hidden.name().into(),
            origin: hidden.origin(),
            by: hidden.by().or(ruled_by).unwrap_or(WithheldBy::Policy),
            reason: self.visibility.redactor.text(&reasons.join("; ")).into_owned(),
        }
    }
}

/// What holds a tool back, in words. A source that does so by itself goes by the name that stands as
/// the origin of its tools.
fn held(held_back: &HeldBack) -> String {
    let HeldBack { tool, gate, reason } = held_back;
    if **gate == *tool.origin() {
        format!("its source `{gate}` holds it back: {reason}")
    } else {
        format!("gate `{gate}`: {reason}")
    }
}

impl fmt::Debug for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
