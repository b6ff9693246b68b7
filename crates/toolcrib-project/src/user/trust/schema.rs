//! Whether a changed schema permits no value that the former one refused.

use serde_json::{Map, Value as Json};
use toolcrib_core::__internal::{Subschemas, subschemas};

/// Keywords that validate nothing.
const TEXTS: [&str; 4] = ["title", "description", "examples", "$comment"];

/// Keywords that refer to a part of a schema, which then applies elsewhere too.
const REFERENCES: [&str; 9] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "$id",
    "id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$defs",
];

/// Keywords that depend on what the others have evaluated.
const UNEVALUATED: [&str; 2] = ["unevaluatedItems", "unevaluatedProperties"];

/// Constraints on the value itself: adding one permits less.
const CONSTRAINTS: [&str; 15] = [
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
];

const UPPER: [&str; 5] = ["exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"];
const LOWER: [&str; 5] = ["exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"];

/// The largest integer up to which all have an exact `f64`.
const EXACT: u64 = 1 << 53;

/// Whether every value that the second schema permits is permitted by the first. `false` also where that
/// is not known.
pub(super) fn permits_no_more(before: &Json, after: &Json) -> bool {
    let (plain_before, plain_after) = (without_texts(before), without_texts(after));
    if plain_before == plain_after {
        return true;
    }
    // A reference applies a part in another place, where less may permit more, as below `not`.
    !has_reference(before) && !has_reference(after) && narrows(&plain_before, &plain_after)
}

/// The schema without the keywords that validate nothing. A reference may lead into such a keyword
/// unless its value is a text.
pub(super) fn without_texts(schema: &Json) -> Json {
    fn stripped(schema: &Json, keep: bool) -> Json {
        let Json::Object(keywords) = schema else { return schema.clone() };
        let is_text = |key: &str, value: &Json| TEXTS.contains(&key) && (value.is_string() || !keep);
        let kept = keywords.iter().filter(|(key, value)| !is_text(key, value));
        let entry = |(key, value): (&String, &Json)| {
            let value = match (subschemas(key), value) {
                (Some(Subschemas::One), value) => stripped(value, keep),
                (Some(Subschemas::List), Json::Array(all)) => {
                    Json::Array(all.iter().map(|one| stripped(one, keep)).collect())
                }
                (Some(Subschemas::Named), Json::Object(all)) => {
                    let named = all.iter().map(|(name, one)| (name.clone(), stripped(one, keep)));
                    Json::Object(named.collect())
                }
                (_, value) => value.clone(),
            };
            (key.clone(), value)
        };
        Json::Object(kept.map(entry).collect())
    }
    stripped(schema, has_reference(schema))
}

fn has_reference(value: &Json) -> bool {
    match value {
        Json::Object(entries) => entries.iter().any(|(key, value)| {
            REFERENCES.contains(&key.as_str()) && !value.is_object() || has_reference(value)
        }),
        Json::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

fn narrows(before: &Json, after: &Json) -> bool {
    let nothing = Map::new();
    let (before, after) = match (before, after) {
        (_, Json::Bool(false)) => return true,
        (Json::Bool(true), Json::Object(after)) => (&nothing, after),
        (Json::Object(before), Json::Bool(true)) => (before, &nothing),
        (Json::Object(before), Json::Object(after)) => (before, after),
        _ => return before == after,
    };
    if before == after {
        return true;
    }
    let depends = |schema: &Map<String, Json>| UNEVALUATED.iter().any(|key| schema.contains_key(*key));
    if depends(before) || depends(after) {
        return false;
    }
    let keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    keys.into_iter().all(|key| match (key.as_str(), before.get(key), after.get(key)) {
        (_, old, new) if old == new => true,
        ("properties" | "additionalProperties", ..) => properties_narrow(before, after),
        ("items", old, Some(new)) if old.is_none_or(|old| !old.is_array()) => {
            narrows(old.unwrap_or(&Json::Bool(true)), new)
        }
        ("type", None, Some(_)) => true,
        ("type", Some(old), Some(new)) => types_narrow(old, new),
        ("enum", Some(old), Some(new)) => is_subset(new, old),
        ("required", Some(old), Some(new)) => is_subset(old, new),
        ("uniqueItems", None, Some(_)) => true,
        (key, None, Some(_)) => CONSTRAINTS.contains(&key),
        (key, Some(old), Some(new)) if UPPER.contains(&key) => is_at_most(new, old),
        (key, Some(old), Some(new)) if LOWER.contains(&key) => is_at_most(old, new),
        _ => false,
    })
}

/// `properties` and `additionalProperties` together: a property is described by one of them.
fn properties_narrow(before: &Map<String, Json>, after: &Map<String, Json>) -> bool {
    let anything = Json::Bool(true);
    let others = |schema: &Map<String, Json>| {
        schema.get("additionalProperties").unwrap_or(&anything).clone()
    };
    let (old_others, new_others) = (others(before), others(after));
    let nothing = Map::new();
    let named = |schema: &Map<String, Json>| match schema.get("properties") {
        Some(Json::Object(named)) => named.clone(),
        _ => nothing.clone(),
    };
    let (old, new) = (named(before), named(after));
    let has_patterns = |schema: &Map<String, Json>| schema.contains_key("patternProperties");
    if has_patterns(before) || has_patterns(after) {
        return old.keys().eq(new.keys())
            && old_others == new_others
            && old.iter().zip(new.values()).all(|((_, old), new)| narrows(old, new));
    }
    narrows(&old_others, &new_others)
        && old.iter().all(|(name, old)| narrows(old, new.get(name).unwrap_or(&new_others)))
        && new.iter().all(|(name, new)| narrows(old.get(name).unwrap_or(&old_others), new))
}

fn types_narrow(old: &Json, new: &Json) -> bool {
    let list = |types: &Json| match types {
        Json::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let old = list(old);
    let is_old = |one: &Json| {
        old.contains(one) || *one == "integer" && old.iter().any(|old| *old == "number")
    };
    list(new).iter().all(is_old)
}

fn is_subset(part: &Json, whole: &Json) -> bool {
    let both = part.as_array().zip(whole.as_array());
    both.is_some_and(|(part, whole)| part.iter().all(|value| whole.contains(value)))
}

/// Whether one number is at most another; `false` for numbers that cannot be compared exactly.
fn is_at_most(one: &Json, other: &Json) -> bool {
    let number = |value: &Json| {
        let is_exact = match value.as_i64() {
            Some(integer) => integer.unsigned_abs() <= EXACT,
            None => value.as_u64().is_none(),
        };
        value.as_f64().filter(|_| is_exact)
    };
    number(one).zip(number(other)).is_some_and(|(one, other)| one <= other)
}
