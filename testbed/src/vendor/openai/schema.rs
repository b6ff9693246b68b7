//! Which schemas OpenAI takes for the arguments of a function.

use crate::reading::{Fault, Node, Object};

/// What may not stand at the top.
const NOT_AT_THE_TOP: [&str; 5] = ["oneOf", "anyOf", "allOf", "enum", "not"];

/// What strict mode does not know.
const NOT_STRICT: [&str; 6] =
    ["allOf", "not", "dependentRequired", "if", "patternProperties", "oneOf"];

pub(crate) fn check(schema: &Node<'_>, function: &str, strict: bool) -> Result<(), Fault> {
    let bad = |sentence: String| {
        let sentence = format!("in the schema of function '{function}', {sentence}");
        schema.wrong_as("invalid_function_parameters", sentence)
    };
    let fields = schema.open_object()?;
    if fields.get("type").is_none_or(|kind| kind.value != "object") {
        return Err(bad("the type must be \"object\"".to_owned()));
    }
    if let Some(key) = NOT_AT_THE_TOP.iter().find(|key| fields.get(key).is_some()) {
        return Err(bad(format!("there must be no '{key}' at the top level")));
    }
    each(schema, &mut |part| {
        let fields = part.open_object()?;
        let place = part.place.bracketed();
        let is = |kind: &str| fields.get("type").is_some_and(|node| node.value == kind);
        if is("array") && fields.get("items").is_none() {
            return Err(bad(format!("the array at {place} has no 'items'")));
        }
        if !strict {
            return Ok(());
        }
        if let Some(key) = NOT_STRICT.iter().find(|key| fields.get(key).is_some()) {
            return Err(bad(format!("'{key}' at {place} is not permitted with 'strict'")));
        }
        if !is("object") {
            return Ok(());
        }
        if fields.flag("additionalProperties").ok().flatten() != Some(false) {
            return Err(bad(format!("'additionalProperties' at {place} must be false")));
        }
        let required = fields.list("required")?;
        let named = |name: &str| required.iter().any(|node| node.value == name);
        let properties = fields.get("properties").map(|node| node.open_object()).transpose()?;
        let optional = properties.iter().flat_map(Object::entries);
        match optional.map(|(name, _)| name).find(|name| !named(name)) {
            Some(name) => Err(bad(format!("'required' at {place} must include '{name}'"))),
            None => Ok(()),
        }
    })
}

/// Visits a schema and all schemas in it.
fn each(
    schema: &Node<'_>,
    visit: &mut dyn FnMut(&Node<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if !schema.value.is_object() {
        return Ok(());
    }
    visit(schema)?;
    for (key, part) in schema.open_object()?.entries() {
        match key {
            "properties" | "$defs" | "definitions" | "patternProperties" => {
                for (_, part) in part.open_object()?.entries() {
                    each(&part, visit)?;
                }
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                for part in part.list()? {
                    each(&part, visit)?;
                }
            }
            "items" | "additionalProperties" | "not" => each(&part, visit)?,
            _ => {}
        }
    }
    Ok(())
}
