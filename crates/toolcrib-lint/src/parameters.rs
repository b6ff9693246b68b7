//! The parameters that a schema describes.

use serde_json::{Map, Value};

use crate::text::segment;

/// Deeper ones are ignored: a model sees them as parts of their parents.
const DEEPEST: usize = 6;

/// A parameter, or a part of one.
#[derive(Debug, Clone)]
pub struct Parameter<'a> {
    name: String,
    path: String,
    schema: &'a Map<String, Value>,
    /// The target, if it is a reference inside of the schema.
    target: Option<&'a Map<String, Value>>,
    required: bool,
}

impl<'a> Parameter<'a> {
    /// Its displayed name; for a nested one, with the names of its parents: `address.street`,
    /// `items[].id`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of its description from the tool's definition.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the parameter is required.
    pub fn is_required(&self) -> bool {
        self.required
    }

    /// Its description, or that of its reference's target.
    pub fn description(&self) -> Option<&'a str> {
        self.get("description").and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    /// A key of its schema, or of its reference's target.
    pub fn get(&self, key: &str) -> Option<&'a Value> {
        self.schema.get(key).or_else(|| self.target?.get(key))
    }

    /// Whether it accepts only texts, or texts and null.
    pub fn is_text(&self) -> bool {
        match self.get("type") {
            Some(Value::String(kind)) => kind == "string",
            Some(Value::Array(kinds)) => {
                kinds.iter().any(|kind| kind == "string")
                    && kinds.iter().all(|kind| kind == "string" || kind == "null")
            }
            _ => self.variants().is_some_and(|mut variants| {
                variants.all(|one| matches!(one.get("type"), Some(kind) if kind == "string" || kind == "null"))
            }),
        }
    }

    /// Whether it accepts true or false.
    pub fn is_switch(&self) -> bool {
        self.get("type").is_some_and(|kind| kind == "boolean")
    }

    /// Whether the schema itself lists the values.
    pub fn is_enum(&self) -> bool {
        const NAMING: [&str; 4] = ["enum", "const", "pattern", "format"];
        let names =
            |schema: &Map<String, Value>| NAMING.iter().any(|key| schema.contains_key(*key));
        names(self.schema)
            || self.target.is_some_and(names)
            || self.variants().is_some_and(|mut v| v.any(|one| one.as_object().is_some_and(names)))
    }

    fn variants(&self) -> Option<impl Iterator<Item = &'a Value>> {
        let variants = self.get("anyOf").or_else(|| self.get("oneOf"))?;
        variants.as_array().map(|variants| variants.iter())
    }
}

/// All parameters, in order, each before its nested ones. The schema's nesting is limited enough to
/// be traversed.
pub(crate) fn parameters(root: &Value) -> Vec<Parameter<'_>> {
    let mut found = Vec::new();
    if let Some(schema) = root.as_object() {
        collect(root, schema, "", "input_schema", 0, &mut found);
    }
    found
}

fn collect<'a>(
    root: &'a Value,
    object: &'a Map<String, Value>,
    around: &str,
    path: &str,
    depth: usize,
    found: &mut Vec<Parameter<'a>>,
) {
    let Some(Value::Object(properties)) = object.get("properties") else { return };
    let required: Vec<&str> = object
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    for (key, value) in properties {
        let Value::Object(schema) = value else { continue };
        let shown = segment(key);
        let path = format!("{path}/properties/{shown}");
        let name = if around.is_empty() { shown } else { format!("{around}.{shown}") };
        let parameter = Parameter {
            target: target(root, schema),
            required: required.contains(&key.as_str()),
            name: name.clone(),
            path: path.clone(),
            schema,
        };
        found.push(parameter);
        // The target of a reference may be recursive, and is described at its own place.
        if depth < DEEPEST {
            collect(root, schema, &name, &path, depth + 1, found);
            if let Some(Value::Object(items)) = schema.get("items") {
                let (name, path) = (format!("{name}[]"), format!("{path}/items"));
                collect(root, items, &name, &path, depth + 1, found);
            }
        }
    }
}

/// The target of a reference inside of the schema, in one step; also for the single variant that is
/// not null.
fn target<'a>(root: &'a Value, schema: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    let of = |schema: &'a Map<String, Value>| {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        root.pointer(pointer)?.as_object()
    };
    of(schema).or_else(|| {
        let variants = schema.get("anyOf").or_else(|| schema.get("allOf"))?.as_array()?;
        variants.iter().filter_map(Value::as_object).find_map(of)
    })
}
