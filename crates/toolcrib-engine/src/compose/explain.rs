//! Why skills and policy withhold a tool, in words.

use std::sync::Arc;

use toolcrib_core::Tool;

use super::{
    Visibility, WithheldBy,
    change::{Change, Found, MOST_CHANGES, Obstacle, Search, Supposed, obstacle},
};
use crate::policy::{Facts, Ruling, judge};

/// What skills and policy have against a tool.
pub(super) struct Explanation {
    pub(super) by: Option<WithheldBy>,
    pub(super) reasons: Vec<String>,
}

/// The rule that denies a tool, with its reason; `None` when policy offers it.
pub(super) fn denial(
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> Option<(Arc<str>, Option<Arc<str>>)> {
    let ruling = judge(&visibility.policy, &visibility.skills, tool, facts);
    (!ruling.offers()).then(|| (ruling.label(), ruling.reason()))
}

/// Names what withholds the tool, and every fact that must change for it to be offered.
pub(super) fn explain(visibility: &Visibility, tool: &Tool, facts: Facts<'_>) -> Explanation {
    let mut explanation = withheld_by(visibility, tool, facts);
    if explanation.by.is_some() {
        say_what_offers_it(&mut explanation.reasons, visibility, tool, facts);
    }
    explanation
}

/// Names what withholds the tool.
pub(super) fn withheld_by(visibility: &Visibility, tool: &Tool, facts: Facts<'_>) -> Explanation {
    let ruling = judge(&visibility.policy, &visibility.skills, tool, facts);
    let admitted = visibility.skills.admit(facts.skills, tool);
    let by = if !ruling.offers() {
        WithheldBy::Policy
    } else if !admitted {
        WithheldBy::Skill
    } else {
        return Explanation { by: None, reasons: Vec::new() };
    };
    let mut reasons = Vec::new();
    if !ruling.offers() {
        reasons.push(denies(&ruling));
    }
    if !admitted {
        let active: Vec<_> = facts.skills.iter().map(|skill| format!("`{skill}`")).collect();
        reasons.push(format!("no active skill lists it (active: {})", active.join(", ")));
    }
    Explanation { by: Some(by), reasons }
}

/// Adds every fact that must change for the tool to be offered, and the rules that stand behind
/// them.
fn say_what_offers_it(
    reasons: &mut Vec<String>,
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) {
    match Search::new(visibility, tool, facts).run() {
        Found::Smallest(changes) => {
            for further in further_rules(visibility, tool, facts, &changes) {
                if !reasons.contains(&further) {
                    reasons.push(further);
                }
            }
            let words: Vec<_> = changes.iter().map(|change| change.in_words(visibility)).collect();
            reasons.push(format!("to offer it: {}", words.join(", and ")));
        }
        Found::Nothing => reasons.push("no other skill, role or tenant offers it".to_owned()),
        Found::TooMany => reasons.push(format!(
            "only a change of more than {MOST_CHANGES} skills, roles and tenants could offer it"
        )),
        Found::GaveUp => reasons.push(
            "what would offer it was not found: too many skills, roles and tenants could matter"
                .to_owned(),
        ),
    }
}

/// The rules that would still deny the tool if one of the changes were left out.
fn further_rules(
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
    changes: &[Change],
) -> Vec<String> {
    let without = |left_out: &Change| {
        let others = changes.iter().filter(move |change| *change != left_out);
        let supposed = Supposed::after(facts, others);
        match obstacle(visibility, tool, supposed.facts()) {
            Some(Obstacle::Policy(ruling)) => Some(denies(&ruling)),
            _ => None,
        }
    };
    changes.iter().filter_map(without).collect()
}

fn denies(ruling: &Ruling<'_>) -> String {
    match ruling {
        Ruling::Rule(rule) => match &rule.reason {
            Some(reason) => format!("{} denies it: {reason}", rule.label),
            None => format!("{} denies it", rule.label),
        },
        Ruling::Default(_) => "no rule allows it, and policy_default is \"deny\"".to_owned(),
    }
}
