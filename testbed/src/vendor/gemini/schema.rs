//! Which schemas Gemini takes as `parameters`: a part of OpenAPI's, and no JSON Schema.

use serde_json::{Map, Value};

use crate::reading::{Fault, Node};

const FIELDS: &[&str] = &[
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "propertyOrdering",
    "required",
    "title",
    "type",
];

const TYPES: [&str; 7] = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"];

/// Checks the schema of a function's parameters, and gives it as JSON Schema.
pub(super) fn check(schema: &Node<'_>) -> Result<Value, Fault> {
    let of_object = schema.open_object()?.get("type");
    let of_object = of_object.is_some_and(|kind| kind.value.as_str().is_some_and(is_object));
    if !of_object {
        return Err(schema.wrong("schema must be of type OBJECT"));
    }
    part(schema)
}

fn is_object(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("OBJECT")
}

fn part(schema: &Node<'_>) -> Result<Value, Fault> {
    let fields = schema.object(FIELDS)?;
    let mut found: Map<String, Value> = Map::new();
    for (name, field) in fields.entries() {
        found.insert(name.to_owned(), field.value.clone());
    }
    let kind = fields.get("type").map(|node| type_name(&node)).transpose()?.unwrap_or_default();
    if !kind.is_empty() {
        found.insert("type".to_owned(), kind.as_str().into());
    }
    match fields.get("format").filter(|_| kind == "string") {
        Some(format) if !["enum", "date-time"].contains(&format.text()?) => {
            return Err(format.wrong("only 'enum' and 'date-time' are supported for STRING type"));
        }
        _ => {}
    }
    if let Some(values) = fields.get("enum") {
        check_enum(&values, &kind)?;
    }
    match fields.get("items") {
        Some(items) => drop(found.insert("items".to_owned(), part(&items)?)),
        None if kind == "array" => return Err(schema.wrong("items: missing field")),
        None => {}
    }
    let mut properties = Map::new();
    if let Some(declared) = fields.get("properties") {
        for (name, property) in declared.open_object()?.entries() {
            properties.insert(name.to_owned(), part(&property)?);
        }
    }
    if kind == "object" && properties.is_empty() {
        return Err(schema.wrong("properties: should be non-empty for OBJECT type"));
    }
    for required in fields.list("required")? {
        if !properties.contains_key(required.text()?) {
            return Err(required.wrong("property is not defined"));
        }
    }
    if !properties.is_empty() {
        found.insert("properties".to_owned(), properties.into());
    }
    if let Some(choices) = fields.get("anyOf") {
        let choices = choices.list()?.iter().map(part).collect::<Result<Value, _>>()?;
        found.insert("anyOf".to_owned(), choices);
    }
    Ok(found.into())
}

/// The name of a type as JSON Schema spells it.
fn type_name(node: &Node<'_>) -> Result<String, Fault> {
    let name = node.text()?;
    match TYPES.iter().any(|known| known.eq_ignore_ascii_case(name)) {
        true => Ok(name.to_ascii_lowercase()),
        false => Err(node.wrong(format!("`{name}` is not a type"))),
    }
}

fn check_enum(values: &Node<'_>, kind: &str) -> Result<(), Fault> {
    if kind != "string" {
        return Err(values.wrong("only allowed for STRING type"));
    }
    values.list()?.iter().try_for_each(|value| match value.text()? {
        "" => Err(value.wrong("cannot be empty")),
        _ => Ok(()),
    })
}
