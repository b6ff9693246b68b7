//! The schemas of arguments and results.

use serde_json::{Map, Value, json};
use toolcrib_capabilities::http::Method;

use super::{
    body::{BodySchema, DeclaredBody, is_json, is_old_file},
    document::{OpenApi, Outline, Version},
    plan::{BodyKind, DeclaredParameter},
    schema::Schemas,
};
use crate::http::answer::one_line;

/// The longest description of a parameter, in characters.
const LONGEST_PARAMETER_TEXT: usize = 300;

/// The `Accept` header, and the schema of the result, if every success has one in JSON.
pub(super) fn responses<'d>(
    document: &'d OpenApi,
    operation: &Outline<'d>,
) -> (String, Option<&'d Value>) {
    let old = document.version == Version::Swagger2;
    let responses = operation.operation.get("responses").and_then(Value::as_object);
    let mut schemas: Vec<Option<&'d Value>> = Vec::new();
    let mut others: Vec<&str> = Vec::new();
    let mut has_json = false;
    for (status, response) in responses.into_iter().flatten() {
        if !status.starts_with('2') {
            continue;
        }
        let Ok(response) = document.resolved(response) else { continue };
        if old {
            schemas.push(response.get("schema"));
            has_json = true;
            continue;
        }
        let content = response.get("content").and_then(Value::as_object);
        let json = content.and_then(|content| content.iter().find(|(media, _)| is_json(media)));
        has_json |= json.is_some();
        schemas.push(json.and_then(|(_, of)| of.get("schema")));
        others.extend(content.into_iter().flatten().map(|(media, _)| media.as_str()));
    }
    let is_safe =
        |media: &&str| media.len() < 100 && media.is_ascii() && !media.contains(char::is_control);
    let others: Vec<&str> = others.into_iter().filter(is_safe).take(5).collect();
    let accept = match has_json || others.is_empty() {
        true => "application/json, */*;q=0.5".to_owned(),
        false => others.join(", "),
    };
    let schema = match schemas.as_slice() {
        [Some(only)] => Some(*only),
        _ => None,
    };
    (accept, schema.filter(|_| operation.method != Method::HEAD))
}

/// The schema of the arguments.
pub(super) fn input_schema<'d>(
    schemas: &mut Schemas<'d>,
    parameters: &[DeclaredParameter<'d>],
    body: Option<&DeclaredBody<'d>>,
) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for declared in parameters {
        let mut schema = match (declared.schema, declared.inline) {
            (Some(schema), _) => schemas.convert(schema, 0),
            (None, Some(inline)) => schemas.inline(inline),
            (None, None) => json!({ "type": "string" }),
        };
        describe(&mut schema, declared.description);
        if declared.required {
            required.push(declared.parameter.argument.clone());
        }
        properties.insert(declared.parameter.argument.clone(), schema);
    }
    if let Some(declared) = body {
        let mut schema = match &declared.schema {
            BodySchema::Of(Some(schema)) => schemas.convert(schema, 0),
            BodySchema::Of(None) if matches!(declared.body.kind, BodyKind::Text) => {
                json!({ "type": "string" })
            }
            BodySchema::Of(None) => json!({}),
            BodySchema::Fields(fields) => {
                let mut of_fields = Map::new();
                for (name, field, _) in fields {
                    let mut schema = match is_old_file(field) {
                        true => json!({ "type": "string" }),
                        false => schemas.inline(field),
                    };
                    let said = field.get("description").and_then(Value::as_str);
                    describe(&mut schema, said.unwrap_or_default());
                    of_fields.insert((*name).to_owned(), schema);
                }
                let required: Vec<_> = fields
                    .iter()
                    .filter(|(.., required)| *required)
                    .map(|(name, ..)| *name)
                    .collect();
                json!({ "type": "object", "properties": of_fields, "required": required })
            }
        };
        describe(&mut schema, declared.description);
        if declared.required {
            required.push(declared.body.argument.clone());
        }
        properties.insert(declared.body.argument.clone(), schema);
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Adds the description of a parameter, which is more specific than the text of its schema.
fn describe(schema: &mut Value, description: &str) {
    if let Value::Object(schema) = schema
        && !description.trim().is_empty()
    {
        schema
            .insert("description".to_owned(), one_line(description, LONGEST_PARAMETER_TEXT).into());
    }
}
