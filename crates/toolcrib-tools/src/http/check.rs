//! Everything that can be said of an HTTP tool before it is called.

use std::{collections::HashSet, fmt::Display, sync::Arc};

use serde_json::Value;
use toolcrib_capabilities::http::{HeaderName, HttpClient, Method, is_set_by_client};
use toolcrib_core::{Capabilities, Tool, ToolContext};

use super::{
    HttpToolSpec,
    body::BodyTemplate,
    exchange::Exchange,
    headers::{HeaderTemplate, fits},
    run::Body,
    url::UrlTemplate,
};
use crate::{
    Declaration, ToolErrors,
    findings::{ErrorList, Field, Findings},
    making::{declare_or_use, properties},
    template::{Part, SECRET, Template, TemplateError},
};

pub(super) fn build(spec: HttpToolSpec, client: &HttpClient) -> Result<Tool, ToolErrors> {
    let secrets = Capabilities::none().secrets(spec.secrets().into_iter().map(|(_, name)| name));
    let CheckedRequest { declaration, body, found, .. } = read(spec, client, Names::Parameters);
    let name = declaration.name.clone();
    let body = Arc::new(body);
    let made = declaration
        .into_builder()
        .capabilities(secrets)
        .open_world()
        .handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
    found.or_tool(name, made)
}

/// The meaning of the names in placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    /// Parameters of a tool; each has to be used.
    Parameters,
    /// The fixed names of a hub's requests.
    #[cfg_attr(
        not(any(feature = "hub", feature = "openapi")),
        expect(dead_code, reason = "only hubs and documents use it")
    )]
    OfHub,
}

pub(crate) struct CheckedRequest {
    pub(crate) declaration: Declaration,
    /// Valid only without errors.
    pub(crate) body: Body,
    /// The properties of the schema that have a placeholder in it.
    #[cfg_attr(not(feature = "hub"), expect(dead_code, reason = "only hubs ask for it"))]
    pub(crate) used: Vec<String>,
    pub(crate) found: ErrorList,
}

/// Reads all places of a request.
pub(crate) fn read(spec: HttpToolSpec, client: &HttpClient, names: Names) -> CheckedRequest {
    let HttpToolSpec {
        mut declaration,
        method,
        url,
        headers,
        idempotency_header,
        body,
        pointer,
        max_body_bytes,
        max_redirects,
    } = spec;
    declaration.close_schema();
    let read_only = declaration.annotations.read_only;
    let mut check = Check::new(&declaration, names);
    check.method(&method);
    let url = check.url(&url);
    let headers = check.headers(headers);
    let idempotency_header = check.idempotency_header(idempotency_header, &headers);
    let body = check.body(&method, body.as_ref());
    check.pointer(&method, pointer.as_deref());
    if max_body_bytes == 0 {
        let field = Field::new("`max_body_bytes`", "/max_body_bytes");
        check.wrong(&field, None, "it is 0; it must be at least 1");
    }
    let Check { mut found, .. } = check;
    let used = found.parameters.used();
    if names == Names::Parameters {
        found.report_unused(|name| {
            format!("nothing uses it; write `{{{name}}}` where it belongs, or drop it")
        });
    }
    let found = found.finish();
    let body = Body {
        exchange: Exchange {
            client: client.clone(),
            pointer,
            max_body_bytes,
            max_redirects,
            read_only,
        },
        method,
        // Where it could not be read, there is an error, and so no tool.
        url: url.unwrap_or_default(),
        headers,
        idempotency_header,
        body,
    };
    CheckedRequest { declaration, body, used, found }
}

/// A header.
pub(crate) fn header_field(name: &str) -> Field {
    Field::entry(format!("the header `{}`", name.escape_debug()), "headers", name)
}

pub(super) struct Check<'a> {
    found: Findings<'a>,
    names: Names,
    /// The parameters that a call may leave out.
    optional: HashSet<&'a str>,
}

impl<'a> Check<'a> {
    fn new(declaration: &'a Declaration, names: Names) -> Self {
        let schema = &declaration.input_schema;
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let all = properties(schema).map(|(name, _)| name);
        let optional = all.filter(|name| !is_required(name)).collect();
        Self { found: Findings::of(declaration), names, optional }
    }

    pub(super) fn wrong(&mut self, field: &Field, offset: Option<usize>, message: impl Display) {
        self.found.wrong(field, offset, message);
    }

    /// Reads a text with placeholders, and notes the parameters in it; `None` after an error.
    pub(super) fn template(
        &mut self,
        field: &Field,
        text: &str,
        parse: fn(&str) -> Result<Template, TemplateError>,
    ) -> Option<Template> {
        let template = self.found.template(field, parse(text))?;
        for (parameter, offset) in template.params() {
            if let Err(declared) = self.found.parameters.uses(parameter) {
                let (message, help) = self.unknown(field, parameter, &declared);
                self.found.wrong_with(field, Some(offset), message, help);
            }
        }
        Some(template)
    }

    /// The message and help on a placeholder for an unknown name.
    fn unknown(&self, field: &Field, name: &str, known: &[String]) -> (String, Option<String>) {
        let is_secret = self.found.source.is_secret(name);
        match self.names {
            Names::OfHub => {
                let known = known.join("`, `");
                let message = format!("there is no place `{name}` here; use one of `{known}`");
                (message, is_secret.then(|| format!("write `{{secret:{name}}}`, in a header")))
            }
            Names::Parameters if is_secret => {
                let help = match field.is_in("headers") {
                    true => format!("write `{{secret:{name}}}`"),
                    false => "no secret is allowed here; give it in a header".to_owned(),
                };
                (format!("`{name}` is a secret"), Some(help))
            }
            Names::Parameters => {
                (format!("there is no parameter `{name}`; {}", declare_or_use(known)), None)
            }
        }
    }

    fn method(&mut self, method: &Method) {
        if matches!(*method, Method::CONNECT | Method::TRACE) {
            let field = Field::new("the method", "/method");
            let message =
                format!("`{method}` is not for asking; use GET, POST, PUT, PATCH or DELETE");
            self.wrong(&field, None, message);
        }
    }

    fn url(&mut self, text: &str) -> Option<UrlTemplate> {
        if self.found.is_unreadable(text) {
            return None;
        }
        let field = Field::new("the URL", "/url");
        if let Some(offset) = text.find(SECRET) {
            // The author means the secret, and the word would be sent.
            self.found.template(&field, Err(TemplateError::SecretNotHere { offset }));
            return None;
        }
        let template = self.template(&field, text, Template::parse)?;
        match UrlTemplate::read(&template) {
            Ok(url) => {
                for (parameter, offset) in url.in_path() {
                    if self.optional.contains(parameter) {
                        let message = format!(
                            "`{parameter}` is part of the path and optional; make it required"
                        );
                        self.wrong(&field, Some(offset), message);
                    }
                }
                Some(url)
            }
            Err((offset, message)) => {
                self.wrong(&field, offset, message);
                None
            }
        }
    }

    fn headers(&mut self, headers: Vec<(String, String)>) -> Vec<HeaderTemplate> {
        let mut read: Vec<HeaderTemplate> = Vec::with_capacity(headers.len());
        for (name, text) in headers {
            let field = header_field(&name);
            let value = self.template(&field, &text, Template::parse_with_secrets);
            let Ok(name) = HeaderName::try_from(name) else {
                self.wrong(&field.key(), None, "this is not a valid header name");
                continue;
            };
            if is_set_by_client(&name) {
                let message = "this header is set by the client alone; leave it out";
                self.wrong(&field.key(), None, message);
            } else if read.iter().any(|other| other.name == name) {
                let message =
                    "this header is declared twice; a header's upper and lower case are the same";
                self.wrong(&field.key(), None, message);
            } else if let Some(value) = value {
                let literals_fit = value.parts().iter().all(|part| match part {
                    Part::Literal(literal) => fits(literal),
                    Part::Param { .. } | Part::Secret { .. } => true,
                });
                if !literals_fit {
                    let message =
                        "a header's value must not contain line ends and other control characters";
                    self.wrong(&field, None, message);
                }
                read.push(HeaderTemplate { name, value });
            }
        }
        read
    }

    fn idempotency_header(
        &mut self,
        name: Option<String>,
        headers: &[HeaderTemplate],
    ) -> Option<HeaderName> {
        let name = name?;
        let field = Field::new("`idempotency_header`", "/idempotency_header");
        let problem = match HeaderName::try_from(name) {
            Err(_) => "it is not a valid header name; write `Idempotency-Key`",
            Ok(name) if is_set_by_client(&name) => "this header is set by the client alone",
            Ok(name) if headers.iter().any(|other| other.name == name) => {
                "`headers` has this header too; keep one of them"
            }
            Ok(name) => return Some(name),
        };
        self.wrong(&field, None, problem);
        None
    }

    fn body(&mut self, method: &Method, body: Option<&Value>) -> Option<BodyTemplate> {
        let body = body?;
        if matches!(*method, Method::GET | Method::HEAD) {
            let message =
                format!("a {method} has no body; put the arguments into the query, or use POST");
            self.wrong(&Field::new("the body", "/body"), None, message);
        }
        BodyTemplate::read(body, self)
    }

    fn pointer(&mut self, method: &Method, pointer: Option<&str>) {
        let Some(pointer) = pointer else { return };
        let field = Field::new("`pointer`", "/pointer");
        if !is_pointer(pointer) {
            let message = "this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a \
                           key and `~0` for a `~`";
            let help = as_pointer(pointer).map(|meant| format!("did you mean `{meant}`?"));
            self.found.wrong_with(&field, None, message, help);
        }
        if *method == Method::HEAD {
            let message = "the answer to a HEAD has no body to point into; use GET, or drop it";
            self.wrong(&field, None, message);
        }
    }
}

/// The JSON pointer that is probably meant by a path in another notation: `data.days[0]`,
/// `$.data`, `data/days`.
fn as_pointer(path: &str) -> Option<String> {
    let path = path.strip_prefix('$').unwrap_or(path);
    let is_step = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let steps = path.split(['.', '/', '[', ']']).map(|step| step.trim_matches(['"', '\'']));
    let steps: Vec<_> = steps.filter(|step| !step.is_empty()).collect();
    let is_plain = !steps.is_empty() && steps.iter().all(|step| step.chars().all(is_step));
    is_plain.then(|| format!("/{}", steps.join("/")))
}

pub(crate) fn is_pointer(text: &str) -> bool {
    let escapes_end = |rest: &str| rest.starts_with(['0', '1']);
    (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(escapes_end)
}
