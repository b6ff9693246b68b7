//! The why-engine: for each known tool one chain of causes, and the smallest change that would
//! reverse the outcome.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::Serialize;
use toolcrib_core::{Reason, Tool, WithheldBy, WithheldByProvider};

use super::{
    Visibility,
    change::Goal,
    explain::{self, Remedy, remedy},
    fact::FactChange,
    withheld::{HiddenTool, Withheld},
};
use crate::policy::facts::Facts;

/// Why a known tool is offered or withheld.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The tool; for an omitted source, the pattern of its tools' names, such as `mcp__git__*`.
    pub tool: Arc<str>,
    /// The tool's origin; for a source, its path.
    pub origin: Arc<str>,
    /// Whether it is offered.
    pub offered: bool,
    /// Each decision in order, up to the first that withholds the tool: all five for an offered
    /// tool.
    pub chain: Vec<Cause>,
    /// The smallest change of facts that would offer a withheld tool, or withhold an offered one.
    pub change: SmallestChange,
}

/// One decision of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cause {
    /// The stage that decided.
    pub stage: CauseStage,
    /// Whether the tool passed.
    pub passed: bool,
    /// The rule, skill or gate that decided, in words.
    pub text: String,
}

/// The stages that decide on a tool, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CauseStage {
    /// Whether its source lists it, no gate withholds it, it is available, and its schema can be
    /// enforced.
    Source,
    /// Whether the personality reaches it.
    Personality,
    /// Whether the rule list offers it.
    Policy,
    /// Whether the active skills pass it.
    Skill,
    /// Whether another tool has its name.
    Collision,
}

impl CauseStage {
    /// All stages, in order.
    pub const ALL: [Self; 5] =
        [Self::Source, Self::Personality, Self::Policy, Self::Skill, Self::Collision];

    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Personality => "personality",
            Self::Policy => "policy",
            Self::Skill => "skill",
            Self::Collision => "collision",
        }
    }
}

impl From<WithheldBy> for CauseStage {
    fn from(by: WithheldBy) -> Self {
        match by {
            WithheldBy::Personality => Self::Personality,
            WithheldBy::Policy => Self::Policy,
            WithheldBy::Skill => Self::Skill,
            WithheldBy::Collision => Self::Collision,
            _ => Self::Source,
        }
    }
}

impl fmt::Display for CauseStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The smallest change that reverses the outcome: all of its facts together suffice, and none can
/// be left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SmallestChange {
    /// The facts, in the order in which to change them; empty if no change of facts suffices or
    /// none was found.
    pub facts: Vec<FactChange>,
    /// The facts in words, or why there are none.
    pub text: String,
}

impl Explanation {
    /// The cause that withholds the tool; `None` for an offered tool.
    pub fn withheld_by(&self) -> Option<&Cause> {
        self.chain.iter().find(|cause| !cause.passed)
    }
}

impl Withheld {
    /// Explains an offered tool.
    pub(crate) fn why_offered(&self, tool: &Tool) -> Explanation {
        let (visibility, facts) = (self.visibility(), self.facts());
        let rival = self.hidden().iter().find_map(|hidden| match hidden {
            HiddenTool::Collision { tool: other, .. } if other.name() == tool.name() => Some(other),
            _ => None,
        });
        let text = match rival {
            Some(rival) => {
                format!(
                    "it takes precedence over the tool of the same name from {}",
                    rival.origin()
                )
            }
            None => "no other tool of its name is offered".to_owned(),
        };
        let mut chain = chain(visibility, tool, facts);
        chain.push(Cause { stage: CauseStage::Collision, passed: true, text });
        self.redacted(Explanation {
            tool: tool.name().as_str().into(),
            origin: Arc::clone(tool.shared_origin()),
            offered: true,
            chain,
            change: remedy(visibility, facts, [Goal::Withhold(tool)], tool, "withhold").change,
        })
    }

    /// Explains a tool that personality, policy or skills withhold.
    pub(crate) fn why_ruled(&self, tool: &Tool) -> Explanation {
        self.why_hidden(&HiddenTool::Rules(tool.clone()))
    }

    /// Explains a withheld tool.
    pub(super) fn why_hidden(&self, hidden: &HiddenTool) -> Explanation {
        let mut causes = Vec::new();
        let withheld_by = hidden.withheld_by();
        let stage = withheld_by.as_ref().map(|(by, _)| CauseStage::from(*by));
        if let Some(tool) = hidden.tool().filter(|_| stage != Some(CauseStage::Source)) {
            causes = chain(self.visibility(), tool, self.facts());
        }
        causes.extend(withheld_by.map(|(by, text)| Cause {
            stage: by.into(),
            passed: false,
            text,
        }));
        self.redacted(Explanation {
            tool: hidden.name().into(),
            origin: hidden.origin(),
            offered: false,
            change: self.change_that_offers(hidden, &causes),
            chain: causes,
        })
    }

    fn redacted(&self, mut why: Explanation) -> Explanation {
        let redactor = &self.visibility().redactor;
        let texts = why.chain.iter_mut().map(|cause| &mut cause.text);
        for text in texts.chain([&mut why.change.text]) {
            if let Cow::Owned(redacted) = redactor.text(text) {
                *text = redacted;
            }
        }
        why
    }

    fn change_that_offers(&self, hidden: &HiddenTool, chain: &[Cause]) -> SmallestChange {
        let (visibility, facts) = (self.visibility(), self.facts());
        let of = |tool, goals: Vec<Goal<'_>>| {
            let Remedy { mut change, further } = remedy(visibility, facts, goals, tool, "offer");
            let mut told: Vec<_> = chain.iter().map(|cause| cause.text.clone()).collect();
            // The change overcomes these rules too.
            let mut join = match change.facts.len() {
                1 => "; otherwise ",
                _ => "; less is not enough: ",
            };
            for rule in further {
                if !told.contains(&rule) {
                    change.text.push_str(join);
                    change.text.push_str(&rule);
                    told.push(rule);
                    join = ", and ";
                }
            }
            change
        };
        match hidden {
            HiddenTool::Rules(tool) => of(tool, vec![Goal::Offer(tool)]),
            HiddenTool::Collision { tool, kept } => {
                of(tool, vec![Goal::Offer(tool), Goal::Withhold(kept)])
            }
            HiddenTool::Gate(withheld_by_provider) => match &withheld_by_provider.reason {
                Reason::NeedsSkill(skill) => {
                    let tool = &withheld_by_provider.tool;
                    of(tool, vec![Goal::Latest(skill), Goal::Offer(tool)])
                }
                _ if self.is_held_by_steps(withheld_by_provider) => {
                    of(&withheld_by_provider.tool, vec![Goal::Offer(&withheld_by_provider.tool)])
                }
                _ => {
                    let tool = &withheld_by_provider.tool;
                    let is_gated = visibility.gates.withhold(tool.name(), facts) == Some(true);
                    let change = is_gated.then(|| of(tool, vec![Goal::Offer(tool)]));
                    let change = change.filter(|change| !change.facts.is_empty());
                    change.unwrap_or_else(|| self.nothing_offers(hidden, "the gate decides"))
                }
            },
            HiddenTool::Schema { .. } => self.nothing_offers(hidden, "its schema must be fixed"),
            HiddenTool::Unavailable { .. } => {
                self.nothing_offers(hidden, "the tool itself decides whether it is available")
            }
            HiddenTool::Source(_) | HiddenTool::Omitted { .. } => {
                self.nothing_offers(hidden, "its source must answer")
            }
        }
    }

    fn is_held_by_steps(&self, withheld_by_provider: &WithheldByProvider) -> bool {
        let (skills, facts) = (&self.visibility().skills, self.facts());
        let mut holding = skills.steps_that_hold(facts.skills, facts.steps);
        holding.any(|(_, steps, _)| *steps.gate() == *withheld_by_provider.gate)
    }

    /// No fact that the engine knows would offer it; further rules that deny it are listed too.
    fn nothing_offers(&self, hidden: &HiddenTool, instead: &str) -> SmallestChange {
        let (visibility, facts) = (self.visibility(), self.facts());
        let mut text = format!("no change of facts would offer it: {instead}");
        let tools = hidden.tool().into_iter();
        for (_, reason) in tools.flat_map(|tool| explain::objections(visibility, tool, facts)) {
            text.push_str("; even then, ");
            text.push_str(&reason);
        }
        SmallestChange { facts: Vec::new(), text }
    }
}

/// The decisions on a tool that its source offers, up to the first that withholds it.
fn chain(visibility: &Visibility, tool: &Tool, facts: Facts<'_>) -> Vec<Cause> {
    let text = format!("comes from {}", tool.origin_label());
    let mut chain = vec![Cause { stage: CauseStage::Source, passed: true, text }];
    for (by, objection) in explain::decisions(visibility, tool, facts) {
        let passed = objection.is_none();
        let text = objection.unwrap_or_else(|| explain::admission(by, visibility, tool, facts));
        chain.push(Cause { stage: by.into(), passed, text });
        if !passed {
            break;
        }
    }
    chain
}
