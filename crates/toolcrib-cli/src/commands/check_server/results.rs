//! The results of the tools that the author permits to call.

use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::timeout;
use toolcrib_core::{
    __internal::{CompiledSchema, leave_foreign_patterns, nests_too_deep},
    CancellationToken, ToolError,
};
use toolcrib_engine::Redactor;
use toolcrib_lint::estimated_tokens;
use toolcrib_mcp::{
    __internal::{McpRequest, protocol_error},
    McpClient,
};

use super::pages::Item;
use crate::{args::AuthorsCall, output::ServerFinding};

/// How many characters of a server's text are quoted.
const QUOTED: usize = 200;

/// JSON-RPC's code for invalid parameters.
const INVALID_PARAMS: i32 = -32_602;

/// Calls a tool and judges its result.
pub(super) async fn call(
    client: &McpClient,
    call: &AuthorsCall,
    tools: &[Item],
    (within, most_tokens): (Duration, usize),
    redactor: &Redactor,
) -> Vec<ServerFinding> {
    let arguments = Value::Object(call.arguments.clone());
    let params =
        [("name".to_owned(), Value::from(call.tool.as_str())), ("arguments".to_owned(), arguments)];
    let request = McpRequest {
        method: "tools/call",
        params: std::sync::Arc::new(Map::from_iter(params)),
        on_progress: None,
        client: None,
        cancellation: CancellationToken::new(),
    };
    let tool = tools.iter().find(|item| item.name.as_ref() == Some(&call.tool));
    let schema = tool.and_then(|tool| tool.fields.get("outputSchema"));
    let findings = match timeout(within, client.request(request)).await {
        Ok(Ok(result)) => {
            let Value::Object(result) = redactor.description(Value::Object(result)) else {
                return Vec::new();
            };
            judge(&result, schema.filter(|schema| schema.is_object()), most_tokens)
        }
        Ok(Err(error)) => vec![refused(&error, redactor)],
        Err(_) => {
            let message = format!("its call was not answered within {within:?}");
            let help = "answer each call, or raise `--timeout`";
            vec![ServerFinding::error("call-failed", message, help)]
        }
    };
    findings.into_iter().map(|found| found.of(&call.tool)).collect()
}

fn refused(error: &ToolError, redactor: &Redactor) -> ServerFinding {
    let code = error.details.as_ref().and_then(|details| protocol_error(details.meta.as_deref()?));
    let text = match &code {
        Some(_) => error.message.clone(),
        None => error.cause_chain().unwrap_or_else(|| error.message.clone()),
    };
    let text = toolcrib_core::__internal::beginning(&redactor.text(&text), QUOTED);
    let (message, help) = match code {
        Some((INVALID_PARAMS, _)) => (
            format!("it refuses the arguments of the call: {text}"),
            "give `--call` arguments that it accepts",
        ),
        Some((code, _)) => (
            format!("its call was answered with the protocol error {code}: {text}"),
            "return a failure as a result with `isError: true`: a model does not read protocol errors",
        ),
        None => (
            format!("its call has no usable answer: {text}"),
            "answer with a result as the protocol's schema says",
        ),
    };
    ServerFinding::error("call-failed", message, help)
}

fn judge(
    result: &Map<String, Value>,
    schema: Option<&Value>,
    most_tokens: usize,
) -> Vec<ServerFinding> {
    let mut findings = Vec::new();
    let error = |rule: &str, message: String, help: &str| ServerFinding::error(rule, message, help);
    let structured = result.get("structuredContent");
    let content = match result.get("content") {
        Some(Value::Array(content)) => content.as_slice(),
        other => {
            let is = if other.is_some() { "is not a list" } else { "is missing" };
            let help = "return `content` with each result, also as an empty list";
            findings.push(error("result", format!("the `content` of its result {is}"), help));
            &[]
        }
    };
    let invalid = content.iter().enumerate().find_map(|(at, block)| Some((at, flaw(block)?)));
    if let Some((at, flaw)) = invalid {
        let message = format!("block {} of its result {flaw}", at + 1);
        let help =
            "return blocks as the protocol's schema says; clients refuse the result otherwise";
        findings.push(error("result", message, help));
    }
    let texts: Vec<&str> = content.iter().filter_map(text_of).collect();
    let read = match (texts.is_empty(), structured) {
        (true, Some(structured)) => structured.to_string().chars().count(),
        _ => texts.iter().map(|text| text.chars().count()).sum(),
    };
    let tokens = estimated_tokens(read);
    if tokens > most_tokens {
        let message = format!("its result has about {tokens} tokens; the limit is {most_tokens}");
        let help = "return a page with a limit as an argument, and say how to get the next one; \
                    clients cut or refuse large results. `--max-result-tokens` sets the limit";
        findings.push(ServerFinding::warning("large-result", message, help));
    }
    let said = texts.first().copied().unwrap_or_default();
    match result.get("isError") {
        Some(Value::Bool(true)) => {
            let said = toolcrib_core::__internal::beginning(said.trim(), QUOTED);
            let message = format!("its call failed: {said}");
            let help = "give `--call` arguments with which it succeeds";
            findings.push(error("call-failed", message, help));
            return findings;
        }
        None | Some(Value::Bool(false)) => {}
        Some(_) => {
            let message = "the `isError` of its result is not true or false".to_owned();
            findings.push(error("result", message, "return `isError: true` for a failure"));
        }
    }
    if structured.is_none() && is_failure(said) {
        let message = "its result reports an error, without `isError: true`".to_owned();
        let help = "set `isError`; a client counts the call as a success otherwise";
        findings.push(ServerFinding::warning("unmarked-error", message, help));
    }
    findings.extend(of_structured(structured, schema, !texts.is_empty()));
    findings
}

/// The text of a block that a model reads.
fn text_of(block: &Value) -> Option<&str> {
    let text = block.get("text").or_else(|| block.get("resource")?.get("text"));
    text.and_then(Value::as_str)
}

/// Whether a text begins as reports of failures do.
fn is_failure(text: &str) -> bool {
    let begin: String = text.trim_start().chars().take(40).collect::<String>().to_lowercase();
    ["error:", "error ", "exception:", "traceback (most recent call last)", "failed to "]
        .iter()
        .any(|words| begin.starts_with(words))
}

/// Why a block is invalid.
fn flaw(block: &Value) -> Option<String> {
    let has = |block: &Value, key: &str| block.get(key).is_some_and(Value::is_string);
    let Some(kind) = block.get("type").and_then(Value::as_str) else {
        return Some("has no `type`".to_owned());
    };
    let required: &[&str] = match kind {
        "text" => &["text"],
        "image" | "audio" => &["data", "mimeType"],
        "resource_link" => &["uri", "name"],
        "resource" => {
            let resource = block.get("resource").unwrap_or(&Value::Null);
            let is_whole = has(resource, "uri") && (has(resource, "text") || has(resource, "blob"));
            return (!is_whole).then(|| {
                "is a `resource` without a `uri`, or without a `text` or `blob`".to_owned()
            });
        }
        other => {
            let other: String = other.chars().take(40).collect();
            return Some(format!("has the unknown type `{other}`"));
        }
    };
    let missing = required.iter().find(|key| !has(block, key))?;
    Some(format!("is of the type `{kind}` and has no `{missing}` that is a text"))
}

fn of_structured(
    structured: Option<&Value>,
    schema: Option<&Value>,
    has_text: bool,
) -> Option<ServerFinding> {
    let help = "return `structuredContent` that fits the `outputSchema`; clients refuse the result \
                otherwise";
    let mismatch = |message: String| Some(ServerFinding::error("result-schema", message, help));
    match (structured, schema) {
        (None, Some(_)) => mismatch(
            "it declares an `outputSchema`, and its result has no `structuredContent`".into(),
        ),
        (Some(structured), Some(schema)) if !nests_too_deep(schema) => {
            let mut schema = schema.clone();
            leave_foreign_patterns(&mut schema);
            let compiled = CompiledSchema::new(&schema).ok()?;
            let problems = compiled.problems(structured, "`structuredContent`");
            match problems.is_empty() {
                false => mismatch(format!(
                    "its result does not fit its `outputSchema`: {}",
                    toolcrib_core::__internal::beginning(&problems.join("; "), QUOTED)
                )),
                true => without_text(has_text),
            }
        }
        (Some(_), _) => without_text(has_text),
        (None, None) => None,
    }
}

fn without_text(has_text: bool) -> Option<ServerFinding> {
    (!has_text).then(|| {
        let message = "its result has `structuredContent` and no text".to_owned();
        let help = "return the same as a text block; older clients read only `content`";
        ServerFinding::warning("no-text", message, help)
    })
}
