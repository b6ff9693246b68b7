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
        let is_text =
            |key: &str, value: &Json| TEXTS.contains(&key) && (value.is_string() || !keep);
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
    let depends =
        |schema: &Map<String, Json>| UNEVALUATED.iter().any(|key| schema.contains_key(*key));
    if depends(before) || depends(after) {
        return false;
    }
    let mut keys = before.keys().chain(after.keys().filter(|key| !before.contains_key(*key)));
    keys.all(|key| match (key.as_str(), before.get(key), after.get(key)) {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use toolcrib_core::__internal::CompiledSchema;

    use super::*;

    fn number() -> impl Strategy<Value = Json> {
        prop_oneof![(-2_i64..4).prop_map(Json::from), Just(json!(1.5)), Just(json!(i64::MAX))]
    }

    fn count() -> impl Strategy<Value = Json> {
        (0_u32..4).prop_map(Json::from)
    }

    fn value() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            number(),
            "[ab]{0,3}".prop_map(Json::from),
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
                prop::collection::hash_map("[abc]", inner, 0..3)
                    .prop_map(|entries| Json::Object(entries.into_iter().collect())),
            ]
        })
    }

    fn types() -> impl Strategy<Value = Json> {
        let names = ["integer", "number", "string", "array", "object", "boolean", "null"];
        let one = prop::sample::select(names.to_vec());
        prop_oneof![
            one.clone().prop_map(Json::from),
            prop::collection::hash_set(one, 1..3)
                .prop_map(|types| types.into_iter().collect::<Vec<_>>().into()),
        ]
    }

    fn keyword(inner: &BoxedStrategy<Json>) -> impl Strategy<Value = (String, Json)> + use<> {
        let named = prop::collection::hash_map("[abc]", inner.clone(), 0..3)
            .prop_map(|entries| Json::Object(entries.into_iter().collect()));
        let names = prop::collection::hash_set("[abc]", 0..3);
        let values = prop::collection::vec(value(), 1..4);
        let of = |key: &'static str, value: BoxedStrategy<Json>| {
            value.prop_map(move |value| (key.to_owned(), value)).boxed()
        };
        let mut all = vec![
            of("type", types().boxed()),
            of("enum", values.prop_map(Json::from).boxed()),
            of("const", value().boxed()),
            of("required", names.prop_map(|it| it.into_iter().collect::<Vec<_>>().into()).boxed()),
            of("properties", named.clone().boxed()),
            of("patternProperties", named.boxed()),
            of("pattern", Just(json!("^a")).boxed()),
            of("multipleOf", Just(json!(2)).boxed()),
            of("uniqueItems", any::<bool>().prop_map(Json::from).boxed()),
            of("description", "[ab]{1}".prop_map(Json::from).boxed()),
            of("default", number().boxed()),
            of("anyOf", prop::collection::vec(inner.clone(), 1..3).prop_map(Json::from).boxed()),
            of(
                "prefixItems",
                prop::collection::vec(inner.clone(), 1..3).prop_map(Json::from).boxed(),
            ),
        ];
        for key in ["maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum"] {
            all.push(of(key, number().boxed()));
        }
        let counts =
            ["maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"];
        for key in counts {
            all.push(of(key, count().boxed()));
        }
        let schemas = [
            "items",
            "additionalProperties",
            "unevaluatedProperties",
            "not",
            "contains",
            "propertyNames",
        ];
        for key in schemas {
            all.push(of(key, inner.clone()));
        }
        prop::strategy::Union::new(all)
    }

    fn schema() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(json!({})),
            any::<bool>().prop_map(Json::from),
            types().prop_map(|types| json!({ "type": types })),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop::collection::vec(keyword(&inner.boxed()), 0..4)
                .prop_map(|entries| Json::Object(entries.into_iter().collect()))
        })
    }

    /// One change at some depth: a keyword is set, or removed.
    fn changed(schema: &Json, path: &[usize], (key, new): &(String, Json), removes: bool) -> Json {
        let Json::Object(keywords) = schema else { return json!({ key.clone(): new }) };
        let mut keywords = keywords.clone();
        if let Some((first, rest)) = path.split_first()
            && !keywords.is_empty()
        {
            let at = first % keywords.len();
            let inside = keywords.iter_mut().nth(at).map(|(key, value)| (key.clone(), value));
            if let Some((name, inside)) = inside {
                match (subschemas(&name), inside) {
                    (Some(Subschemas::One), one) => {
                        *one = changed(one, rest, &(key.clone(), new.clone()), removes);
                        return Json::Object(keywords);
                    }
                    (Some(Subschemas::Named), Json::Object(named)) if !named.is_empty() => {
                        let at = first % named.len();
                        for one in named.values_mut().skip(at).take(1) {
                            *one = changed(one, rest, &(key.clone(), new.clone()), removes);
                        }
                        return Json::Object(keywords);
                    }
                    _ => {}
                }
            }
        }
        match removes {
            true => drop(keywords.shift_remove(key)),
            false => drop(keywords.insert(key.clone(), new.clone())),
        }
        Json::Object(keywords)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn a_schema_that_needs_no_consent_permits_no_new_value(
            before in schema(),
            path in prop::collection::vec(0_usize..4, 0..3),
            edit in keyword(&schema().boxed()),
            removes in any::<bool>(),
            values in prop::collection::vec(value(), 30),
        ) {
            let after = changed(&before, &path, &edit, removes);
            prop_assume!(permits_no_more(&before, &after));
            let (Ok(old), Ok(new)) = (CompiledSchema::new(&before), CompiledSchema::new(&after))
            else { return Ok(()) };
            for value in values {
                let is_new = new.fits_at_once(&value) && !old.fits_at_once(&value);
                prop_assert!(!is_new, "{value} of {before} by {after}");
            }
        }
    }

    #[test]
    fn narrower_schemas_need_no_consent_and_others_do() {
        let order = json!({
            "type": "object",
            "properties": {
                "id": { "type": "integer", "minimum": 1, "description": "Which." },
                "note": { "type": ["string", "null"] },
                "tags": { "type": "array", "items": { "enum": ["a", "b", "c"] } },
            },
            "required": ["id"],
            "additionalProperties": false,
        });
        let with = |pointer: &str, value: Json| {
            let mut schema = order.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = schema.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            match value {
                Json::Null => drop(parent.shift_remove(key)),
                value => drop(parent.insert(key.to_owned(), value)),
            }
            schema
        };
        for (pointer, value) in [
            ("/properties/id/description", json!("Another.")),
            ("/properties/id/examples", json!([3])),
            ("/properties/id/maximum", json!(9)),
            ("/properties/id/minimum", json!(2)),
            ("/properties/note/type", json!("string")),
            ("/properties/note/maxLength", json!(80)),
            ("/properties/tags/items/enum", json!(["c", "a"])),
            ("/properties/tags/maxItems", json!(2)),
            ("/properties/tags", Json::Null),
            ("/required", json!(["note", "id"])),
        ] {
            assert!(permits_no_more(&order, &with(pointer, value)), "{pointer}");
        }
        for (pointer, value) in [
            ("/properties/id/minimum", json!(0)),
            ("/properties/id/minimum", Json::Null),
            ("/properties/id/type", json!("number")),
            ("/properties/id/default", json!(1)),
            ("/properties/note/type", Json::Null),
            ("/properties/tags/items/enum", json!(["a", "d"])),
            ("/properties/more", json!({ "type": "integer" })),
            ("/required", json!([])),
            ("/additionalProperties", json!(true)),
            ("/additionalProperties", Json::Null),
            ("/x-new", json!(1)),
            ("/not", json!({ "required": ["note"] })),
        ] {
            assert!(!permits_no_more(&order, &with(pointer, value)), "{pointer}");
        }
        let by_reference = |limit: u32| {
            json!({
                "properties": { "a": { "maximum": limit } },
                "not": { "required": ["b"], "properties": { "b": { "$ref": "#/properties/a" } } },
            })
        };
        assert!(!permits_no_more(&by_reference(5), &by_reference(4)));
    }
}
