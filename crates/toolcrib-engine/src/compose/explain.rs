//! The objections of personality, policy and skills to a tool, and the change that removes them, in
//! words.

use std::fmt::Write as _;

use toolcrib_core::{Effect, RuleMatch, Tool, WithheldBy};

use super::{
    Visibility,
    change::{Goal, MOST_CHANGES, Obstacle, Search, SearchResult, UnreachableSkill, obstacle},
    fact::FactChange,
    why::SmallestChange,
};
use crate::policy::facts::Facts;

/// The decisions of personality, policy and skills on a tool, in order: the objection of each, if
/// it has one.
pub(super) fn decisions(
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> [(WithheldBy, Option<String>); 3] {
    let ruling = visibility.judge(tool, facts);
    let by_personality = facts.personality.objection(tool).map(|objection| objection.to_string());
    let by_skills =
        visibility.skills.objection(facts.skills, tool).map(|objection| objection.to_string());
    [
        (WithheldBy::Personality, by_personality),
        (WithheldBy::Policy, (!ruling.offers()).then(|| says(&ruling))),
        (WithheldBy::Skill, by_skills),
    ]
}

/// The objections among the [`decisions`].
pub(super) fn objections(
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> impl Iterator<Item = (WithheldBy, String)> {
    let decisions = decisions(visibility, tool, facts).into_iter();
    decisions.filter_map(|(by, objection)| Some((by, objection?)))
}

/// Describes a policy decision on a tool whose arguments are not known.
pub(super) fn says(ruling: &RuleMatch<'_>) -> String {
    let Some(rule) = ruling.rule() else {
        return match ruling.effect() {
            Effect::Deny => "no rule allows it, and policy_default is \"deny\"".to_owned(),
            _ => "no rule denies it".to_owned(),
        };
    };
    let label = &rule.label;
    let what = match rule.effect {
        Effect::Deny => format!("{label} denies it"),
        effect if rule.reads_arguments() => {
            format!(
                "{label} may match its arguments, and then has the effect `{}`",
                effect.as_str()
            )
        }
        Effect::Ask => format!("{label} offers it and requires approval of each call"),
        Effect::Halt => format!("{label} offers it and ends the run at a call"),
        _ => format!("{label} allows it"),
    };
    match &rule.reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what,
    }
}

/// Why one of the [`decisions`] admits a tool, in words.
pub(super) fn admission(
    by: WithheldBy,
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> String {
    match by {
        WithheldBy::Personality => format!("personality `{}` reaches it", facts.personality.id),
        WithheldBy::Policy => {
            let ruling = visibility.judge(tool, facts);
            match ruling.rule() {
                Some(_) => says(&ruling),
                None if tool.is_framework() => "no rule names it".to_owned(),
                None if visibility.policy.rules.is_empty() => "there is no rule".to_owned(),
                None => "no rule denies it, and policy_default is \"allow\"".to_owned(),
            }
        }
        _ if facts.skills.is_empty() => "no skill is active".to_owned(),
        _ if tool.always_include() => "it is always included".to_owned(),
        _ => {
            let mut offering = visibility.skills.offering(tool);
            match offering.find(|skill| facts.skills.contains(&skill.id)) {
                Some(skill) => format!("active skill `{}` lists it", skill.id),
                None => "no active skill withholds it".to_owned(),
            }
        }
    }
}

/// The change that would reverse the outcome.
pub(super) struct Remedy {
    pub(super) change: SmallestChange,
    /// The rules that would still deny the tool if one of the facts were left as it is.
    pub(super) further: Vec<String>,
}

/// Finds the smallest change that reaches some goals; `verb` is the intended outcome for the tool.
pub(super) fn remedy<'a>(
    visibility: &'a Visibility,
    facts: Facts<'a>,
    goals: impl IntoIterator<Item = Goal<'a>>,
    tool: &'a Tool,
    verb: &str,
) -> Remedy {
    let mut search = Search::new(visibility, facts, goals);
    let nothing = |text| {
        let change = SmallestChange { facts: Vec::new(), text };
        Remedy { change, further: Vec::new() }
    };
    match search.run() {
        SearchResult::Smallest(changes) => {
            let further = further_rules(visibility, &search, tool, &changes);
            let words: Vec<_> = changes.iter().map(|change| change.in_words(visibility)).collect();
            let text = format!("to {verb} it: {}", words.join(", and "));
            Remedy { change: SmallestChange { facts: changes, text }, further }
        }
        SearchResult::Nothing => {
            let mut text = format!(
                "no skill, personality, principal, role, tenant or iteration would {verb} it"
            );
            for skill in visibility.skills.iter() {
                let mut steps = skill.all_steps().iter();
                if let Some(before @ 1..) = steps.position(|step| step.tool == *tool.name()) {
                    let (id, number) = (&skill.id, before + 1);
                    let _ = write!(text, "; in skill `{id}` it is the tool of step {number}");
                }
            }
            nothing(text)
        }
        SearchResult::TooMany => {
            nothing(format!("only a change of more than {MOST_CHANGES} facts could {verb} it"))
        }
        SearchResult::TooManyFacts => nothing(format!(
            "no change that would {verb} it was found: too many facts could matter"
        )),
    }
}

/// The rules that would still deny the tool if one of the changes were left out.
fn further_rules(
    visibility: &Visibility,
    search: &Search<'_>,
    tool: &Tool,
    changes: &[FactChange],
) -> Vec<String> {
    let without = |left_out: &FactChange| {
        let others = changes.iter().filter(|change| *change != left_out);
        let supposed = search.supposed(others);
        let facts = supposed.facts();
        match search.impossible(facts) {
            None => match obstacle(visibility, tool, facts)? {
                Obstacle::Policy(ruling) => Some(says(&ruling)),
                _ => None,
            },
            Some(UnreachableSkill::Refused(skill, before)) => {
                search.says_of_activation(skill, before)
            }
            Some(UnreachableSkill::OutOfReach(_)) => None,
        }
    };
    changes.iter().filter_map(without).collect()
}
