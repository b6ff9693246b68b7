//! Whether a changed list of rules decides every call at least as strictly.
//!
//! The first rule that matches a call decides it. So a call is decided by an old rule and then by a new
//! one only if it matches both, and no rule above either of them. Every such pair must keep the effect
//! or make it stricter; the criterion is written down in `docs/decisions/trust.md`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

/// Conditions of which one of several values must be met.
const ANY_OF: [&str; 11] = [
    "mcp_server",
    "origin",
    "personality",
    "plugin",
    "principal",
    "role",
    "skill",
    "team",
    "tenant",
    "tool",
    "toolset",
];

/// Conditions of which a call has at most one value, so that rules without a common one exclude each other.
const ONE_VALUE: [&str; 8] =
    ["mcp_server", "origin", "personality", "plugin", "principal", "tenant", "tool", "toolset"];

/// Conditions that are true or false of a call.
const FLAGS: [&str; 2] = ["listed_by_active_skill", "tainted"];

/// A rule as it is written: its list conditions as sorted lists, and without the texts of
/// [`TEXTS`].
pub(crate) fn normalized(rule: &Json) -> Json {
    let Json::Object(rule) = rule else { return rule.clone() };
    let entry = |(key, value): (&String, &Json)| {
        if TEXTS.contains(&key.as_str()) && value.is_string() {
            return None;
        }
        let value = match value {
            Json::String(_) if ANY_OF.contains(&key.as_str()) => Json::Array(vec![value.clone()]),
            Json::Array(items) if ANY_OF.contains(&key.as_str()) => {
                let mut items = items.clone();
                items.sort_by_key(Json::to_string);
                items.dedup();
                Json::Array(items)
            }
            value => value.clone(),
        };
        Some((key.clone(), value))
    };
    let entries: BTreeMap<_, _> = rule.iter().filter_map(entry).collect();
    Json::Object(entries.into_iter().collect())
}

/// The texts of a rule, for the operator and the model.
const TEXTS: [&str; 2] = ["reason", "model_message"];

/// A rule, or the default, which is the last one of its list.
struct Judged<'a> {
    effect: Strictness,
    /// `None` for the default.
    rule: Option<&'a Map<String, Json>>,
}

/// An effect by how strict it is. A denial and a halt are not comparable: one leaves the run going,
/// the other shows the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    Allow,
    Ask,
    Deny,
    Halt,
}

impl Strictness {
    fn of(effect: &str) -> Option<Self> {
        Some(match effect {
            "allow" => Self::Allow,
            "ask" => Self::Ask,
            "deny" => Self::Deny,
            "halt" => Self::Halt,
            _ => return None,
        })
    }

    fn is_at_least(self, other: Self) -> bool {
        self == other
            || match other {
                Self::Allow => true,
                Self::Ask => matches!(self, Self::Deny | Self::Halt),
                Self::Deny | Self::Halt => false,
            }
    }
}

/// Whether each call is decided at least as strictly by the second list as by the first. `false` also
/// where that is not known. Both are lists of [`normalized`] rules, with the default effect.
pub(super) fn are_as_strict(
    (before, default_before): (&[Json], &str),
    (after, default_after): (&[Json], &str),
) -> bool {
    let (Some(before), Some(after)) =
        (judged(before, default_before), judged(after, default_after))
    else {
        return false;
    };
    before.iter().enumerate().all(|(old_at, old)| {
        after.iter().enumerate().all(|(new_at, new)| {
            let mut above = before.iter().take(old_at).chain(after.iter().take(new_at));
            is_as_strict(old, new)
                || excludes(old, new)
                || above.any(|rule| covers(rule, old) || covers(rule, new))
        })
    })
}

fn judged<'a>(rules: &'a [Json], default: &str) -> Option<Vec<Judged<'a>>> {
    let rule = |rule: &'a Json| {
        let rule = rule.as_object()?;
        let effect = Strictness::of(rule.get("effect")?.as_str()?)?;
        Some(Judged { effect, rule: Some(rule) })
    };
    let default = Strictness::of(default).map(|effect| Judged { effect, rule: None });
    rules.iter().map(rule).chain([default]).collect()
}

/// Whether a call that the old rule decided is decided at least as strictly by the new one.
fn is_as_strict(old: &Judged<'_>, new: &Judged<'_>) -> bool {
    // The default does not apply to the program's own tools, which only a name can match.
    let allows_own = new.rule.is_none() && old.rule.is_some_and(names_a_tool);
    let effect = if allows_own { Strictness::Allow } else { new.effect };
    let keeps = effect.is_at_least(old.effect);
    if old.rule.is_some() && same_conditions(old, new) {
        return keeps;
    }
    // A condition on arguments that cannot be evaluated denies the call, whatever the rule's effect.
    keeps
        && (!reads_arguments(old) || effect.is_at_least(Strictness::Deny))
        && (!reads_arguments(new) || Strictness::Deny.is_at_least(old.effect))
}

fn reads_arguments(judged: &Judged<'_>) -> bool {
    judged.rule.is_some_and(|rule| rule.contains_key("args"))
}

/// Whether a rule names a tool in full.
fn names_a_tool(rule: &Map<String, Json>) -> bool {
    let names = rule.get("tool").and_then(Json::as_array);
    names.into_iter().flatten().any(is_literal)
}

/// Whether two values are equal, with their keys in the same order: of several conditions on arguments,
/// the first that is false or cannot be evaluated decides.
pub(super) fn is_same(one: &Json, other: &Json) -> bool {
    let (one, other) = (one.to_string(), other.to_string());
    one == other
}

fn is_literal(pattern: &Json) -> bool {
    pattern.as_str().is_some_and(|pattern| !pattern.contains(['*', '?']))
}

/// Whether two rules are evaluated alike for every call. Conditions on the items of a list are evaluated
/// for each item by a rule that allows, and for any item by the others.
fn same_conditions(one: &Judged<'_>, other: &Judged<'_>) -> bool {
    let (Some(first), Some(second)) = (one.rule, other.rule) else { return false };
    let conditions = |rule: &Map<String, Json>| {
        let others = rule.iter().filter(|(key, _)| *key != "effect");
        Json::Object(others.map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    let allow = |judged: &Judged<'_>| judged.effect == Strictness::Allow;
    let reads = first.contains_key("args");
    is_same(&conditions(first), &conditions(second)) && (!reads || allow(one) == allow(other))
}

/// Whether no call matches both.
fn excludes(one: &Judged<'_>, other: &Judged<'_>) -> bool {
    let (Some(one), Some(other)) = (one.rule, other.rule) else { return false };
    let lists = |key: &&str| {
        let values = |rule: &Map<String, Json>| -> Option<Vec<Json>> {
            let values = rule.get(*key)?.as_array()?;
            // A tool of an MCP server can have two names that rules match.
            let is_one = |value: &Json| {
                is_literal(value) && !value.as_str().is_some_and(|name| name.starts_with("mcp__"))
            };
            (!values.is_empty() && values.iter().all(is_one)).then(|| values.clone())
        };
        let both = values(one).zip(values(other));
        both.is_some_and(|(one, other)| !one.iter().any(|value| other.contains(value)))
    };
    let contradict = |one: Option<&Json>, other: Option<&Json>| {
        let both = one.and_then(Json::as_bool).zip(other.and_then(Json::as_bool));
        both.is_some_and(|(one, other)| one != other)
    };
    let annotation = |rule: &Map<String, Json>| match rule.get("annotation") {
        Some(Json::Object(wanted)) => wanted.clone(),
        _ => Map::new(),
    };
    let (of_one, of_other) = (annotation(one), annotation(other));
    ONE_VALUE.iter().any(lists)
        || FLAGS.iter().any(|key| contradict(one.get(*key), other.get(*key)))
        || of_one.keys().any(|key| contradict(of_one.get(key), of_other.get(key)))
}

/// Whether the first decides every call that the second would decide.
fn covers(one: &Judged<'_>, other: &Judged<'_>) -> bool {
    let Some(rule) = one.rule else { return false };
    let nothing = Map::new();
    let of_other = other.rule.unwrap_or(&nothing);
    let allow = |judged: &Judged<'_>| judged.effect == Strictness::Allow;
    let conditions = rule.iter().all(|(key, wanted)| match key.as_str() {
        "effect" => true,
        "args" => {
            of_other.get(key).is_some_and(|stated| is_same(stated, wanted))
                && allow(one) == allow(other)
        }
        key => {
            let Some(stated) = of_other.get(key) else { return false };
            let includes = |wanted: &Vec<Json>, stated: &Vec<Json>| {
                stated.iter().all(|value| wanted.contains(value))
            };
            stated == wanted
                || ANY_OF.contains(&key)
                    && wanted
                        .as_array()
                        .zip(stated.as_array())
                        .is_some_and(|(wanted, stated)| includes(wanted, stated))
        }
    });
    // A rule without names does not apply to the program's own tools.
    conditions && (rule.contains_key("tool") || other.rule.is_some_and(|rule| !names_a_tool(rule)))
}
