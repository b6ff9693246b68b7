//! From an operation to the request of its calls and the schema of its arguments.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolcrib_capabilities::http::{HeaderName, Method, is_set_by_client, parse_url};

use super::{
    body::is_json,
    document::{OpenApi, Outline, Version, parameter_key},
    schema::{Bundle, SchemaLimit, Side, bundled},
    security::{Auth, Credential, credentials},
    serialize::{Style, StyleKind},
    shapes::{input_schema, responses},
};
use crate::http::answer::one_line;

/// The longest description of a tool, in characters.
const LONGEST_TEXT: usize = 700;
/// The most parameters of an operation.
const MOST_PARAMETERS: usize = 200;

/// How operations are made.
#[derive(Debug, Clone)]
pub(super) struct MakeOptions {
    /// The base URL, which replaces those of the document.
    pub(super) server: Option<String>,
    /// The origins that operations may name besides that of the document's server.
    pub(super) allow_servers: Vec<String>,
    /// The secrets.
    pub(super) auth: Auth,
    /// The headers that are sent with every request, which may contain credentials.
    pub(super) headers: Vec<HeaderName>,
    pub(super) schema_limit: SchemaLimit,
}

/// An operation that can be called.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) method: Method,
    /// Without `/` at its end.
    pub(super) server: String,
    pub(super) path: Vec<Vec<Piece>>,
    /// The pairs that each call has.
    pub(super) query: Vec<String>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) accept: String,
    pub(super) credentials: Vec<Credential>,
}

/// A piece of a segment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    /// A parameter, by its position.
    Place(usize),
}

/// A parameter.
#[derive(Debug, Clone)]
pub(super) struct Parameter {
    /// The argument of a call.
    pub(super) argument: String,
    /// The name in the request.
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) style: Style,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header(HeaderName),
    Cookie,
}

/// A request body.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) argument: String,
    pub(super) content_type: String,
    pub(super) kind: BodyKind,
}

#[derive(Debug, Clone)]
pub(super) enum BodyKind {
    Json,
    Text,
    /// `application/x-www-form-urlencoded`, with the styles of fields that have one.
    Form(Vec<(String, Style)>),
    /// `multipart/form-data`, with the declared parts.
    Multipart(Vec<Part>),
}

/// A declared part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    /// The media type, if it is declared.
    pub(super) media: Option<String>,
    /// Whether it is a file, which gets a name.
    pub(super) is_file: bool,
}

pub(super) struct CompiledOperation {
    pub(super) plan: Plan,
    /// The names of the arguments.
    pub(super) arguments: Vec<String>,
    pub(super) input_schema: Bundle,
    pub(super) output_schema: Option<Box<str>>,
    /// Whether it has an optional body that is never sent.
    pub(super) drops_body: bool,
}

/// A parameter as declared, and its argument.
pub(super) struct DeclaredParameter<'d> {
    pub(super) parameter: Parameter,
    pub(super) required: bool,
    pub(super) schema: Option<&'d Value>,
    /// The parameter itself, whose keys are the schema in Swagger 2.0.
    pub(super) inline: Option<&'d Map<String, Value>>,
    pub(super) description: &'d str,
}

/// The declared properties of a parameter.
#[derive(Clone, Copy)]
struct ParameterFields<'d> {
    required: bool,
    schema: Option<&'d Value>,
    inline: Option<&'d Map<String, Value>>,
    description: &'d str,
}

/// The text by which a model chooses the tool.
pub(super) fn description(operation: &Outline<'_>) -> String {
    let said = |key: &str| {
        operation.operation.get(key).and_then(Value::as_str).map(str::trim).unwrap_or_default()
    };
    let (summary, more) = (said("summary"), said("description"));
    let mut text = match (summary, more) {
        ("", "") => format!("{} {}", operation.method, operation.path),
        ("", only) | (only, "") => only.to_owned(),
        (summary, more) if more.starts_with(summary) => more.to_owned(),
        (summary, more) => {
            let end = if summary.ends_with(['.', '!', '?']) { "" } else { "." };
            format!("{summary}{end} {more}")
        }
    };
    if operation.operation.get("deprecated").and_then(Value::as_bool) == Some(true) {
        text.insert_str(0, "Deprecated. ");
    }
    one_line(&text, LONGEST_TEXT)
}

/// Makes an operation.
///
/// # Errors
/// Why it cannot be made.
pub(super) fn make(
    document: &OpenApi,
    operation: &Outline<'_>,
    options: &MakeOptions,
) -> Result<CompiledOperation, String> {
    let server = server(document, operation, options)?;
    let parameters = parameters(document, operation)?;
    let has_headers = !options.headers.is_empty();
    let credentials =
        credentials(document, operation.operation, &parameters, &options.auth, has_headers)?;
    let mut declared = Reader::read(document, parameters, &credentials, &options.headers)?;
    let body = declared.body(operation);
    let has_body = !matches!(body, Ok(None));
    let body = match operation.method {
        // The meaning of such a body is not defined, and many servers and proxies refuse it.
        Method::GET | Method::HEAD => match body {
            Ok(Some(body)) if body.required => {
                return Err("a GET or HEAD requires a body".to_owned());
            }
            Err(problem) if !declared.has_optional_body(operation) => return Err(problem),
            _ => None,
        },
        _ => body?,
    };
    let drops_body = has_body && body.is_none();
    let (path, query) = fixed_query(operation.path)?;
    let path = declared.path(path)?;
    let Reader { parameters, .. } = declared;
    let input_schema = bundled(document, Side::Request, options.schema_limit, |schemas| {
        input_schema(schemas, &parameters, body.as_ref())
    })?;
    let arguments = parameters.iter().map(|declared| &declared.parameter.argument);
    let arguments = arguments.chain(body.iter().map(|declared| &declared.body.argument));
    let arguments = arguments.cloned().collect();
    let (accept, output) = responses(document, operation);
    let of_response = |schema| {
        bundled(document, Side::Response, options.schema_limit, |made| made.convert(schema, 0))
    };
    let output_schema = output.and_then(|schema| of_response(schema).ok());
    let output_schema = output_schema.map(|bundle| bundle.json);
    let plan = Plan {
        method: operation.method.clone(),
        server,
        path,
        query,
        parameters: parameters.into_iter().map(|declared| declared.parameter).collect(),
        body: body.map(|declared| declared.body),
        accept,
        credentials,
    };
    Ok(CompiledOperation { plan, arguments, input_schema, output_schema, drops_body })
}

/// A path, and the query that some documents append: `/v1/messages?beta=true`. The fragment by which others
/// tell operations of one path apart is never sent: `/oauth2/token#refresh`.
fn fixed_query(path: &str) -> Result<(&str, Vec<String>), String> {
    let path = path.split('#').next().unwrap_or_default();
    let (before, query) = path.split_once('?').unwrap_or((path, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~%=&,:".contains(c);
    if !query.chars().all(is_plain) {
        return Err("its path contains a query with places".to_owned());
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    Ok((before, pairs.map(str::to_owned).collect()))
}

/// The base URL.
fn server(
    document: &OpenApi,
    operation: &Outline<'_>,
    options: &MakeOptions,
) -> Result<String, String> {
    let url = match &options.server {
        Some(server) => server.clone(),
        None => {
            let url = document
                .server_of(operation)
                .ok_or("the document has no absolute URL of a server; write `server`")?;
            check_origin(document, &url, &options.allow_servers)?;
            url
        }
    };
    let url = url.trim_end_matches('/').to_owned();
    if url.contains(['?', '#', '{', '}']) {
        return Err(format!("`{}` cannot be the URL of a server", url.escape_debug()));
    }
    match parse_url(&url) {
        Ok(_) => Ok(url),
        Err(error) => Err(format!("the URL of its server, `{}`: {error}", url.escape_debug())),
    }
}

/// Refuses another origin than that of the document's own server: a secret goes only to the origin
/// for which it was declared, and the author of a document is not the author of the project.
fn check_origin(document: &OpenApi, url: &str, allowed: &[String]) -> Result<(), String> {
    let origin = |url: &str| parse_url(url).ok().map(|url| url.origin());
    let Some(named) = origin(url) else { return Ok(()) };
    let own = document.server();
    let mut known = own.iter().map(String::as_str).chain(allowed.iter().map(String::as_str));
    if known.any(|known| origin(known).as_ref() == Some(&named)) {
        return Ok(());
    }
    let named = named.ascii_serialization();
    Err(match own {
        Some(own) => format!(
            "it names the origin `{named}`, another than the document's server, `{}`; to call it, \
             write allow_servers = [\"{named}\"]",
            own.escape_debug()
        ),
        None => format!(
            "it names the origin `{named}`, and the document has no server of all operations; to \
             call it, write allow_servers = [\"{named}\"], or `server`"
        ),
    })
}

/// The declared inputs of an operation.
pub(super) struct Reader<'d> {
    pub(super) document: &'d OpenApi,
    parameters: Vec<DeclaredParameter<'d>>,
    arguments: HashSet<String>,
    /// The body of Swagger 2.0.
    pub(super) body: Option<&'d Map<String, Value>>,
    pub(super) fields: Vec<&'d Map<String, Value>>,
}

/// The parameters of an operation, as declared.
fn parameters<'d>(
    document: &'d OpenApi,
    operation: &Outline<'d>,
) -> Result<Vec<&'d Map<String, Value>>, String> {
    let lists = [operation.item.get("parameters"), operation.operation.get("parameters")];
    // Those of the operation replace those of the path.
    let mut all: Vec<&Map<String, Value>> = Vec::new();
    for parameter in lists.into_iter().flatten().filter_map(Value::as_array).flatten() {
        let resolved = document.resolved(parameter)?;
        let Some(parameter) = resolved.as_object() else { continue };
        let key = parameter_key(parameter);
        let known = all.iter().position(|other| key.is_some() && parameter_key(other) == key);
        match known.and_then(|known| all.get_mut(known)) {
            Some(other) => *other = parameter,
            None => all.push(parameter),
        }
        if all.len() > MOST_PARAMETERS {
            return Err(format!("it has more than {MOST_PARAMETERS} parameters"));
        }
    }
    Ok(all)
}

impl<'d> Reader<'d> {
    /// Reads the parameters, except those that the credentials and headers of the project are.
    fn read(
        document: &'d OpenApi,
        all: Vec<&'d Map<String, Value>>,
        credentials: &[Credential],
        headers: &[HeaderName],
    ) -> Result<Self, String> {
        let mut reader = Self {
            document,
            parameters: Vec::new(),
            arguments: HashSet::new(),
            body: None,
            fields: Vec::new(),
        };
        let is_sent = |parameter: &Map<String, Value>| {
            let said = |key| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let (place, name) = (said("in"), said("name"));
            let is_header = |header: &HeaderName| header.as_str().eq_ignore_ascii_case(name);
            match place {
                "header" if headers.iter().any(is_header) => true,
                _ => credentials.iter().any(|credential| credential.place.is(place, name)),
            }
        };
        for parameter in all.into_iter().filter(|parameter| !is_sent(parameter)) {
            reader.parameter(parameter)?;
        }
        Ok(reader)
    }

    fn parameter(&mut self, parameter: &'d Map<String, Value>) -> Result<(), String> {
        let said = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
        let is = |key: &str| parameter.get(key).and_then(Value::as_bool);
        let (name, required) = (said("name"), is("required").unwrap_or_default());
        let place = match said("in") {
            "body" => {
                self.body = Some(parameter);
                return Ok(());
            }
            "formData" => {
                self.fields.push(parameter);
                return Ok(());
            }
            _ if name.is_empty() => return Err("a parameter has no name".to_owned()),
            "path" => Place::Path,
            "query" => Place::Query,
            "cookie" => Place::Cookie,
            "header" => {
                // These have their own places in a document.
                let own = ["accept", "content-type", "authorization"];
                if own.contains(&name.to_ascii_lowercase().as_str()) {
                    return Ok(());
                }
                match HeaderName::try_from(name) {
                    Ok(name) if !is_set_by_client(&name) => Place::Header(name),
                    _ if !required => return Ok(()),
                    _ => {
                        return Err(format!("the header `{}` cannot be sent", name.escape_debug()));
                    }
                }
            }
            other => return Err(format!("a parameter is in `{}`", other.escape_debug())),
        };
        let content = parameter.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.iter().next());
        let (style, schema) = match content {
            Some((media, of)) => {
                let style = if is_json(media) { Style::JSON } else { Style::SIMPLE };
                (style, of.get("schema"))
            }
            None if self.document.version == Version::Swagger2 => (old_style(parameter), None),
            None => (style(said("style"), is("explode"), &place)?, parameter.get("schema")),
        };
        self.declare(
            name,
            place,
            style,
            ParameterFields {
                required,
                schema,
                inline: Some(parameter),
                description: said("description"),
            },
        );
        Ok(())
    }

    fn declare(&mut self, name: &str, place: Place, style: Style, found: ParameterFields<'d>) {
        let suffix = match &place {
            Place::Path => "path",
            Place::Query => "query",
            Place::Header(_) => "header",
            Place::Cookie => "cookie",
        };
        let argument = self.argument(name, suffix);
        let ParameterFields { required, schema, inline, description } = found;
        let inline = inline.filter(|_| self.document.version == Version::Swagger2);
        self.parameters.push(DeclaredParameter {
            required: required || place == Place::Path,
            parameter: Parameter { argument, name: name.to_owned(), place, style },
            schema,
            inline,
            description,
        });
    }

    /// A unique name of an argument that models accept.
    pub(super) fn argument(&mut self, name: &str, suffix: &str) -> String {
        /// The limit of vendors' APIs.
        const LONGEST: usize = 64;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let mut plain: String =
            name.chars().take(LONGEST - 12).map(|c| if plain(c) { c } else { '_' }).collect();
        if plain.trim_matches('_').is_empty() {
            plain = "parameter".to_owned();
        } else if plain != name {
            plain = plain.trim_matches('_').to_owned();
        }
        let mut argument = plain.clone();
        let mut number = 1;
        while !self.arguments.insert(argument.clone()) {
            argument = match number {
                1 => format!("{plain}_{suffix}"),
                number => format!("{plain}_{number}"),
            };
            number += 1;
        }
        argument
    }

    /// The segments of a path. A place without a parameter becomes one.
    fn path(&mut self, path: &str) -> Result<Vec<Vec<Piece>>, String> {
        let mut segments = Vec::new();
        for segment in path.split('/').skip(1) {
            let (mut pieces, mut rest) = (Vec::new(), segment);
            while let Some((before, after)) = rest.split_once('{') {
                let (name, after) =
                    after.split_once('}').ok_or("its path has a `{` without `}`")?;
                if !before.is_empty() {
                    pieces.push(Piece::Literal(before.to_owned()));
                }
                let is_place = |one: &DeclaredParameter<'_>| {
                    one.parameter.place == Place::Path && one.parameter.name == name
                };
                let known = self.parameters.iter().position(is_place);
                let position = known.unwrap_or_else(|| {
                    let found = ParameterFields {
                        required: true,
                        schema: None,
                        inline: None,
                        description: "",
                    };
                    self.declare(name, Place::Path, Style::SIMPLE, found);
                    self.parameters.len() - 1
                });
                pieces.push(Piece::Place(position));
                rest = after;
            }
            if !rest.is_empty() {
                pieces.push(Piece::Literal(rest.to_owned()));
            }
            segments.push(pieces);
        }
        let places: HashSet<usize> = segments
            .iter()
            .flatten()
            .filter_map(|piece| match piece {
                Piece::Place(position) => Some(*position),
                Piece::Literal(_) => None,
            })
            .collect();
        for (position, one) in self.parameters.iter().enumerate() {
            if one.parameter.place == Place::Path && !places.contains(&position) {
                return Err(format!(
                    "its path has no place for `{}`",
                    one.parameter.name.escape_debug()
                ));
            }
        }
        Ok(segments)
    }
}

/// The style of a parameter.
pub(super) fn style(named: &str, explode: Option<bool>, place: &Place) -> Result<Style, String> {
    let kind = match (named, place) {
        ("simple" | "", Place::Path | Place::Header(_)) => StyleKind::Simple,
        ("label", Place::Path) => StyleKind::Label,
        ("matrix", Place::Path) => StyleKind::Matrix,
        ("form" | "", Place::Query | Place::Cookie) => StyleKind::Form,
        ("spaceDelimited", Place::Query) => StyleKind::Space,
        ("pipeDelimited", Place::Query) => StyleKind::Pipe,
        ("deepObject", Place::Query) => StyleKind::Deep,
        (other, _) => {
            return Err(format!(
                "a parameter has the style `{}`, which its place cannot have",
                other.escape_debug()
            ));
        }
    };
    let by_default = matches!(kind, StyleKind::Form | StyleKind::Deep);
    Ok(Style { kind, explode: explode.unwrap_or(by_default) })
}

/// The style of a parameter of Swagger 2.0.
pub(super) fn old_style(parameter: &Map<String, Value>) -> Style {
    let format = parameter.get("collectionFormat").and_then(Value::as_str).unwrap_or_default();
    let kind = match format {
        "ssv" => StyleKind::Space,
        "tsv" => StyleKind::Tab,
        "pipes" => StyleKind::Pipe,
        _ => StyleKind::Form,
    };
    Style { kind, explode: format == "multi" }
}
