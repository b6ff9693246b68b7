//! The types that a schema permits: for pairs on the command line, and for lists of parameters.

use serde_json::Value;

/// The limit of schemas that are read for one parameter: references can be recursive.
const MOST_SCHEMAS: usize = 200;

/// A parameter's schema within that of its tool.
pub(crate) struct SchemaTypes<'a> {
    root: &'a Value,
    remaining: usize,
}

impl<'a> SchemaTypes<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { root, remaining: MOST_SCHEMAS }
    }

    /// The types of which a value must have one; empty if that is unknown.
    pub(crate) fn types(&mut self, schema: &'a Value) -> Vec<&'a str> {
        let variants = self.variants(schema);
        let types: Vec<_> = variants.into_iter().map(own_types).collect();
        if types.iter().any(Vec::is_empty) { Vec::new() } else { types.concat() }
    }

    /// The schemas of which a value must match one, without references and combinations in them.
    pub(crate) fn variants(&mut self, schema: &'a Value) -> Vec<&'a Value> {
        if self.remaining == 0 || !own_types(schema).is_empty() {
            return vec![schema];
        }
        self.remaining -= 1;
        let reference = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
        if let Some(target) = reference.and_then(|pointer| self.root.pointer(pointer)) {
            return self.variants(target);
        }
        if let Some(any) = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array()) {
            return any.iter().flat_map(|one| self.variants(one)).collect();
        }
        // Any of them names a type that all others must permit.
        let all = schema["allOf"].as_array();
        let mut all = all.into_iter().flatten().map(|one| self.variants(one));
        let typed = |variants: &Vec<&Value>| variants.iter().all(|one| !own_types(one).is_empty());
        all.find(typed).unwrap_or_else(|| vec![schema])
    }
}

/// The types that a schema itself names, or has by its values.
fn own_types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => return vec![one],
        Value::Array(several) => return several.iter().filter_map(Value::as_str).collect(),
        _ => {}
    }
    let values = schema["enum"].as_array().map_or_else(Vec::new, |values| values.iter().collect());
    values.into_iter().chain(schema.get("const")).map(type_of).collect()
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
