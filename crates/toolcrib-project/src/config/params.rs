//! `[tool.params]`: JSON Schemas of the parameters, written in TOML.

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};
use toolcrib_config::{Diagnostic, Problems, Spot, Value, suggest};

use super::schema::{TYPES, check_schema};

/// The kind of a keyword's value.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Data.
    Plain,
    /// A schema.
    Schema,
    /// A list of schemas.
    Schemas,
    /// A table of schemas under names that the author chooses.
    NamedSchemas,
}

/// The keywords of JSON Schema 2020-12 for parameters.
const KEYWORDS: &[(&str, Shape)] = &[
    ("type", Shape::Plain),
    ("description", Shape::Plain),
    ("enum", Shape::Plain),
    ("const", Shape::Plain),
    ("default", Shape::Plain),
    ("examples", Shape::Plain),
    ("title", Shape::Plain),
    ("format", Shape::Plain),
    ("minimum", Shape::Plain),
    ("maximum", Shape::Plain),
    ("exclusiveMinimum", Shape::Plain),
    ("exclusiveMaximum", Shape::Plain),
    ("multipleOf", Shape::Plain),
    ("minLength", Shape::Plain),
    ("maxLength", Shape::Plain),
    ("pattern", Shape::Plain),
    ("minItems", Shape::Plain),
    ("maxItems", Shape::Plain),
    ("uniqueItems", Shape::Plain),
    ("minContains", Shape::Plain),
    ("maxContains", Shape::Plain),
    ("minProperties", Shape::Plain),
    ("maxProperties", Shape::Plain),
    ("required", Shape::Plain),
    ("dependentRequired", Shape::Plain),
    ("deprecated", Shape::Plain),
    ("$comment", Shape::Plain),
    ("items", Shape::Schema),
    ("contains", Shape::Schema),
    ("additionalProperties", Shape::Schema),
    ("propertyNames", Shape::Schema),
    ("unevaluatedItems", Shape::Schema),
    ("unevaluatedProperties", Shape::Schema),
    ("not", Shape::Schema),
    ("if", Shape::Schema),
    ("then", Shape::Schema),
    ("else", Shape::Schema),
    ("allOf", Shape::Schemas),
    ("anyOf", Shape::Schemas),
    ("oneOf", Shape::Schemas),
    ("prefixItems", Shape::Schemas),
    ("properties", Shape::NamedSchemas),
    ("patternProperties", Shape::NamedSchemas),
    ("dependentSchemas", Shape::NamedSchemas),
];

/// The parameters of a tool.
#[derive(Debug)]
pub(crate) struct Params {
    /// The schema of the arguments as a whole.
    pub(crate) schema: Json,
    /// The position of each part, by JSON pointer.
    places: HashMap<String, Spot>,
    /// The position of the parameters.
    at: Spot,
}

impl Params {
    /// Reads the table; `None` if no valid schema remains.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        let table = value.entries("`[tool.params]`")?;
        let mut this = Self { schema: Json::Null, places: HashMap::new(), at: value.at() };
        let (mut properties, mut required, mut sound) = (Map::new(), Vec::new(), true);
        for (name, param) in table.rest() {
            if is_secret(&param) {
                param.refuse(
                    "this looks like a secret, but a parameter is a schema",
                    format!(
                        "it belongs below [secrets]: {} = {{ env = \"VARIABLE\" }}",
                        name.value
                    ),
                );
                sound = false;
                continue;
            }
            let pointer = format!("/properties/{}", escape(&name.value));
            let mut optional = false;
            let schema = this.schema(&param, &pointer, Some(&mut optional));
            match schema.filter(|schema| this.is_sound(schema, &pointer, value.problems())) {
                Some(schema) => drop(properties.insert(name.value.to_string(), schema)),
                None => sound = false,
            }
            if !optional {
                required.push(name.value.to_string());
            }
        }
        this.schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        sound.then_some(this)
    }

    /// Whether a parameter's schema is valid; if not, that is recorded. Each is checked separately,
    /// so that an error in one does not hide errors in another.
    fn is_sound(&self, schema: &Json, pointer: &str, problems: &Problems) -> bool {
        let found = check_schema(schema);
        for problem in &found {
            let place = self.place(&format!("{pointer}{}", problem.pointer));
            problems.push(Diagnostic::error(place, problem.message.as_str()));
        }
        found.is_empty()
    }

    /// The position of the part at a pointer, or of the smallest enclosing part with a known
    /// position.
    fn place(&self, pointer: &str) -> &Spot {
        let mut pointer = pointer;
        loop {
            if let Some(place) = self.places.get(pointer) {
                return place;
            }
            match pointer.rsplit_once('/') {
                Some((outer, _)) => pointer = outer,
                None => return &self.at,
            }
        }
    }

    /// Reads one schema. A parameter's `optional` is written to the given place; nested schemas
    /// have none. `None` if a part was refused, which is recorded.
    fn schema(
        &mut self,
        value: &Value<'_>,
        pointer: &str,
        mut optional: Option<&mut bool>,
    ) -> Option<Json> {
        self.places.insert(pointer.to_owned(), value.at());
        if !value.is_table() {
            let help = "write it as { type = \"integer\", description = \"…\" }";
            value.refuse("a schema was expected", help);
            return None;
        }
        let (mut schema, mut sound) = (Map::new(), true);
        for (keyword, value) in value.entries("a schema")?.rest() {
            if let ("optional", Some(optional)) = (&*keyword.value, optional.as_deref_mut()) {
                let stated = value.boolean();
                sound &= stated.is_some();
                *optional = stated.is_some_and(|stated| stated.value);
                continue;
            }
            match self.keyword(&keyword.value, &keyword.at, &value, pointer) {
                Some(json) => drop(schema.insert(keyword.value.to_string(), json)),
                None => sound = false,
            }
        }
        sound.then_some(Json::Object(schema))
    }

    fn keyword(
        &mut self,
        keyword: &str,
        at: &Spot,
        value: &Value<'_>,
        around: &str,
    ) -> Option<Json> {
        let pointer = format!("{around}/{}", escape(keyword));
        self.places.insert(pointer.clone(), value.at());
        let shape = KEYWORDS.iter().find(|(known, _)| *known == keyword).map(|(_, shape)| *shape);
        match shape {
            // Schemas can also be `true` or `false`.
            Some(Shape::Schema) if value.is_table() => self.schema(value, &pointer, None),
            Some(Shape::Plain | Shape::Schema) => plain(keyword, value),
            Some(Shape::Schemas) => {
                let schemas: Vec<_> = value
                    .items()?
                    .iter()
                    .enumerate()
                    .map(|(position, item)| {
                        self.schema(item, &format!("{pointer}/{position}"), None)
                    })
                    .collect();
                schemas.into_iter().collect::<Option<Vec<_>>>().map(Json::Array)
            }
            Some(Shape::NamedSchemas) => {
                let schemas: Vec<_> = value
                    .entries(keyword)?
                    .rest()
                    .map(|(name, schema)| {
                        let pointer = format!("{pointer}/{}", escape(&name.value));
                        Some((name.value.to_string(), self.schema(&schema, &pointer, None)?))
                    })
                    .collect();
                schemas.into_iter().collect::<Option<Map<_, _>>>().map(Json::Object)
            }
            // A prefix for extension keywords, which validators ignore.
            None if keyword.starts_with("x-") => value.json(),
            None => {
                let help = if keyword == "optional" {
                    "only a parameter itself can have `optional`; inside it, list the required \
                     properties in `required`"
                        .to_owned()
                } else {
                    let known = KEYWORDS.iter().map(|(known, _)| *known).chain(["optional"]);
                    suggest::help(keyword, "keywords of a schema", known)
                };
                let message = format!("unknown keyword `{keyword}` in a schema");
                value.problems().push(Diagnostic::error(at, message).help(help));
                None
            }
        }
    }
}

/// Whether a parameter is written like a secret: with the source of a value, and no part of a
/// schema. The value itself may be written there, so no part of it is repeated.
fn is_secret(value: &Value<'_>) -> bool {
    let is_known = |key: &str| KEYWORDS.iter().any(|(known, _)| *known == key);
    let Some(table) = value.is_table().then(|| value.entries("a secret")).flatten() else {
        return false;
    };
    table.has("env") && !table.rest().any(|(key, _)| is_known(&key.value))
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

/// Escapes a name for a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
