//! The body: one call, one request.

use std::{borrow::Cow, fmt::Write as _, slice, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};
use toolcrib_capabilities::http::{HeaderMap, HeaderValue, HttpRequest, header};
use toolcrib_core::{BoxFuture, ToolBody, ToolContext, ToolError, ToolOutput};
use uuid::Uuid;

use super::{
    plan::{Body, BodyKind, Parameter, Part, Piece, Place, Plan},
    security,
    serialize::{Style, in_header, in_path, pairs},
};
use crate::{
    arguments::{argument_text, present, refused},
    http::{
        exchange::Exchange,
        headers::{self, HeaderTemplate, fits},
        run::set_by_default,
        url::{check_path, encode},
    },
};

/// The handler of a tool.
pub(super) struct Call {
    pub(super) exchange: Exchange,
    pub(super) plan: Plan,
    /// The headers of the project.
    pub(super) headers: Vec<HeaderTemplate>,
}

impl ToolBody for Call {
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let client = self.exchange.client(&cx)?;
            let request = self.request(&args, &cx).await?;
            self.exchange.send(&client, request, &cx).await
        })
    }
}

/// The parts of a request that may contain secrets.
struct Parts {
    query: Vec<String>,
    cookies: Vec<String>,
    headers: HeaderMap,
    has_secret_cookie: bool,
}

impl Call {
    async fn request(&self, args: &Value, cx: &ToolContext) -> Result<HttpRequest, ToolError> {
        let Plan { method, server, parameters, body, accept, .. } = &self.plan;
        let path = self.path(args)?;
        let mut parts = Parts {
            query: self.plan.query.clone(),
            cookies: Vec::new(),
            headers: HeaderMap::new(),
            has_secret_cookie: false,
        };
        for parameter in parameters {
            parts.add(parameter, args)?;
        }
        let content = match body {
            Some(body) => args.get(&body.argument).map(|value| content(body, value)),
            None => None,
        };
        let content = content.transpose()?;
        // Requested last, so that no call that cannot be made asks for one.
        let filled: Vec<_> =
            self.headers.iter().map(|one| one.fill(args)).collect::<Result<_, _>>()?;
        let filled: Vec<_> = filled.into_iter().flatten().collect();
        let of_project = headers::with_secrets(&filled, cx).await?;
        for credential in &self.plan.credentials {
            parts.add_credential(credential, cx).await?;
        }
        parts.headers.extend(of_project);
        let Parts { query, cookies, mut headers, has_secret_cookie } = parts;
        if !cookies.is_empty()
            && let Ok(mut value) = HeaderValue::try_from(cookies.join("; "))
        {
            value.set_sensitive(has_secret_cookie);
            headers.insert(header::COOKIE, value);
        }
        let mut url = format!("{server}{path}");
        if !query.is_empty() {
            url.push('?');
            url.push_str(&query.join("&"));
        }
        let mut request = HttpRequest::new(method.clone(), url);
        request.headers = headers;
        if let Some((content_type, content)) = content {
            set_by_default(&mut request.headers, header::CONTENT_TYPE, &content_type);
            request.body = Some(content.into());
        }
        set_by_default(&mut request.headers, header::ACCEPT, accept);
        self.exchange.limit(&mut request);
        Ok(request)
    }

    fn path(&self, args: &Value) -> Result<String, ToolError> {
        let mut path = String::new();
        for segment in &self.plan.path {
            let (mut filled, mut place) = (String::new(), None);
            for piece in segment {
                match piece {
                    Piece::Literal(text) => literal(&mut filled, text),
                    Piece::Place(position) => {
                        let Some(parameter) = self.plan.parameters.get(*position) else { continue };
                        let argument = &parameter.argument;
                        place = Some(argument);
                        let value = present(args, argument)
                            .ok_or_else(|| refused(argument, "must be given"))?;
                        check_texts(argument, value)?;
                        filled.push_str(&in_path(&parameter.name, parameter.style, value));
                    }
                }
            }
            match place {
                // Readers of URLs remove such segments, and the path would be another one.
                Some(name) if filled.is_empty() => return Err(refused(name, "must not be empty")),
                Some(name) => check_path(name, &filled)?,
                None => {}
            }
            path.push('/');
            path.push_str(&filled);
        }
        Ok(path)
    }
}

impl Parts {
    fn add(&mut self, parameter: &Parameter, args: &Value) -> Result<(), ToolError> {
        let Parameter { argument, name, place, style } = parameter;
        let Some(value) = present(args, argument) else { return Ok(()) };
        match place {
            Place::Path => {}
            Place::Query => self.query.extend(pairs(name, *style, value)),
            Place::Cookie => self.cookies.extend(pairs(name, *style, value)),
            Place::Header(name) => {
                let text = in_header(*style, value);
                let value = fits(&text).then(|| HeaderValue::from_bytes(text.as_bytes()).ok());
                let value = value.flatten().ok_or_else(|| {
                    let problem = "contains a line end or another control character, which cannot \
                                   be sent";
                    refused(argument, problem)
                })?;
                self.headers.insert(name.clone(), value);
            }
        }
        Ok(())
    }

    async fn add_credential(
        &mut self,
        credential: &security::Credential,
        cx: &ToolContext,
    ) -> Result<(), ToolError> {
        let secret = cx.secret(&credential.secret).await?;
        let (name, text) = match &credential.place {
            security::Place::Bearer => {
                (header::AUTHORIZATION, format!("Bearer {}", secret.expose()))
            }
            security::Place::Basic => {
                let both = secret.expose();
                let both = if both.contains(':') { both.to_owned() } else { format!("{both}:") };
                (header::AUTHORIZATION, format!("Basic {}", BASE64_STANDARD.encode(both)))
            }
            security::Place::Header(name) => (name.clone(), secret.expose().to_owned()),
            security::Place::Query(name) => {
                let value = Value::from(secret.expose());
                self.query.extend(pairs(name, Style::FORM, &value));
                return Ok(());
            }
            security::Place::Cookie(name) => {
                let value = Value::from(secret.expose());
                self.cookies.extend(pairs(name, Style::FORM, &value));
                self.has_secret_cookie = true;
                return Ok(());
            }
        };
        let mut value = HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
            ToolError::not_set_up("a credential").caused_by(format!(
                "the secret `{}` contains a line end or another control character",
                credential.secret
            ))
        })?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }
}

/// Checks each text of a value for the path; its depth is that of the arguments, which is bounded.
fn check_texts(argument: &str, value: &Value) -> Result<(), ToolError> {
    match value {
        Value::String(text) => check_path(argument, text),
        Value::Array(items) => items.iter().try_for_each(|item| check_texts(argument, item)),
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            check_path(argument, key)?;
            check_texts(argument, value)
        }),
        _ => Ok(()),
    }
}

/// The media type and the bytes of a body.
fn content<'b>(body: &'b Body, value: &Value) -> Result<(Cow<'b, str>, String), ToolError> {
    let media = Cow::from(&body.content_type);
    match (&body.kind, value) {
        (BodyKind::Json, value) => Ok((media, value.to_string())),
        (BodyKind::Text, value) => Ok((media, argument_text(value).into_owned())),
        (BodyKind::Form(styles), Value::Object(fields)) => {
            let style = |name: &str, value: &Value| {
                let known = styles.iter().find(|(known, _)| known == name);
                let by_default = if value.is_object() { Style::JSON } else { Style::FORM };
                known.map_or(by_default, |(_, style)| *style)
            };
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let pairs = fields.flat_map(|(name, value)| pairs(name, style(name, value), value));
            Ok((media, pairs.collect::<Vec<_>>().join("&")))
        }
        (BodyKind::Multipart(parts), Value::Object(fields)) => {
            // Random, so that no value contains it.
            let boundary = Uuid::new_v4().simple().to_string();
            let media = format!("{media}; boundary={boundary}").into();
            Ok((media, multipart(parts, fields, &boundary)))
        }
        (BodyKind::Form(_) | BodyKind::Multipart(_), _) => {
            Err(refused(&body.argument, "must be an object"))
        }
    }
}

/// The parts of RFC 7578. A list is several parts of one name.
fn multipart(parts: &[Part], fields: &Map<String, Value>, boundary: &str) -> String {
    let mut form = String::new();
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let part = parts.iter().find(|part| part.name == *name);
        let media = part.and_then(|part| part.media.as_deref());
        let items = match value {
            Value::Array(items) if media.is_none() => items.as_slice(),
            one => slice::from_ref(one),
        };
        // As browsers escape it.
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        for item in items {
            let _ = write!(form, "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
            let is_file = part.is_some_and(|part| part.is_file);
            if is_file {
                let _ = write!(form, "; filename=\"{name}\"");
            }
            // Some servers fail at a file without a type.
            let by_default = match item {
                _ if is_file => Some("application/octet-stream"),
                Value::Object(_) | Value::Array(_) => Some("application/json"),
                _ => None,
            };
            if let Some(media) = media.or(by_default) {
                let _ = write!(form, "\r\nContent-Type: {media}");
            }
            let _ = write!(form, "\r\n\r\n{}\r\n", argument_text(item));
        }
    }
    let _ = write!(form, "--{boundary}--\r\n");
    form
}

/// Text of the document in a path: it may be percent-encoded already.
fn literal(into: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '|') {
            into.push(c);
        } else {
            encode(into, c.encode_utf8(&mut [0; 4]));
        }
    }
}
