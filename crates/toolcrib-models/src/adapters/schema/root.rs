//! Makes the root of a schema a plain object.

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{
    Keywords, MAX_LEVELS,
    references::{ReferenceTarget, References},
};

/// Keywords that combine schemas, and so may contain properties that are missing beside them.
const COMBINING: [&str; 4] = ["$ref", "allOf", "anyOf", "oneOf"];

/// Makes the root of a schema a plain object: removes the keywords that [combine](COMBINING)
/// schemas, and the `others` that the vendor refuses there. The properties inside them move to the
/// root, and names that every alternative requires become required. Returns the removed keywords.
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

/// A tool's description, followed by the parts removed from its schema.
pub(in super::super) fn in_words(description: &str, taken: Keywords) -> String {
    match taken.is_empty() {
        true => description.to_owned(),
        false => format!(
            "{description}\n\nThe arguments must also match this JSON Schema: {}",
            Value::Object(taken)
        ),
    }
}

/// The direct properties of an object's schema.
#[derive(Default)]
struct Shape {
    properties: Map<String, Value>,
    /// Their names.
    required: Vec<Value>,
}

/// How schemas are combined.
#[derive(Clone, Copy)]
enum Combinator {
    All,
    Any,
}

impl Shape {
    /// For a whole schema: its own keywords, its references and its alternatives.
    fn of(schema: &Value) -> Self {
        SchemaReader { references: References::new(schema), levels: 0 }.schema(schema)
    }

    /// For its own keywords only.
    fn own(schema: &Keywords) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        Self {
            properties: properties.cloned().unwrap_or_default(),
            required: required.cloned().unwrap_or_default(),
        }
    }

    fn joined(shapes: Vec<Self>, together: Combinator) -> Self {
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
            Combinator::All => "allOf",
            Combinator::Any => "anyOf",
        };
        let one = |schemas: Vec<Value>| match <[Value; 1]>::try_from(schemas) {
            Ok([schema]) => schema,
            Err(schemas) => json!({ all_or_any: schemas }),
        };
        let required = match together {
            Combinator::All => ways.concat(),
            Combinator::Any => {
                ways.into_iter().reduce(|names, others| common(names, &others)).unwrap_or_default()
            }
        };
        let properties = found.into_iter().map(|(name, schemas)| (name, one(schemas))).collect();
        Self { properties, required }
    }

    /// Adds the properties of another schema. For the same property, the first one wins.
    fn add(&mut self, other: Self, is_closed: bool) {
        // A closed schema gets no foreign property.
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

/// The names that are in both lists.
fn common(mut names: Vec<Value>, others: &[Value]) -> Vec<Value> {
    names.retain(|name| others.contains(name));
    names
}

struct SchemaReader<'a> {
    references: References<'a>,
    levels: usize,
}

impl<'a> SchemaReader<'a> {
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
                ("allOf", Some(Value::Array(schemas))) => self.schemas(schemas, Combinator::All),
                (_, Some(Value::Array(schemas))) => self.schemas(schemas, Combinator::Any),
                _ => continue,
            };
            shape.add(behind, is_closed);
        }
        self.levels -= 1;
        shape
    }

    fn schemas(&mut self, schemas: &'a [Value], together: Combinator) -> Shape {
        let shapes = schemas.iter().map(|schema| self.schema(schema)).collect();
        Shape::joined(shapes, together)
    }

    fn referred(&mut self, reference: &'a str) -> Shape {
        let ReferenceTarget::New(target) = self.references.enter(reference) else {
            return Shape::default();
        };
        let shape = self.schema(target);
        self.references.leave();
        shape
    }
}
