//! JSON Schemas of schemas in OpenAPI documents.
//!
//! A schema keeps the keywords that a model and the engine can use. Referenced schemas become
//! `$defs`. A schema that is too large is recreated with fewer levels; below the last one, objects
//! and lists have any content, which the server checks.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value, json};

use toolcrib_core::__internal::{check_schema, leave_foreign_patterns};

use super::document::{OpenApi, unresolved};
use crate::http::answer::one_line;

/// The largest schema, in bytes: more would fill the context of a model.
pub(super) const LARGEST: usize = 48 * 1024;
/// The largest number of subschemas.
const MOST_SUBSCHEMAS: usize = 6_000;
/// The numbers of levels to try. Without any, only the type is left.
const LEVELS: [Option<usize>; 10] =
    [Some(32), Some(8), Some(6), Some(5), Some(4), Some(3), Some(2), Some(1), Some(0), None];
/// The longest description, in characters.
const LONGEST_TEXT: usize = 300;

/// The direction of the values of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Arguments of calls.
    Request,
    /// Results. Servers follow their documents loosely, so such a schema says only the shape: each
    /// value may be null, and nothing is required.
    Response,
}

/// Makes the schemas of one operation, with shared `$defs`.
pub(super) struct Schemas<'d> {
    document: &'d OpenApi,
    side: Side,
    levels: Option<usize>,
    subschemas: usize,
    most_subschemas: usize,
    /// The names of definitions by reference.
    names: HashMap<&'d str, String>,
    taken: HashSet<String>,
    waiting: VecDeque<(&'d str, usize)>,
    problem: Option<String>,
}

/// A finished schema.
pub(super) struct Bundle {
    /// As JSON, since the values of a document's schemas would take thirty times the memory.
    pub(super) json: Box<str>,
    /// The patterns that are left to the server.
    pub(super) left_patterns: Vec<String>,
}

/// The limit of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaLimit {
    /// In bytes.
    pub(super) largest: usize,
    /// Whether only its size is wanted: it is not checked.
    pub(super) is_measured: bool,
}

/// Makes a schema by means of [`Schemas`], with as many levels as fit the limit; without any level, it may have
/// more.
///
/// # Errors
/// A reference that cannot be resolved, or the size.
pub(super) fn bundled<'d>(
    document: &'d OpenApi,
    side: Side,
    limit: SchemaLimit,
    make: impl Fn(&mut Schemas<'d>) -> Value,
) -> Result<Bundle, String> {
    let tried = match side {
        Side::Request => LEVELS.as_slice(),
        Side::Response => LEVELS.get(..1).unwrap_or_default(),
    };
    for &levels in tried {
        // A subschema has at least three bytes, so one with more is too large.
        let most = if levels.is_some() { limit.largest / 3 } else { MOST_SUBSCHEMAS };
        let mut schemas = Schemas {
            document,
            side,
            levels,
            subschemas: 0,
            most_subschemas: most.min(MOST_SUBSCHEMAS),
            names: HashMap::new(),
            taken: HashSet::new(),
            waiting: VecDeque::new(),
            problem: None,
        };
        let mut made = make(&mut schemas);
        let definitions = schemas.definitions();
        if let Some(problem) = schemas.problem {
            return Err(problem);
        }
        if schemas.subschemas > schemas.most_subschemas {
            continue;
        }
        if let Value::Object(made) = &mut made
            && !definitions.is_empty()
        {
            made.insert("$defs".to_owned(), definitions.into());
        }
        open_parts(&mut made);
        let left_patterns = leave_foreign_patterns(&mut made);
        let json = made.to_string();
        let is_last = levels.is_none() && json.len() <= LARGEST;
        if json.len() <= limit.largest || is_last {
            if !limit.is_measured {
                check_schema(&made)
                    .map_err(|problem| format!("its schema cannot be enforced: {problem}"))?;
            }
            return Ok(Bundle { json: json.into(), left_patterns });
        }
    }
    Err(format!("its schema has more than {} KiB", LARGEST / 1024))
}

impl<'d> Schemas<'d> {
    /// The schemas that others refer to.
    fn definitions(&mut self) -> Map<String, Value> {
        let mut made = Map::new();
        while let Some((reference, level)) = self.waiting.pop_front() {
            if self.subschemas > self.most_subschemas {
                break;
            }
            let Some(name) = self.names.get(reference).cloned() else { continue };
            match self.document.target(reference) {
                Some(schema) => {
                    let schema = self.convert(schema, level);
                    made.insert(name, schema);
                }
                None => {
                    self.problem.get_or_insert_with(|| unresolved(reference));
                }
            }
        }
        made
    }

    /// A schema, at a level of its parts.
    pub(super) fn convert(&mut self, schema: &'d Value, level: usize) -> Value {
        self.subschemas += 1;
        if self.subschemas > self.most_subschemas {
            return json!({});
        }
        let Some(from) = schema.as_object() else {
            return if schema.as_bool() == Some(false) { json!(false) } else { json!({}) };
        };
        if self.levels.is_none_or(|levels| level > levels) {
            return self.outline(schema);
        }
        let mut to = Map::new();
        if let Some(reference) = from.get("$ref").and_then(Value::as_str) {
            to.insert("$ref".to_owned(), format!("#/$defs/{}", self.name(reference, level)).into());
        } else {
            self.keywords(from, &mut to, level);
        }
        if let Some(text) = from.get("description").and_then(Value::as_str) {
            to.insert("description".to_owned(), one_line(text, LONGEST_TEXT).into());
        }
        self.with_null(from, to)
    }

    /// The schema that a parameter of Swagger 2.0 contains among its own keys.
    pub(super) fn inline(&mut self, parameter: &'d Map<String, Value>) -> Value {
        let mut to = Map::new();
        // Its `required` is a boolean, which is not the keyword.
        self.keywords(parameter, &mut to, 0);
        self.with_null(parameter, to)
    }

    /// The name of a definition, which is made later.
    fn name(&mut self, reference: &'d str, level: usize) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let last = reference.rsplit('/').next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let plain: String = last.chars().take(60).map(plain).collect();
        let mut name = plain.clone();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        self.names.insert(reference, name.clone());
        self.waiting.push_back((reference, level));
        name
    }

    /// Below the last level: only the type.
    fn outline(&self, schema: &'d Value) -> Value {
        let schema = self.document.resolved(schema).unwrap_or(schema);
        let nullable = schema.get("nullable").and_then(Value::as_bool) == Some(true);
        match schema.get("type").and_then(types) {
            Some(_) if nullable || schema.get("enum").is_some() => json!({}),
            Some(kind) => json!({ "type": kind }),
            None => json!({}),
        }
    }

    fn keywords(
        &mut self,
        from: &'d Map<String, Value>,
        to: &mut Map<String, Value>,
        level: usize,
    ) {
        if let Some(kind) = from.get("type").and_then(types) {
            to.insert("type".to_owned(), kind);
        }
        let is_request = self.side == Side::Request;
        for (key, value) in from {
            let made = match (key.as_str(), value) {
                ("properties", Value::Object(all)) => {
                    Some((key.as_str(), self.properties(all, level + 1).into()))
                }
                ("additionalProperties", Value::Bool(false)) if !is_request => None,
                ("additionalProperties" | "items", Value::Object(_) | Value::Bool(_)) => {
                    Some((key.as_str(), self.convert(value, level + 1)))
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) if !all.is_empty() => {
                    self.combine(key, all, to, level);
                    None
                }
                (key, value) if is_request => self.constraint((key, value), from, level),
                _ => None,
            };
            to.extend(made.map(|(key, made)| (key.to_owned(), made)));
        }
    }

    /// Adds all of `allOf`, or one of the others.
    fn combine(&mut self, key: &str, all: &'d [Value], to: &mut Map<String, Value>, level: usize) {
        // Alternatives of documents overlap often; the server decides.
        let key = if key == "allOf" { "allOf" } else { "anyOf" };
        let all: Vec<_> = all.iter().map(|one| self.convert(one, level)).collect();
        if !to.contains_key(key) {
            to.insert(key.to_owned(), all.into());
        } else if let Some(more) = to.entry("allOf").or_insert_with(|| json!([])).as_array_mut() {
            more.push(json!({ "anyOf": all }));
        }
    }

    /// A keyword that only arguments must satisfy, and its name as of JSON Schema 2020-12.
    fn constraint(
        &mut self,
        (key, value): (&'d str, &'d Value),
        from: &'d Map<String, Value>,
        level: usize,
    ) -> Option<(&'d str, Value)> {
        let below = level + 1;
        let made = match (key, value) {
            ("patternProperties", Value::Object(all)) => all
                .iter()
                .map(|(name, schema)| (name.clone(), self.convert(schema, below)))
                .collect::<Map<_, _>>()
                .into(),
            ("required", Value::Array(names)) => {
                let required = self.required(names, from.get("properties"));
                (!required.is_empty()).then(|| required.into())?
            }
            ("propertyNames" | "contains", Value::Object(_)) => self.convert(value, below),
            ("not", Value::Object(_)) => self.convert(value, level),
            ("prefixItems", Value::Array(all)) if !all.is_empty() => {
                all.iter().map(|one| self.convert(one, below)).collect::<Vec<_>>().into()
            }
            ("enum", Value::Array(all)) if !all.is_empty() => value.clone(),
            ("default", _) if is_small(value) => value.clone(),
            ("const", _) | ("format" | "pattern", Value::String(_)) => value.clone(),
            ("uniqueItems", Value::Bool(_)) => value.clone(),
            ("minimum" | "maximum", Value::Number(_)) => {
                // A boolean beside it, up to OpenAPI 3.0.
                let exclusive =
                    if key == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                let is_exclusive = from.get(exclusive).and_then(Value::as_bool) == Some(true);
                return Some((if is_exclusive { exclusive } else { key }, value.clone()));
            }
            ("exclusiveMinimum" | "exclusiveMaximum", Value::Number(_)) => value.clone(),
            ("multipleOf", Value::Number(number))
                if number.as_f64().is_some_and(|number| number > 0.0) =>
            {
                value.clone()
            }
            (
                "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties"
                | "minProperties",
                Value::Number(number),
            ) if number.is_u64() => value.clone(),
            _ => return None,
        };
        Some((key, made))
    }

    /// Properties, without those of the other direction.
    fn properties(&mut self, all: &'d Map<String, Value>, level: usize) -> Map<String, Value> {
        let mut made = Map::new();
        for (name, schema) in all {
            if !self.is_of_other_side(schema) {
                let schema = self.convert(schema, level);
                made.insert(name.clone(), schema);
            }
        }
        made
    }

    fn required(&self, names: &[Value], properties: Option<&'d Value>) -> Vec<Value> {
        let is_there = |name: &&Value| {
            let schema = name.as_str().and_then(|name| properties?.get(name));
            name.is_string() && !schema.is_some_and(|schema| self.is_of_other_side(schema))
        };
        let mut seen = HashSet::new();
        names.iter().filter(is_there).filter(|name| seen.insert(name.as_str())).cloned().collect()
    }

    fn is_of_other_side(&self, schema: &'d Value) -> bool {
        let key = match self.side {
            Side::Request => "readOnly",
            Side::Response => "writeOnly",
        };
        let is_set = |schema: &Value| schema.get(key).and_then(Value::as_bool) == Some(true);
        is_set(schema) || self.document.resolved(schema).is_ok_and(is_set)
    }

    /// The schema with `null`, where it is allowed.
    fn with_null(&self, from: &Map<String, Value>, mut to: Map<String, Value>) -> Value {
        let nullable = ["nullable", "x-nullable"]
            .iter()
            .any(|key| from.get(*key).and_then(Value::as_bool) == Some(true));
        if !nullable && self.side == Side::Request {
            return to.into();
        }
        match to.get_mut("type") {
            Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "null") => {}
            Some(Value::Array(kinds)) => kinds.push("null".into()),
            Some(kind) if kind != "null" => *kind = json!([kind.take(), "null"]),
            _ => {}
        }
        if let Some(Value::Array(all)) = to.get_mut("enum")
            && !all.contains(&Value::Null)
        {
            all.push(Value::Null);
        }
        let refers = ["$ref", "allOf", "anyOf"].iter().any(|key| to.contains_key(*key));
        if !refers {
            return to.into();
        }
        let description = to.remove("description");
        let mut outer = json!({ "anyOf": [to, { "type": "null" }] });
        if let (Some(description), Some(outer)) = (description, outer.as_object_mut()) {
            outer.insert("description".to_owned(), description);
        }
        outer
    }
}

/// Opens the parts of composed schemas. Documents compose parts that permit no other properties, and
/// each of them would then forbid those of the others: no value would be valid.
fn open_parts(schema: &mut Value) {
    let mut parts = HashSet::new();
    open(schema, false, &mut parts);
    let mut opened = HashSet::new();
    while let Some(name) = parts.iter().find(|name| !opened.contains(*name)).cloned() {
        if let Some(definition) = schema.get_mut("$defs").and_then(|all| all.get_mut(&name)) {
            open(definition, true, &mut parts);
        }
        opened.insert(name);
    }
}

/// Opens a schema if it is a part or composed, and collects the names of definitions that are parts.
fn open(schema: &mut Value, is_part: bool, parts: &mut HashSet<String>) {
    let Value::Object(schema) = schema else { return };
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let all_of = schema.get("allOf").and_then(Value::as_array).map_or(0, Vec::len);
    let any_of = usize::from(schema.contains_key("anyOf"));
    let own = usize::from(is_closed || schema.contains_key("properties"));
    let is_composed = is_part || all_of + any_of + own > 1;
    if is_composed {
        if is_closed {
            schema.remove("additionalProperties");
        }
        let reference = schema.get("$ref").and_then(Value::as_str);
        let name = reference.and_then(|reference| reference.strip_prefix("#/$defs/"));
        parts.extend(name.map(str::to_owned));
    }
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("allOf" | "anyOf", Value::Array(all)) => {
                all.iter_mut().for_each(|one| open(one, is_composed, parts));
            }
            ("properties" | "patternProperties" | "$defs", Value::Object(all)) => {
                all.values_mut().for_each(|one| open(one, false, parts));
            }
            ("prefixItems", Value::Array(all)) => {
                all.iter_mut().for_each(|one| open(one, false, parts));
            }
            ("const" | "enum" | "default", _) => {}
            (_, one) => open(one, false, parts),
        }
    }
}

/// The valid types.
fn types(kind: &Value) -> Option<Value> {
    let is_known = |kind: &&str| {
        ["string", "number", "integer", "boolean", "array", "object", "null"].contains(kind)
    };
    match kind {
        Value::String(kind) => Some(kind.as_str()).filter(is_known).map(Value::from),
        Value::Array(kinds) => {
            let mut kinds: Vec<_> =
                kinds.iter().filter_map(Value::as_str).filter(is_known).collect();
            let mut seen = HashSet::new();
            kinds.retain(|kind| seen.insert(*kind));
            (!kinds.is_empty()).then(|| kinds.into())
        }
        _ => None,
    }
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= 200,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => true,
    }
}
