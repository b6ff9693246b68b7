//! The subschemas that the keywords of a subschema apply. All drafts are read as one: keywords
//! unknown to a draft only make the count higher.

use std::sync::Arc;

use serde_json::Value;

use super::{
    patterns::Size,
    plan::{Node, Reader},
    references::Target,
    steps::size,
};
use crate::text::shortened::shortened;

pub(super) fn read<'s>(reader: &mut Reader<'s>, schema: &'s Value) -> Result<Node, Arc<str>> {
    let mut node = Node::default();
    let Value::Object(map) = schema else { return Ok(node) };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                refer(reader, &mut node, reference)?;
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                node.in_place.extend(reader.nodes(all));
            }
            ("not" | "if" | "then" | "else", one) => node.in_place.push(reader.node(one)),
            ("dependentSchemas" | "dependencies" | "dependentRequired", Value::Object(all)) => {
                for one in all.values() {
                    match one {
                        Value::Array(names) => node.listed += names.len() as u64,
                        one => node.in_place.push(reader.node(one)),
                    }
                }
            }
            ("properties", Value::Object(all)) => {
                node.listed += all.len() as u64;
                let mut named = |(place, (name, one)): (usize, (&String, &'s Value))| {
                    (name.as_str().into(), (place, reader.node(one)))
                };
                node.properties = all.iter().enumerate().map(&mut named).collect();
            }
            ("patternProperties", Value::Object(all)) => {
                node.name_patterns =
                    all.keys().map(|pattern| Size::of(pattern)).fold(Size::default(), Size::and);
                node.members.extend(reader.nodes(all.values()));
            }
            ("additionalProperties" | "unevaluatedProperties", one) => {
                node.is_unevaluated |= key == "unevaluatedProperties";
                node.members.push(reader.node(one));
            }
            ("propertyNames", one) => node.names.push(reader.node(one)),
            ("prefixItems" | "items", Value::Array(all)) => node.prefix.extend(reader.nodes(all)),
            ("items" | "additionalItems" | "contains" | "unevaluatedItems", one) => {
                node.is_unevaluated |= key == "unevaluatedItems";
                node.elements.push(reader.node(one));
            }
            ("multipleOf" | "divisibleBy", Value::Number(of)) => node.multiple = Some(!of.is_f64()),
            ("uniqueItems", Value::Bool(true)) => node.is_unique = true,
            ("pattern", Value::String(pattern)) => node.text_pattern = Size::of(pattern),
            ("required", Value::Array(names)) => node.listed += names.len() as u64,
            // A comparison is less work than a subschema.
            ("enum" | "const", value) => node.compared += size(value).div_ceil(4),
            _ => {}
        }
    }
    // Older drafts ignore the siblings of a reference.
    if let (Some(Value::String(text)), true) = (map.get("const"), reader.knows_const)
        && !map.contains_key("$ref")
    {
        node.constant = Some(text.as_str().into());
    }
    Ok(node)
}

fn refer<'s>(reader: &mut Reader<'s>, node: &mut Node, reference: &str) -> Result<(), Arc<str>> {
    match reader.references.target(reference) {
        Target::Within(found) if found.is_empty() => {
            let reference = shortened(reference);
            let problem = format!("the `$ref` to `{reference}` has no target in the schema");
            return Err(format!("{problem}, and remote references are not fetched").into());
        }
        Target::Within(found) => node.in_place.extend(reader.nodes(found)),
        Target::MetaSchema => node.meta_schemas += 1,
    }
    Ok(())
}

/// Whether all parts of a schema are of drafts that know `const`.
pub(super) fn knows_const(root: &Value) -> bool {
    const DRAFTS: [&str; 4] = [
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ];
    let mut waiting = vec![root];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Object(map) => {
                let dialect = map.get("$schema").and_then(Value::as_str);
                if dialect.is_some_and(|uri| !DRAFTS.contains(&uri.trim_end_matches('#'))) {
                    return false;
                }
                waiting.extend(map.values());
            }
            Value::Array(items) => waiting.extend(items),
            _ => {}
        }
    }
    true
}
