//! A root that is a plain object.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{
    Keywords, MAX_LEVELS,
    references::{References, Referred},
};

/// What combines schemas, and so may hold properties that do not stand beside it.
const COMBINING: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Makes the root of a schema a plain object: what [combines](COMBINING) schemas is taken away, and
/// the `others` that the vendor refuses there. The properties that stood behind it stand at the root
/// then, and what every alternative requires is required. Returns what was taken.
pub(in super::super) fn flatten(schema: &mut Value, others: &[&str]) -> Keywords {
    let shown = Shape::of(schema);
    let Value::Object(root) = schema else { return Map::new() };
    let taken: Keywords = COMBINING
        .iter()
        .chain(others)
        .filter_map(|keyword| root.shift_remove_entry(*keyword))
        .collect();
    if !shown.properties.is_empty() {
        root.insert("properties".to_owned(), shown.properties.into());
    }
    if !shown.required.is_empty() {
        root.insert("required".to_owned(), shown.required.into());
    }
    taken
}

/// A tool's description, and behind it what was taken from its schema.
pub(in super::super) fn in_words(description: &str, taken: Keywords) -> String {
    match taken.is_empty() {
        true => description.to_owned(),
        false => format!(
            "{description}\n\nThe arguments must also match this JSON Schema: {}",
            Value::Object(taken)
        ),
    }
}

/// What a schema says of an object at first sight.
#[derive(Default)]
struct Shape {
    properties: Map<String, Value>,
    /// Their names.
    required: Vec<Value>,
}

/// How schemas hold together.
#[derive(Clone, Copy)]
enum Together {
    All,
    Any,
}

impl Shape {
    /// Of a whole schema: its own word, and what stands behind its references and alternatives.
    fn of(schema: &Value) -> Self {
        Reading { references: References::new(schema), levels: 0 }.schema(schema)
    }

    /// What it says itself.
    fn own(schema: &Keywords) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        Self {
            properties: properties.cloned().unwrap_or_default(),
            required: required.cloned().unwrap_or_default(),
        }
    }

    fn joined(shapes: Vec<Self>, together: Together) -> Self {
        let mut found: IndexMap<String, Vec<Value>> = IndexMap::new();
        let mut ways = Vec::with_capacity(shapes.len());
        for Self { properties, required } in shapes {
            for (name, schema) in properties {
                let schemas = found.entry(name).or_default();
                if !schemas.contains(&schema) {
                    schemas.push(schema);
                }
            }
            ways.push(required);
        }
        let all_or_any = match together {
            Together::All => "allOf",
            Together::Any => "anyOf",
        };
        let one = |schemas: Vec<Value>| match <[Value; 1]>::try_from(schemas) {
            Ok([schema]) => schema,
            Err(schemas) => json!({ all_or_any: schemas }),
        };
        let required = match together {
            Together::All => ways.concat(),
            Together::Any => {
                ways.into_iter().reduce(|names, others| common(names, &others)).unwrap_or_default()
            }
        };
        let properties = found.into_iter().map(|(name, schemas)| (name, one(schemas))).collect();
        Self { properties, required }
    }

    /// Adds what also holds. Of the same property, the first word stays.
    fn add(&mut self, other: Self, is_closed: bool) {
        // What is closed takes no property that is not its own.
        if !is_closed {
            for (name, schema) in other.properties {
                self.properties.entry(name).or_insert(schema);
            }
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }
}

/// The names that stand in both lists.
fn common(mut names: Vec<Value>, others: &[Value]) -> Vec<Value> {
    names.retain(|name| others.contains(name));
    names
}

struct Reading<'a> {
    references: References<'a>,
    levels: usize,
}

impl<'a> Reading<'a> {
    fn schema(&mut self, schema: &'a Value) -> Shape {
        let Value::Object(keywords) = schema else { return Shape::default() };
        let mut shape = Shape::own(keywords);
        if self.levels >= MAX_LEVELS {
            return shape;
        }
        self.levels += 1;
        let is_closed = keywords.get("additionalProperties") == Some(&Value::Bool(false));
        for keyword in COMBINING {
            let behind = match (keyword, keywords.get(keyword)) {
                ("$ref", Some(Value::String(reference))) => self.referred(reference),
                ("allOf", Some(Value::Array(schemas))) => self.schemas(schemas, Together::All),
                (_, Some(Value::Array(schemas))) => self.schemas(schemas, Together::Any),
                _ => continue,
            };
            shape.add(behind, is_closed);
        }
        self.levels -= 1;
        shape
    }

    fn schemas(&mut self, schemas: &'a [Value], together: Together) -> Shape {
        let shapes = schemas.iter().map(|schema| self.schema(schema)).collect();
        Shape::joined(shapes, together)
    }

    fn referred(&mut self, reference: &'a str) -> Shape {
        let Referred::New(target) = self.references.enter(reference) else {
            return Shape::default();
        };
        let shape = self.schema(target);
        self.references.leave();
        shape
    }
}
