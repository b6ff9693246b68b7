//! The request bodies of operations.

use serde_json::{Map, Value};

use super::{
    document::{Outline, Version},
    plan::{Body, BodyKind, Part, Place, Reader, old_style, style},
    serialize::Style,
};

/// A body as declared.
pub(super) struct DeclaredBody<'d> {
    pub(super) body: Body,
    pub(super) required: bool,
    pub(super) schema: BodySchema<'d>,
    pub(super) description: &'d str,
}

pub(super) enum BodySchema<'d> {
    Of(Option<&'d Value>),
    /// The fields of a form of Swagger 2.0, each with whether it is required.
    Fields(Vec<(&'d str, &'d Map<String, Value>, bool)>),
}

impl<'d> Reader<'d> {
    /// The body.
    pub(super) fn body(
        &mut self,
        operation: &Outline<'d>,
    ) -> Result<Option<DeclaredBody<'d>>, String> {
        if self.document.version == Version::Swagger2 {
            return self.old_body(operation);
        }
        let Some(body) = operation.operation.get("requestBody") else { return Ok(None) };
        let body = self.document.resolved(body)?;
        let content = body.get("content").and_then(Value::as_object);
        let Some(content) = content.filter(|content| !content.is_empty()) else { return Ok(None) };
        let chosen = content
            .iter()
            .find(|(media, _)| is_json(media))
            .or_else(|| content.iter().find(|(media, _)| is_form(media)))
            .or_else(|| content.iter().find(|(media, _)| media.as_str() == "*/*"))
            .or_else(|| content.iter().find(|(media, _)| is_multipart(media)))
            .or_else(|| content.iter().find(|(media, _)| is_text(media)));
        let Some((media, of)) = chosen else {
            let media: Vec<_> =
                content.keys().map(|media| format!("`{}`", media.escape_debug())).collect();
            return Err(unsent(&media.join(", ")));
        };
        let kind = match media.as_str() {
            media if is_form(media) => BodyKind::Form(form_styles(of)?),
            media if is_multipart(media) => BodyKind::Multipart(self.parts(of)),
            media if is_text(media) => BodyKind::Text,
            _ => BodyKind::Json,
        };
        let content_type = if media.contains('*') { "application/json" } else { media };
        Ok(Some(DeclaredBody {
            body: Body {
                argument: self.argument("body", "content"),
                content_type: content_type.to_owned(),
                kind,
            },
            required: body.get("required").and_then(Value::as_bool).unwrap_or_default(),
            schema: BodySchema::Of(of.get("schema")),
            description: body.get("description").and_then(Value::as_str).unwrap_or_default(),
        }))
    }

    /// Whether the body of the operation, of any kind, may be left out.
    pub(super) fn has_optional_body(&self, operation: &Outline<'d>) -> bool {
        let body = operation.operation.get("requestBody");
        let body = body.and_then(|body| self.document.resolved(body).ok());
        body.is_some_and(|body| body.get("required") != Some(&Value::Bool(true)))
    }

    /// The body of Swagger 2.0.
    fn old_body(&mut self, operation: &Outline<'d>) -> Result<Option<DeclaredBody<'d>>, String> {
        let consumes =
            operation.operation.get("consumes").or_else(|| self.document.root().get("consumes"));
        let consumes: Vec<&str> = consumes
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some(body) = self.body {
            let json = consumes.iter().copied().find(|media| is_json(media));
            let is_any = consumes.is_empty() || consumes.contains(&"*/*");
            let Some(media) = json.or(is_any.then_some("application/json")) else {
                return Err(unsent(&consumes.join(", ")));
            };
            return Ok(Some(DeclaredBody {
                body: Body {
                    argument: self.argument("body", "content"),
                    content_type: media.to_owned(),
                    kind: BodyKind::Json,
                },
                required: body.get("required").and_then(Value::as_bool).unwrap_or_default(),
                schema: BodySchema::Of(body.get("schema")),
                description: body.get("description").and_then(Value::as_str).unwrap_or_default(),
            }));
        }
        if self.fields.is_empty() {
            return Ok(None);
        }
        let mut fields = Vec::new();
        let (mut styles, mut parts) = (Vec::new(), Vec::new());
        for field in std::mem::take(&mut self.fields) {
            let Some(name) = field.get("name").and_then(Value::as_str) else { continue };
            let required = field.get("required").and_then(Value::as_bool).unwrap_or_default();
            styles.push((name.to_owned(), old_style(field)));
            parts.push(Part { name: name.to_owned(), media: None, is_file: is_old_file(field) });
            fields.push((name, field, required));
        }
        let is_form = consumes.is_empty() || consumes.iter().any(|media| is_form(media));
        let has_file = parts.iter().any(|part| part.is_file);
        let (content_type, kind) = match is_form && !has_file {
            true => ("application/x-www-form-urlencoded", BodyKind::Form(styles)),
            false => (MULTIPART, BodyKind::Multipart(parts)),
        };
        let argument = self.argument("body", "content");
        let content_type = content_type.to_owned();
        Ok(Some(DeclaredBody {
            required: fields.iter().any(|(.., required)| *required),
            body: Body { argument, content_type, kind },
            schema: BodySchema::Fields(fields),
            description: "",
        }))
    }
}

impl Reader<'_> {
    /// The parts of a form that have a media type or are files.
    fn parts(&self, media: &Value) -> Vec<Part> {
        let encodings = media.get("encoding");
        let schema = media.get("schema").and_then(|schema| self.document.resolved(schema).ok());
        let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
        let part = |(name, schema): (&String, &Value)| {
            let declared = encodings.and_then(|all| all.get(name)?.get("contentType")?.as_str());
            // Of several, such as `image/png, image/*`, only one can be sent.
            let is_one = |media: &&str| {
                !media.contains([',', '*'])
                    && media.chars().all(|c| c == ' ' || c.is_ascii_graphic())
            };
            let declared = declared.filter(is_one);
            let of_list = schema.get("items").unwrap_or(schema);
            let is_file = self.document.resolved(of_list).is_ok_and(is_file);
            Part { name: name.clone(), media: declared.map(str::to_owned), is_file }
        };
        let parts = properties.into_iter().flatten().map(part);
        parts.filter(|part| part.is_file || part.media.is_some()).collect()
    }
}

fn is_file(schema: &Value) -> bool {
    let is_binary = schema.get("format").is_some_and(|format| format == "binary");
    is_binary || schema.get("contentMediaType").is_some() || schema.get("contentEncoding").is_some()
}

/// Whether a field of Swagger 2.0 is a file.
pub(super) fn is_old_file(field: &Map<String, Value>) -> bool {
    field.get("type").is_some_and(|kind| kind == "file")
}

fn unsent(media: &str) -> String {
    format!("its body is {media}; only JSON, text and forms are sent")
}

/// The styles of the fields of a form.
fn form_styles(media: &Value) -> Result<Vec<(String, Style)>, String> {
    let encodings = media.get("encoding").and_then(Value::as_object);
    let mut styles = Vec::new();
    for (name, encoding) in encodings.into_iter().flatten() {
        let explode = encoding.get("explode").and_then(Value::as_bool);
        match encoding.get("style").and_then(Value::as_str) {
            Some(named) => styles.push((name.clone(), style(named, explode, &Place::Query)?)),
            None if explode.is_some() => {
                styles.push((name.clone(), style("", explode, &Place::Query)?));
            }
            None => {}
        }
    }
    Ok(styles)
}

/// Whether a media type is JSON.
pub(super) fn is_json(media: &str) -> bool {
    let media = essence(media);
    matches!(media.as_str(), "application/json" | "text/json") || media.ends_with("+json")
}

fn is_form(media: &str) -> bool {
    essence(media) == "application/x-www-form-urlencoded"
}

const MULTIPART: &str = "multipart/form-data";

fn is_multipart(media: &str) -> bool {
    essence(media) == MULTIPART
}

/// Whether a body of the media type can be text: a file of any kind can be a text file.
fn is_text(media: &str) -> bool {
    let media = essence(media);
    media.starts_with("text/")
        || media.ends_with("+xml")
        || media.ends_with("+yaml")
        || ["application/xml", "application/yaml", "application/octet-stream"].contains(&&*media)
}

/// A media type without its parameters.
fn essence(media: &str) -> String {
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
