//! The person of a run as the client of its MCP servers: their requests become questions.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    BoxFuture, CancellationToken, ClientAbilities, ClientPort, ClientRefusal, TurnEvents, harmless,
};

use super::questions::{NotAnsweredError, Question, QuestionContext, Questions};
use crate::secrets::Redactor;

/// The limits of questions of servers in one turn and in one call.
const MOST_QUESTIONS: usize = 20;
const MOST_PER_CALL: usize = 5;

/// The limit of the length of a URL, which a person has to read.
const LONGEST_URL: usize = 2_048;

/// How long a person may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10 * 60);

/// The limit of a message of a server, in characters.
const MOST_CHARS: usize = 2_000;

/// Words in the names of fields that a form may not ask for: a person must not give a secret to a
/// server through a program.
const SECRETS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "privatekey",
    "credential",
    "cvv",
    "cvc",
    "ssn",
    "otp",
];

/// Asks the questions of a turn for servers.
pub(crate) struct Person {
    pub(crate) questions: Questions,
    pub(crate) events: Arc<TurnEvents>,
    pub(crate) redactor: Redactor,
    pub(crate) cancellation: CancellationToken,
    pub(crate) roots: Option<Arc<std::path::Path>>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl ClientPort for Person {
    fn abilities(&self, _: &str) -> ClientAbilities {
        let mut can = ClientAbilities::default();
        (can.elicitation_form, can.elicitation_url) = (true, true);
        can.roots = self.roots.is_some();
        can.in_session = true;
        can
    }

    fn key(&self) -> usize {
        Arc::as_ptr(&self.events).addr()
    }

    fn most_requests(&self) -> usize {
        MOST_PER_CALL
    }

    fn shows_required_urls(&self) -> bool {
        true
    }

    /// Rules must name the servers that learn the roots.
    fn needs_rule(&self) -> bool {
        true
    }

    fn request(
        &self,
        server: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        let (questions, events) = (self.questions.clone(), Arc::clone(&self.events));
        let (redactor, cancellation) = (self.redactor.clone(), self.cancellation.clone());
        let (asked, roots) = (Arc::clone(&self.asked), self.roots.clone());
        Box::pin(async move {
            let asking = QuestionContext {
                questions: Some(&questions),
                events: &events,
                redactor: &redactor,
                iteration: 0,
                cancellation: &cancellation,
            };
            let mut answers = Map::new();
            for (key, request) in requests {
                let params = request.get("params").cloned().unwrap_or_default();
                let answer = match request.get("method").and_then(Value::as_str) {
                    Some("elicitation/create") => {
                        if asked.fetch_add(1, Ordering::Relaxed) >= MOST_QUESTIONS {
                            let problem = "this run has asked its person often enough";
                            return Err(ClientRefusal::not_supported(problem));
                        }
                        elicited(&asking, &server, &params).await?
                    }
                    Some("roots/list") => {
                        let uri = roots.as_deref().and_then(file_uri);
                        json!({ "roots": uri.map(|uri| json!({ "uri": uri })).as_slice() })
                    }
                    _ => return Err(ClientRefusal::not_supported("there is no model to sample")),
                };
                answers.insert(key, answer);
            }
            Ok(answers)
        })
    }
}

/// Asks a person, by the operator's name of the server.
async fn elicited(
    asking: &QuestionContext<'_>,
    server: &Arc<str>,
    params: &Value,
) -> Result<Value, ClientRefusal> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
    let message: String = harmless(text("message")).chars().take(MOST_CHARS).collect();
    let is_url = text("mode") == "url";
    let mode = if is_url { "url" } else { "form" };
    let payload =
        json!({ "kind": "elicitation", "server": &**server, "message": message, "mode": mode });
    let with = |key: &str, value: Value| {
        let mut fields = payload.as_object().cloned().unwrap_or_default();
        fields.insert(key.to_owned(), value);
        Value::Object(fields)
    };
    let (payload, schema) = if is_url {
        let url = shown_url(text("url"))?;
        let schema = json!({ "type": "object", "properties": { "action": action() }, "required": ["action"] });
        (with("url", url.into()), schema)
    } else {
        let schema = params.get("requestedSchema").cloned().unwrap_or_else(|| json!({}));
        if let Some(field) = secret_field(&schema) {
            let problem =
                format!("the field `{field}` may be a secret, which is not asked for here");
            return Err(ClientRefusal { code: -32_602, message: problem });
        }
        let payload = with("requested_schema", schema.clone());
        let schema = json!({
            "type": "object",
            "properties": { "action": action(), "content": schema },
            "required": ["action"],
        });
        (payload, schema)
    };
    let reason = format!("MCP server `{server}` asks: {message}");
    let question =
        Question::new(reason).payload(payload).answer_schema(schema).timeout(ANSWERS_WITHIN);
    match asking.ask(question).await {
        Ok(answer) => {
            let action = answer.get("action").and_then(Value::as_str).unwrap_or("cancel");
            if action != "accept" || is_url {
                return Ok(json!({ "action": action }));
            }
            let content = answer.get("content").cloned().unwrap_or_else(|| json!({}));
            Ok(json!({ "action": action, "content": content }))
        }
        Err(NotAnsweredError::Rejected { .. }) => Ok(json!({ "action": "decline" })),
        Err(NotAnsweredError::Invalid { problem, .. }) => Err(ClientRefusal {
            code: -32_602,
            message: format!("the form cannot be shown: {problem}"),
        }),
        Err(_) => Ok(json!({ "action": "cancel" })),
    }
}

fn action() -> Value {
    json!({ "enum": ["accept", "decline", "cancel"] })
}

/// The name of a field that may be a secret, by its name, its title or its format.
fn secret_field(schema: &Value) -> Option<&str> {
    let fields = schema.get("properties")?.as_object()?;
    let is_secret = |text: &str| {
        let plain: String =
            text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let words: HashSet<_> =
            text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
        SECRETS.iter().any(|secret| match secret.len() {
            ..=3 => words.contains(*secret),
            _ => plain.contains(secret),
        })
    };
    let found = fields.iter().find(|(name, field)| {
        let said = ["title", "format"].into_iter().filter_map(|of| field.get(of)?.as_str());
        is_secret(name) || said.into_iter().any(is_secret)
    });
    found.map(|(name, _)| name.as_str())
}

/// A URL as a person must see it: https, or of this machine, with its host in ASCII (punycode).
fn shown_url(url: &str) -> Result<String, ClientRefusal> {
    let refused = |message: &str| ClientRefusal { code: -32_602, message: message.to_owned() };
    if url.len() > LONGEST_URL {
        return Err(refused("the URL is too long"));
    }
    let url = url::Url::parse(url).map_err(|_| refused("the URL is not valid"))?;
    let is_local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_fine = url.scheme() == "https" || (url.scheme() == "http" && is_local);
    if !is_fine || !url.username().is_empty() || url.password().is_some() {
        return Err(refused("only https URLs, and those of this machine, without user names"));
    }
    Ok(url.into())
}

fn file_uri(folder: &std::path::Path) -> Option<String> {
    let folder = std::path::absolute(folder).ok()?;
    url::Url::from_directory_path(folder).ok().map(Into::into)
}
