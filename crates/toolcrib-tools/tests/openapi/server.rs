//! A server that checks each request against its document, and secrets for tests.

use std::{
    collections::HashMap,
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
};
use serde_json::{Value, json};
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{Secret, SecretError, Secrets, Tool, ToolContextParts, ToolError, ToolOutput};

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

struct Shared {
    document: Value,
    asked: Mutex<Vec<Asked>>,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// `document` is JSON.
    pub(crate) async fn of(document: Value) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { document, asked: Mutex::default() });
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, shared, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The last request.
    pub(crate) fn last(&self) -> Asked {
        self.shared.asked.lock().unwrap().last().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.asked.lock().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 1], String) {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let asked = Asked { line: format!("{method} {uri}"), headers, body };
    let problem = problem(&shared.document, &method, &uri, &asked);
    shared.asked.lock().unwrap().push(asked);
    let json = [("content-type", "application/json")];
    match problem {
        None if method == Method::DELETE => (StatusCode::NO_CONTENT, json, String::new()),
        None if method == Method::GET => {
            (StatusCode::OK, json, "[{\"id\":1,\"note\":null}]".to_owned())
        }
        None => (StatusCode::OK, json, "{}".to_owned()),
        Some(problem) => (StatusCode::UNPROCESSABLE_ENTITY, json, json!(problem).to_string()),
    }
}

/// A contradiction to the document: path, missing parameters, unknown ones, types, security, body.
fn problem(document: &Value, method: &Method, uri: &Uri, asked: &Asked) -> Option<String> {
    let path = uri.path().strip_prefix("/v1")?;
    let segments: Vec<&str> = path.split('/').collect();
    let paths = document["paths"].as_object()?;
    let fits = |template: &str| {
        let names: Vec<&str> = template.split('/').collect();
        names.len() == segments.len()
            && names.iter().zip(&segments).all(|(name, is)| name.starts_with('{') || name == is)
    };
    let Some((template, item)) = paths.iter().find(|(template, _)| fits(template)) else {
        return Some(format!("there is no path {path}"));
    };
    let operation = &item[method.as_str().to_lowercase()];
    if operation.is_null() {
        return Some(format!("{template} has no {method}"));
    }
    let all = [&item["parameters"], &operation["parameters"]];
    let parameters: Vec<&Value> = all
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .map(|one| resolve(document, one))
        .collect();
    let query: Vec<(String, String)> = url_pairs(uri.query().unwrap_or_default());
    for parameter in &parameters {
        let name = parameter["name"].as_str().unwrap();
        let is_there = match parameter["in"].as_str().unwrap() {
            "query" => query.iter().any(|(key, _)| base(key) == base(name)),
            "header" => asked.headers.contains_key(name),
            _ => true,
        };
        if !is_there && parameter["required"] == true {
            return Some(format!("{name} is missing"));
        }
        if parameter["in"] == "query" && parameter["schema"]["type"] == "integer" {
            let value = query.iter().find(|(key, _)| key == name);
            if value.is_some_and(|(_, value)| value.parse::<i64>().is_err()) {
                return Some(format!("{name} is not an integer"));
            }
        }
    }
    let is_key = |key: &str| key == "api_key";
    for (key, _) in &query {
        let known = parameters.iter().any(|one| base(one["name"].as_str().unwrap()) == base(key));
        if !known && !is_key(key) {
            return Some(format!("{key} is unknown"));
        }
    }
    let security = operation.get("security").unwrap_or(&document["security"]);
    let needed = security[0].as_object().into_iter().flat_map(|all| all.keys());
    for scheme in needed {
        let scheme = &document["components"]["securitySchemes"][scheme];
        let authorization = asked.header("authorization");
        let is_there = match (scheme["scheme"].as_str(), scheme["in"].as_str()) {
            (Some("bearer"), _) => authorization.starts_with("Bearer "),
            (Some("basic"), _) => authorization.starts_with("Basic "),
            (_, Some("query")) => query.iter().any(|(key, _)| is_key(key)),
            (_, Some("cookie")) => asked.header("cookie").contains("sid="),
            _ => !asked.header("x-key").is_empty(),
        };
        if !is_there {
            return Some("the credential is missing".to_owned());
        }
    }
    let content = operation["requestBody"]["content"].as_object();
    let media = content.and_then(|content| content.iter().next());
    match media {
        None if asked.body.is_empty() => None,
        None => Some("it has a body".to_owned()),
        Some((media, _)) if asked.body.is_empty() => {
            (operation["requestBody"]["required"] == true).then(|| format!("{media} is missing"))
        }
        Some((media, _)) if asked.header("content-type").split(';').next() != Some(media) => {
            Some(format!("its type is {}", asked.header("content-type")))
        }
        Some((media, of)) if media == "application/json" => {
            let body: Value = serde_json::from_str(&asked.body).ok()?;
            let schema = resolve(document, &of["schema"]);
            let properties = schema["properties"].as_object().unwrap();
            let unknown = body.as_object()?.keys().find(|key| !properties.contains_key(*key));
            let read_only =
                body.as_object()?.keys().find(|key| properties[*key]["readOnly"] == true);
            unknown.or(read_only).map(|key| format!("{key} does not belong there"))
        }
        // The tests read the parts themselves.
        Some((media, _)) if media != "application/x-www-form-urlencoded" => None,
        Some(_) => {
            let pairs = url_pairs(&asked.body);
            let has =
                pairs.iter().any(|(key, value)| key == "amount" && value.parse::<i64>().is_ok());
            (!has).then(|| "the amount is missing".to_owned())
        }
    }
}

fn base(name: &str) -> &str {
    name.split('[').next().unwrap()
}

fn url_pairs(text: &str) -> Vec<(String, String)> {
    let decoded =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap()).map(|(a, b)| (decoded(a), decoded(b))).collect()
}

fn resolve<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => value,
    }
}

/// A client that dials this machine.
pub(crate) fn client() -> HttpClient {
    HttpClient::builder().allow_addresses(["127.0.0.1/32".parse().unwrap()]).build()
}

/// Every secret is `user:pass-word`, but for `BROKEN`.
#[derive(Debug, Default)]
pub(crate) struct Vault(pub(crate) Mutex<HashMap<String, usize>>);

impl Secrets for Vault {
    fn resolve<'a>(
        &'a self,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Secret, SecretError>> + Send + 'a>> {
        *self.0.lock().unwrap().entry(name.to_owned()).or_default() += 1;
        Box::pin(async move {
            Ok(Secret::new(if name == "BROKEN" { "a\r\nX-Evil: 1" } else { "user:pass-word" }))
        })
    }
}

/// Calls with secrets.
pub(crate) async fn call(tool: &Tool, args: Value) -> Result<ToolOutput, ToolError> {
    call_with(tool, args, &Arc::default()).await
}

pub(crate) async fn call_with(
    tool: &Tool,
    args: Value,
    vault: &Arc<Vault>,
) -> Result<ToolOutput, ToolError> {
    let secrets: Arc<dyn Secrets> = Arc::clone(vault) as _;
    let parts = ToolContextParts { secrets: Some(secrets), ..ToolContextParts::detached() };
    tool.call(args, parts.into()).await
}
