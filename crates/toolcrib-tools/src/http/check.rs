//! Everything that can be said of an HTTP tool before it is called.

use std::{collections::HashSet, sync::Arc};

use serde_json::Value;
use toolcrib_core::{Capabilities, Tool, ToolContext};
use toolcrib_scope::http::{HeaderName, HttpClient, Method, is_set_by_client};

use super::{
    HttpToolSpec,
    body::BodyTemplate,
    error::{HttpToolError, HttpToolErrors, HttpToolPart, HttpToolProblem},
    headers::{HeaderTemplate, fits},
    run::Body,
    url::UrlTemplate,
};
use crate::{
    Declaration,
    making::{Parameters, ToolErrors, properties},
    template::{Part, SECRET, Template, TemplateError},
};

pub(super) fn build(spec: HttpToolSpec, client: &HttpClient) -> Result<Tool, HttpToolErrors> {
    let secrets = Capabilities::none().secrets(spec.secrets().into_iter().map(|(_, name)| name));
    let Read { declaration, body, used: _, unused, mut errors } = read(spec, client);
    for parameter in unused {
        let problem = HttpToolProblem::UnusedParameter { parameter: parameter.clone() };
        errors.push(HttpToolError {
            part: HttpToolPart::Parameter(parameter),
            offset: None,
            problem,
        });
    }
    let name = declaration.name.clone();
    let body = Arc::new(body);
    let made = declaration
        .into_builder()
        .capabilities(secrets)
        .open_world()
        .handler(move |args: Value, cx: ToolContext| Arc::clone(&body).call(args, cx));
    ToolErrors::or_tool(name, errors, made)
}

/// What a declared request comes to.
pub(crate) struct Read {
    pub(crate) declaration: Declaration,
    /// Of use where there are no errors.
    pub(crate) body: Body,
    /// The properties of the schema that have a place in it, and those that have none.
    #[cfg_attr(not(feature = "hub"), expect(dead_code, reason = "only hubs ask for it"))]
    pub(crate) used: Vec<String>,
    pub(crate) unused: Vec<String>,
    pub(crate) errors: Vec<HttpToolError>,
}

/// Reads all places of a request.
pub(crate) fn read(spec: HttpToolSpec, client: &HttpClient) -> Read {
    let HttpToolSpec {
        mut declaration,
        method,
        url,
        headers,
        body,
        pointer,
        max_body_bytes,
        max_redirects,
    } = spec;
    declaration.close_schema();
    let read_only = declaration.annotations.read_only;
    let mut check = Check::new(&declaration.input_schema);
    check.method(&method);
    let url = check.url(&url);
    let headers = check.headers(headers);
    let body = check.body(&method, body.as_ref());
    check.pointer(&method, pointer.as_deref());
    if max_body_bytes == 0 {
        check.wrong(HttpToolPart::MaxBodyBytes, None, HttpToolProblem::NoBytes);
    }
    let Check { parameters, errors, .. } = check;
    let (used, unused) = (parameters.used(), parameters.unused());
    let body = Body {
        client: client.clone(),
        method,
        // Where it could not be read, there is an error, and so no tool.
        url: url.unwrap_or_default(),
        headers,
        body,
        pointer,
        max_body_bytes,
        max_redirects,
        read_only,
    };
    Read { declaration, body, used, unused, errors }
}

/// What is found while the parts are read.
pub(super) struct Check<'a> {
    parameters: Parameters<'a>,
    /// Those that a call may leave out.
    optional: HashSet<&'a str>,
    errors: Vec<HttpToolError>,
}

impl<'a> Check<'a> {
    fn new(schema: &'a Value) -> Self {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let names = properties(schema).map(|(name, _)| name);
        Self {
            parameters: Parameters::of(schema),
            optional: names.filter(|name| !is_required(name)).collect(),
            errors: Vec::new(),
        }
    }

    pub(super) fn wrong(
        &mut self,
        part: HttpToolPart,
        offset: Option<usize>,
        problem: HttpToolProblem,
    ) {
        self.errors.push(HttpToolError { part, offset, problem });
    }

    /// Reads a text with places, and notes the parameters in it; none where it cannot be read.
    pub(super) fn template(
        &mut self,
        part: HttpToolPart,
        text: &str,
        parse: fn(&str) -> Result<Template, TemplateError>,
    ) -> Option<Template> {
        let template = match parse(text) {
            Ok(template) => template,
            Err(error) => {
                self.parameters.not_all_read();
                self.wrong(part, Some(error.offset()), error.into());
                return None;
            }
        };
        for (parameter, offset) in template.params() {
            if let Err(declared) = self.parameters.uses(parameter) {
                let parameter = parameter.to_owned();
                let problem = HttpToolProblem::UnknownParameter { parameter, declared };
                self.wrong(part.clone(), Some(offset), problem);
            }
        }
        Some(template)
    }

    fn method(&mut self, method: &Method) {
        if matches!(*method, Method::CONNECT | Method::TRACE) {
            let problem = HttpToolProblem::Method { method: method.to_string() };
            self.wrong(HttpToolPart::Method, None, problem);
        }
    }

    fn url(&mut self, text: &str) -> Option<UrlTemplate> {
        if let Some(offset) = text.find(SECRET) {
            // Whoever writes it means the secret, and the word would be sent.
            self.parameters.not_all_read();
            let problem = TemplateError::SecretNotHere { offset }.into();
            self.wrong(HttpToolPart::Url, Some(offset), problem);
            return None;
        }
        let template = self.template(HttpToolPart::Url, text, Template::parse)?;
        match UrlTemplate::read(&template) {
            Ok(url) => {
                for (parameter, offset) in url.in_path() {
                    if self.optional.contains(parameter) {
                        let parameter = parameter.to_owned();
                        let problem = HttpToolProblem::OptionalInPath { parameter };
                        self.wrong(HttpToolPart::Url, Some(offset), problem);
                    }
                }
                Some(url)
            }
            Err((offset, problem)) => {
                self.wrong(HttpToolPart::Url, offset, problem);
                None
            }
        }
    }

    fn headers(&mut self, headers: Vec<(String, String)>) -> Vec<HeaderTemplate> {
        let mut read: Vec<HeaderTemplate> = Vec::with_capacity(headers.len());
        for (position, (name, text)) in headers.into_iter().enumerate() {
            let part = HttpToolPart::Header { position, name };
            let HttpToolPart::Header { name, .. } = &part else { continue };
            let name = HeaderName::try_from(name);
            let value = self.template(part.clone(), &text, Template::parse_with_secrets);
            let Ok(name) = name else {
                self.wrong(part, None, HttpToolProblem::HeaderName);
                continue;
            };
            if is_set_by_client(&name) {
                self.wrong(part, None, HttpToolProblem::HeaderOfClient);
            } else if read.iter().any(|other| other.name == name) {
                self.wrong(part, None, HttpToolProblem::HeaderTwice);
            } else if let Some(value) = value {
                let literals_fit = value.parts().iter().all(|part| match part {
                    Part::Literal(literal) => fits(literal),
                    Part::Param { .. } | Part::Secret { .. } => true,
                });
                if !literals_fit {
                    self.wrong(part, None, HttpToolProblem::HeaderValue);
                }
                read.push(HeaderTemplate { name, value });
            }
        }
        read
    }

    fn body(&mut self, method: &Method, body: Option<&Value>) -> Option<BodyTemplate> {
        let body = body?;
        if matches!(*method, Method::GET | Method::HEAD) {
            let problem = HttpToolProblem::BodyNotAllowed { method: method.to_string() };
            self.wrong(HttpToolPart::Body(String::new()), None, problem);
        }
        BodyTemplate::read(body, self)
    }

    fn pointer(&mut self, method: &Method, pointer: Option<&str>) {
        let Some(pointer) = pointer else { return };
        if !is_pointer(pointer) {
            self.wrong(HttpToolPart::Pointer, None, HttpToolProblem::Pointer);
        }
        if *method == Method::HEAD {
            self.wrong(HttpToolPart::Pointer, None, HttpToolProblem::PointerIntoHead);
        }
    }
}

pub(crate) fn is_pointer(text: &str) -> bool {
    let escapes_end = |rest: &str| rest.starts_with(['0', '1']);
    (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(escapes_end)
}
