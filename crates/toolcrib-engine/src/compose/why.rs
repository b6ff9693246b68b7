//! The why-engine: for each known tool one chain of causes, and the smallest change that would turn
//! the matter round.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::Serialize;
use toolcrib_core::{HeldBack, Reason, Tool};

use super::{
    Visibility,
    change::Goal,
    explain::{self, Remedy, remedy},
    fact::FactChange,
    withheld::{Hidden, Withheld},
};
use crate::policy::Facts;

/// Why a known tool is offered, or is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Why {
    /// The tool; of a source that was left out, what its tools are called, such as `mcp__git__*`.
    pub tool: Arc<str>,
    /// Where it comes from; of a source, its path.
    pub origin: Arc<str>,
    /// Whether it is offered.
    pub offered: bool,
    /// What was asked of it, in order, up to the first that withholds it: of an offered tool, all
    /// five.
    pub chain: Vec<Cause>,
    /// The smallest change of facts that would offer a tool that is withheld, or withhold one that is
    /// offered.
    pub change: SmallestChange,
}

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cause {
    /// What was asked.
    pub stage: CauseStage,
    /// Whether the tool passed.
    pub passed: bool,
    /// By which rule, skill or gate, in words.
    pub text: String,
}

/// What decides on a tool, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CauseStage {
    /// Whether its source lists it, no gate holds it back, it is available, and its schema can be
    /// enforced.
    Source,
    /// Whether the personality reaches it.
    Personality,
    /// Whether the rule list offers it.
    Policy,
    /// Whether the active skills let it pass.
    Skill,
    /// Whether another tool has its name.
    Collision,
}

impl CauseStage {
    /// All of them, in order.
    pub const ALL: [Self; 5] =
        [Self::Source, Self::Personality, Self::Policy, Self::Skill, Self::Collision];

    /// The word as it stands in JSON.
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

impl fmt::Display for CauseStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The smallest change that turns the matter round: with all of its facts it does, with any one of
/// them left as it is it does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SmallestChange {
    /// The facts, in the order in which they are to be changed; none where no change of facts would,
    /// or none was found.
    pub facts: Vec<FactChange>,
    /// The same in words, or why there are none.
    pub text: String,
}

impl Why {
    /// What withholds the tool; `None` of one that is offered.
    pub fn withheld_by(&self) -> Option<&Cause> {
        self.chain.iter().find(|cause| !cause.passed)
    }
}

impl Withheld {
    /// Why a tool is offered that is.
    pub(crate) fn why_offered(&self, tool: &Tool) -> Why {
        let (visibility, facts) = (self.visibility(), self.facts());
        let rival = self.hidden().iter().find_map(|hidden| match hidden {
            Hidden::Collision { tool: other, .. } if other.name() == tool.name() => Some(other),
            _ => None,
        });
        let mut chain = Chain::of_listed(tool);
        chain.rules(visibility, tool, facts);
        chain.add(
            CauseStage::Collision,
            true,
            match rival {
                Some(rival) => {
                    format!("the one of its name from {} gives way to it", rival.origin())
                }
                None => "no other tool of its name is offered".to_owned(),
            },
        );
        let remedy = remedy(visibility, facts, [Goal::Withhold(tool)], tool, "withhold");
        self.redacted(Why {
            tool: tool.name().as_str().into(),
            origin: Arc::clone(tool.shared_origin()),
            offered: true,
            chain: chain.0,
            change: SmallestChange { facts: remedy.facts, text: remedy.text },
        })
    }

    /// Why a tool is withheld that is.
    pub(super) fn why_hidden(&self, hidden: &Hidden) -> Why {
        let (visibility, facts) = (self.visibility(), self.facts());
        let chain = match hidden.lost_at_the_source() {
            Some(reason) => {
                Chain(vec![Cause { stage: CauseStage::Source, passed: false, text: reason }])
            }
            None => hidden.tool().map_or_else(Chain::default, |tool| {
                let mut chain = Chain::of_listed(tool);
                chain.rules(visibility, tool, facts);
                if let Hidden::Collision { kept, .. } = hidden {
                    let text = format!(
                        "the tool of this name from {} is offered in its place",
                        kept.origin()
                    );
                    chain.add(CauseStage::Collision, false, text);
                }
                chain
            }),
        };
        self.redacted(Why {
            tool: hidden.name().into(),
            origin: hidden.origin(),
            offered: false,
            change: self.change_that_offers(hidden, &chain),
            chain: chain.0,
        })
    }

    fn redacted(&self, mut why: Why) -> Why {
        let redactor = &self.visibility().redactor;
        let texts = why.chain.iter_mut().map(|cause| &mut cause.text);
        for text in texts.chain([&mut why.change.text]) {
            if let Cow::Owned(redacted) = redactor.text(text) {
                *text = redacted;
            }
        }
        why
    }

    fn change_that_offers(&self, hidden: &Hidden, chain: &Chain) -> SmallestChange {
        let (visibility, facts) = (self.visibility(), self.facts());
        let of = |tool, goals: Vec<Goal<'_>>| {
            let Remedy { facts, further, mut text } =
                remedy(visibility, facts, goals, tool, "offer");
            let mut told: Vec<_> = chain.0.iter().map(|cause| cause.text.clone()).collect();
            // The change overcomes these rules too.
            let mut join = match facts.len() {
                1 => "; otherwise ",
                _ => "; less is not enough: ",
            };
            for rule in further {
                if !told.contains(&rule) {
                    text.push_str(join);
                    text.push_str(&rule);
                    told.push(rule);
                    join = ", and ";
                }
            }
            SmallestChange { facts, text }
        };
        match hidden {
            Hidden::Rules(tool) => of(tool, vec![Goal::Offer(tool)]),
            Hidden::Collision { tool, kept } => {
                of(tool, vec![Goal::Offer(tool), Goal::Withhold(kept)])
            }
            Hidden::Gate(held_back) => match &held_back.reason {
                Reason::NeedsSkill(skill) => {
                    let tool = &held_back.tool;
                    of(tool, vec![Goal::Latest(skill), Goal::Offer(tool)])
                }
                _ if self.is_held_by_steps(held_back) => {
                    of(&held_back.tool, vec![Goal::Offer(&held_back.tool)])
                }
                _ => self.nothing_offers(hidden, "the gate decides"),
            },
            Hidden::Schema { .. } => self.nothing_offers(hidden, "its schema must be mended"),
            Hidden::Unavailable { .. } => {
                self.nothing_offers(hidden, "the tool itself says whether it is available")
            }
            Hidden::Source(_) | Hidden::Omitted { .. } => {
                self.nothing_offers(hidden, "its source must answer")
            }
        }
    }

    fn is_held_by_steps(&self, held_back: &HeldBack) -> bool {
        let (skills, facts) = (&self.visibility().skills, self.facts());
        let mut holding = skills.steps_that_hold(facts.skills, facts.steps);
        holding.any(|(_, steps, _)| *steps.gate() == *held_back.gate)
    }

    /// No fact that the engine knows offers it; the rules that deny it as well are told all the same.
    fn nothing_offers(&self, hidden: &Hidden, instead: &str) -> SmallestChange {
        let (visibility, facts) = (self.visibility(), self.facts());
        let mut text = format!("no change of facts would offer it: {instead}");
        let objections = hidden.tool().map(|tool| explain::objections(visibility, tool, facts));
        for reason in objections.into_iter().flat_map(|objections| objections.reasons) {
            text.push_str("; even then, ");
            text.push_str(&reason);
        }
        SmallestChange { facts: Vec::new(), text }
    }
}

#[derive(Default)]
struct Chain(Vec<Cause>);

impl Chain {
    fn of_listed(tool: &Tool) -> Self {
        let text = format!("comes from {}", tool.comes_from());
        Self(vec![Cause { stage: CauseStage::Source, passed: true, text }])
    }

    /// Adds a cause, unless one before it has withheld the tool.
    fn add(&mut self, stage: CauseStage, passed: bool, text: String) {
        if self.0.iter().all(|cause| cause.passed) {
            self.0.push(Cause { stage, passed, text });
        }
    }

    fn rules(&mut self, visibility: &Visibility, tool: &Tool, facts: Facts<'_>) {
        let personality = facts.personality;
        match personality.objection(tool) {
            Some(objection) => self.add(CauseStage::Personality, false, objection.to_string()),
            None => {
                let text = format!("personality `{}` reaches it", personality.id());
                self.add(CauseStage::Personality, true, text);
            }
        }
        let ruling = visibility.judge(tool, facts);
        let text = match ruling.rule() {
            Some(_) => explain::says(&ruling),
            None => explain::default_says(visibility, tool).to_owned(),
        };
        self.add(CauseStage::Policy, ruling.offers(), text);
        match visibility.skills.objection(facts.skills, tool) {
            Some(objection) => self.add(CauseStage::Skill, false, objection.to_string()),
            None => {
                self.add(CauseStage::Skill, true, let_pass_by_skills(visibility, tool, facts));
            }
        }
    }
}

/// Why skills let a tool pass, in words.
fn let_pass_by_skills(visibility: &Visibility, tool: &Tool, facts: Facts<'_>) -> String {
    if facts.skills.is_empty() {
        return "no skill is active".to_owned();
    }
    if tool.always_include() {
        return "it is always included".to_owned();
    }
    let mut offering = visibility.skills.offering(tool);
    match offering.find(|skill| facts.skills.contains(&skill.id)) {
        Some(skill) => format!("active skill `{}` lists it", skill.id),
        None => "skills do not narrow it away".to_owned(),
    }
}
