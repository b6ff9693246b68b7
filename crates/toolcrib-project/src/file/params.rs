//! `[tool.params]`: JSON Schemas of the parameters, written in TOML.

use serde_json::{Map, Value as Json, json};
use toolcrib_config::{Diagnostic, Spot, Value, pointer_step, suggest};
use toolcrib_core::__internal::{Subschemas, subschemas};

use super::schema::{TYPES, check_schema};

/// The keywords of JSON Schema 2020-12 for parameters.
const KEYWORDS: &[&str] = &[
    "type",
    "description",
    "enum",
    "const",
    "default",
    "examples",
    "title",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
    "deprecated",
    "$comment",
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
    "allOf",
    "anyOf",
    "oneOf",
    "prefixItems",
    "properties",
    "patternProperties",
    "dependentSchemas",
];

/// Reads the table of a tool's parameters, as the schema of its arguments; `None` if no valid schema
/// remains.
pub(crate) fn read(value: &Value<'_>) -> Option<Json> {
    let table = value.entries("`[tool.params]`")?;
    let places = table.places();
    let (mut properties, mut required, mut sound) = (Map::new(), Vec::new(), true);
    for (name, param) in table.rest() {
        if is_secret(&param) {
            param.refuse(
                "this looks like a secret, but a parameter is a schema",
                format!("it belongs below [secrets]: {} = {{ env = \"VARIABLE\" }}", name.value),
            );
            sound = false;
            continue;
        }
        let mut optional = false;
        let read = schema(&param, Some(&mut optional)).filter(|schema| {
            // Each is checked separately, so that an error in one does not hide errors in another.
            let found = check_schema(schema);
            for problem in &found {
                let pointer = format!("/{}{}", pointer_step(&name.value), problem.pointer);
                let place = places.value(&pointer).cloned().unwrap_or_else(|| param.at());
                value.problems().push(Diagnostic::error(&place, problem.message.as_str()));
            }
            found.is_empty()
        });
        match read {
            Some(schema) => drop(properties.insert(name.value.to_string(), schema)),
            None => sound = false,
        }
        if !optional {
            required.push(name.value.to_string());
        }
    }
    sound.then(|| {
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    })
}

/// Reads one schema. A parameter's `optional` is written to the given place; nested schemas have
/// none. `None` if a part was refused, which is recorded.
fn schema(value: &Value<'_>, mut optional: Option<&mut bool>) -> Option<Json> {
    if !value.is_table() {
        let help = "write it as { type = \"integer\", description = \"…\" }";
        value.refuse("a schema was expected", help);
        return None;
    }
    let (mut schema, mut sound) = (Map::new(), true);
    for (key, value) in value.entries("a schema")?.rest() {
        if let ("optional", Some(optional)) = (&*key.value, optional.as_deref_mut()) {
            let stated = value.boolean();
            sound &= stated.is_some();
            *optional = stated.is_some_and(|stated| stated.value);
            continue;
        }
        match keyword(&key.value, &key.at, &value) {
            Some(json) => drop(schema.insert(key.value.to_string(), json)),
            None => sound = false,
        }
    }
    sound.then_some(Json::Object(schema))
}

fn keyword(keyword: &str, at: &Spot, value: &Value<'_>) -> Option<Json> {
    let is_known = KEYWORDS.contains(&keyword);
    match subschemas(keyword).filter(|_| is_known) {
        // Schemas can also be `true` or `false`.
        Some(Subschemas::One) if value.is_table() => schema(value, None),
        Some(Subschemas::List) => {
            let schemas: Vec<_> = value.items()?.iter().map(|item| schema(item, None)).collect();
            schemas.into_iter().collect::<Option<Vec<_>>>().map(Json::Array)
        }
        Some(Subschemas::Named) => {
            let table = value.entries(keyword)?;
            let schemas: Vec<_> = table
                .rest()
                .map(|(name, one)| Some((name.value.to_string(), schema(&one, None)?)))
                .collect();
            schemas.into_iter().collect::<Option<Map<_, _>>>().map(Json::Object)
        }
        _ if is_known => plain(keyword, value),
        // A prefix for extension keywords, which validators ignore.
        _ if keyword.starts_with("x-") => value.json(),
        _ => {
            let help = if keyword == "optional" {
                "only a parameter itself can have `optional`; inside it, list the required \
                 properties in `required`"
                    .to_owned()
            } else {
                let known = KEYWORDS.iter().copied().chain(["optional"]);
                suggest::help(keyword, "keywords of a schema", known)
            };
            let message = format!("unknown keyword `{keyword}` in a schema");
            value.problems().push(Diagnostic::error(at, message).help(help));
            None
        }
    }
}

/// Whether a parameter is written like a secret: with the source of a value, and no part of a
/// schema. The value itself may be written there, so no part of it is repeated.
fn is_secret(value: &Value<'_>) -> bool {
    let Some(table) = value.is_table().then(|| value.entries("a secret")).flatten() else {
        return false;
    };
    table.has("env") && !table.rest().any(|(key, _)| KEYWORDS.contains(&&*key.value))
}

/// A keyword that contains data. Three mistakes are detected here, because a validator's message
/// would not help.
fn plain(keyword: &str, value: &Value<'_>) -> Option<Json> {
    let json = value.json()?;
    if keyword == "required" && json.is_boolean() {
        let help = "remove it: a parameter is required unless it has `optional = true`";
        value.refuse("`required` is not a flag of a parameter", help);
        return None;
    }
    if keyword == "enum" && value.items().is_none() {
        // The intended value, so that other problems of the parameter are found too.
        return Some(Json::Array(vec![json]));
    }
    if keyword == "type" {
        let words = if json.is_array() { value.items()? } else { vec![value.clone()] };
        let unknown = words.iter().filter(|word| !is_type(word)).count();
        return (unknown == 0).then_some(json);
    }
    Some(json)
}

/// Whether a value is the name of a type; if not, that is recorded.
fn is_type(value: &Value<'_>) -> bool {
    let Some(word) = value.text() else {
        return false;
    };
    let known = TYPES.contains(&&*word.value);
    if !known {
        let help = suggest::help(&word.value, "types", TYPES);
        value.refuse(format!("`type` cannot be `{}`", word.value), help);
    }
    known
}
