//! Writes a script that repeats a conversation.

use serde::Serialize;
use serde_json::Value;
use toolcrib_core::{__internal::PlainJson, Arguments, Message, Redact, ToolCall};

/// The replacement of a secret in a text.
const REDACTED: &str = "[redacted]";

/// Maximum length of the user's text in a pattern. Patterns have a limit.
const MAX_USER_CHARS: usize = 2000;

/// Writes the last turn of a conversation as a script: the model's texts and calls since the last
/// user message, one rule per answer. A [`ScriptedModel`](super::ScriptedModel) of it gives the
/// same answers to the same message, whatever the tools return: this turns a conversation with a
/// real model into a test.
///
/// No known secret is written. `was_unknown` returns for a call's id whether no such tool was
/// offered; the script then calls it all the same.
///
/// ```
/// use toolcrib_core::{Message, Redact};
/// use toolcrib_models::record;
///
/// struct Nothing;
/// impl Redact for Nothing {
///     fn redact(&self, text: &str) -> String { text.to_owned() }
///     fn redact_start(&self, start: &str) -> String { start.to_owned() }
/// }
///
/// let said = [Message::user("Hello"), Message::assistant("Good day.", [])];
/// let script = record(&said, &Nothing, |_| false);
/// assert!(script.ends_with("[[rule]]\nuser = \"^Hello$\"\nstep = 1\ntext = \"Good day.\"\n"), "{script}");
/// ```
pub fn record(
    messages: &[Message],
    redact: &dyn Redact,
    was_unknown: impl Fn(&str) -> bool,
) -> String {
    let is_users = |message: &Message| {
        matches!(message, Message::User { .. }) && message.as_notice().is_none()
    };
    let begins = messages.iter().rposition(is_users);
    let turn = messages.get(begins.unwrap_or_default()..).unwrap_or_default();
    let user = turn.iter().find_map(|message| match message {
        Message::User { text, .. } => Some(pattern(&redact.redact(text))),
        _ => None,
    });
    let answers = turn.iter().filter_map(|message| match message {
        Message::Assistant { text, calls, .. } => Some((text, calls)),
        _ => None,
    });
    let rules = answers.enumerate().map(|(before, (text, calls))| RecordedRule {
        user: user.clone(),
        step: before + 1,
        text: (!text.is_empty() || calls.is_empty()).then(|| literal(&redact.redact(text))),
        calls: calls.iter().map(|call| recorded(call, redact, &was_unknown)).collect(),
    });
    let script = RecordedScript { rule: rules.collect() };
    // Text, numbers and tables: TOML can represent all of it.
    let rules = toml::to_string_pretty(&script).unwrap_or_default();
    format!(
        "# A model's answers, step by step. `toolcrib run --model script:FILE` plays it back to the\n\
         # same message. The format is that of docs/models.md#the-scripted-model: relax `user`, or add conditions,\n\
         # if a test should pass for more than this one conversation.\n\n{rules}"
    )
}

#[derive(Serialize)]
struct RecordedScript {
    rule: Vec<RecordedRule>,
}

#[derive(Serialize)]
struct RecordedRule {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    step: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<RecordedCall>,
}

#[derive(Serialize)]
struct RecordedCall {
    tool: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    even_if_not_offered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

fn recorded(
    call: &ToolCall,
    redact: &dyn Redact,
    was_unknown: &impl Fn(&str) -> bool,
) -> RecordedCall {
    // Parsed before it is redacted: escapes may hide a secret.
    let parsed = match &call.arguments {
        Arguments::Json(value) => Ok(value.clone()),
        Arguments::Text(text) => PlainJson::read(text.as_bytes()).map_err(|_| redact.redact(text)),
    };
    let (args, raw) = match parsed.map(|value| redacted(value, redact)) {
        Ok(value) => match as_table(&value) {
            Some(table) => (Some(table), None),
            None => (None, Some(value.to_string())),
        },
        Err(text) => (None, Some(text)),
    };
    RecordedCall {
        tool: redact.redact(&call.name),
        even_if_not_offered: was_unknown(&call.id),
        raw: raw.map(|raw| literal(&raw)),
        args,
    }
}

/// Data without secrets, in keys and numbers too.
fn redacted(value: Value, redact: &dyn Redact) -> Value {
    match value {
        Value::String(text) => Value::String(redact.redact(&text)),
        Value::Array(items) => items.into_iter().map(|item| redacted(item, redact)).collect(),
        Value::Object(entries) => entries
            .into_iter()
            .map(|(key, value)| (redact.redact(&key), redacted(value, redact)))
            .collect(),
        Value::Number(number) => {
            let written = number.to_string();
            let clean = redact.redact(&written);
            if clean == written { Value::Number(number) } else { Value::String(clean) }
        }
        other => other,
    }
}

/// Arguments as a TOML table of templates, if TOML can represent them: it has no null, has integers
/// of 64 bits, and writes tables after other values.
fn as_table(value: &Value) -> Option<Value> {
    fn template(value: &Value) -> Option<Value> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(Value::String(literal(text))),
            Value::Number(number) if number.is_u64() && !number.is_i64() => None,
            Value::Array(items) => items.iter().map(template).collect(),
            Value::Object(entries) => {
                if !entries.values().map(is_table).is_sorted() {
                    return None;
                }
                entries.iter().map(|(key, value)| Some((key.clone(), template(value)?))).collect()
            }
            other => Some(other.clone()),
        }
    }
    fn is_table(value: &Value) -> bool {
        match value {
            Value::Object(_) => true,
            Value::Array(items) => !items.is_empty() && items.iter().all(Value::is_object),
            _ => false,
        }
    }
    value.is_object().then(|| template(value)).flatten()
}

/// A template that renders to this text.
fn literal(text: &str) -> String {
    let is_template = ["{{", "{%", "{#"].iter().any(|begin| text.contains(begin));
    // A template drops a newline at the end.
    if is_template || text.ends_with('\n') {
        // A JSON string is a valid Jinja string.
        return format!("{{{{ {} }}}}", Value::from(text));
    }
    text.to_owned()
}

/// A pattern for exactly this text; redacted parts match anything.
fn pattern(text: &str) -> String {
    let cut = text.char_indices().nth(MAX_USER_CHARS).map(|(at, _)| at);
    let kept = text.get(..cut.unwrap_or(text.len())).unwrap_or(text);
    let parts: Vec<_> = kept.split(REDACTED).map(regex::escape).collect();
    let flags = if kept.contains('\n') || parts.len() > 1 { "(?s)" } else { "" };
    format!("{flags}^{}{}", parts.join(".+"), if cut.is_none() { "$" } else { "" })
}
