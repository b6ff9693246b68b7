//! What personality, policy and skills have against a tool, and what would change it, in words.

use std::{fmt::Write as _, sync::Arc};

use toolcrib_core::{Effect, PolicyDefault, Ruling, Tool};

use super::{
    Visibility, WithheldBy,
    change::{Found, Goal, MOST_CHANGES, Obstacle, Search, obstacle},
    fact::FactChange,
};
use crate::policy::Facts;

/// What personality, policy and skills have against a tool.
pub(super) struct Objections {
    /// The first of them.
    pub(super) by: Option<WithheldBy>,
    pub(super) reasons: Vec<String>,
}

/// The rule that denies a tool, with its reason; `None` when policy offers it.
pub(super) fn denial(
    visibility: &Visibility,
    tool: &Tool,
    facts: Facts<'_>,
) -> Option<(Arc<str>, Option<Arc<str>>)> {
    let ruling = visibility.judge(tool, facts);
    (!ruling.offers()).then(|| (ruling.label(), ruling.reason()))
}

/// Names what withholds the tool.
pub(super) fn objections(visibility: &Visibility, tool: &Tool, facts: Facts<'_>) -> Objections {
    let ruling = visibility.judge(tool, facts);
    let by_personality = facts.personality.objection(tool).map(|objection| objection.to_string());
    let by_policy = (!ruling.offers()).then(|| says(&ruling));
    let by_skills =
        visibility.skills.objection(facts.skills, tool).map(|objection| objection.to_string());
    let found = [
        (WithheldBy::Personality, by_personality),
        (WithheldBy::Policy, by_policy),
        (WithheldBy::Skill, by_skills),
    ];
    let mut by = None;
    let mut reasons = Vec::new();
    for (who, reason) in found {
        if let Some(reason) = reason {
            by.get_or_insert(who);
            reasons.push(reason);
        }
    }
    Objections { by, reasons }
}

/// What a ruling says of a tool while its arguments are not known.
pub(super) fn says(ruling: &Ruling<'_>) -> String {
    let Some(rule) = ruling.rule() else {
        return match ruling.effect() {
            Effect::Deny => "no rule allows it, and policy_default is \"deny\"".to_owned(),
            _ => "no rule is against it".to_owned(),
        };
    };
    let label = &rule.label;
    let what = match rule.effect {
        Effect::Deny => format!("{label} denies it"),
        effect if rule.reads_arguments() => {
            format!(
                "{label} may hold for its arguments, and then has the effect `{}`",
                effect.as_str()
            )
        }
        Effect::Ask => format!("{label} offers it and has each call asked about"),
        Effect::Halt => format!("{label} offers it and ends the run at a call"),
        _ => format!("{label} allows it"),
    };
    match &rule.reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what,
    }
}

/// What the default says of a tool that no rule speaks of.
pub(super) fn default_says(visibility: &Visibility, tool: &Tool) -> &'static str {
    if tool.is_framework() {
        "no rule names it"
    } else if visibility.policy.rules.is_empty() {
        "there is no rule"
    } else {
        match visibility.policy.default {
            PolicyDefault::Allow => "no rule is against it, and policy_default is \"allow\"",
            PolicyDefault::Deny => "no rule allows it, and policy_default is \"deny\"",
        }
    }
}

/// What would change the matter.
pub(super) struct Remedy {
    /// The facts, in the order in which they are to be changed; none where that is not enough.
    pub(super) facts: Vec<FactChange>,
    /// The rules that would still deny the tool if one of the facts were left as it is.
    pub(super) further: Vec<String>,
    /// The facts in words, or that there are none.
    pub(super) text: String,
}

/// Looks for the smallest change that reaches some goals; `verb` is what is to be done with the tool.
pub(super) fn remedy<'a>(
    visibility: &'a Visibility,
    facts: Facts<'a>,
    goals: impl IntoIterator<Item = Goal<'a>>,
    tool: &'a Tool,
    verb: &str,
) -> Remedy {
    let mut search = Search::new(visibility, facts, goals);
    let nothing = |text| Remedy { facts: Vec::new(), further: Vec::new(), text };
    match search.run() {
        Found::Smallest(changes) => {
            let further = further_rules(visibility, &search, tool, &changes);
            let words: Vec<_> = changes.iter().map(|change| change.in_words(visibility)).collect();
            let text = format!("to {verb} it: {}", words.join(", and "));
            Remedy { facts: changes, further, text }
        }
        Found::Nothing => {
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
        Found::TooMany => {
            nothing(format!("only a change of more than {MOST_CHANGES} facts could {verb} it"))
        }
        Found::GaveUp => {
            nothing(format!("what would {verb} it was not found: too many facts could matter"))
        }
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
        match obstacle(visibility, tool, facts) {
            Some(Obstacle::Policy(ruling)) if search.out_of_reach(facts).is_none() => {
                Some(says(&ruling))
            }
            _ => None,
        }
    };
    changes.iter().filter_map(without).collect()
}
