//! Servers' responses, in our own types.
//!
//! Responses are parsed leniently and part by part: an unknown kind of content block, or one
//! invalid tool, does not invalidate the others.

use std::time::Duration;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{Map, Value, value::RawValue};
use toolcrib_core::{
    __internal::{MOST_VALUES, PlainJson, has_more_values},
    ContentBlock, ToolOutput,
};

use super::{
    MarkedArguments,
    content::{content, text},
    types::{CallAnswer, Hints, Page, RemoteTool, RequestError},
};
use crate::reserved::is_expanded;

/// The reason for not reading JSON that would change.
const EXPANDED: &str = "a key in it is reserved by `serde_json`";

/// The result of a request, or of one round of it.
pub(super) enum Answer<T> {
    Whole(T),
    /// It must be sent again, with this state, and with responses to these requests.
    Again {
        state: Option<String>,
        requests: Map<String, Value>,
    },
}

#[derive(Deserialize)]
struct Response<T> {
    result: Option<T>,
    error: Option<Refusal>,
}

/// A server's error.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Refusal {
    pub(super) code: i32,
    pub(super) message: String,
    #[serde(default, deserialize_with = "data")]
    pub(super) data: Option<Value>,
}

fn data<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Value>, D::Error> {
    PlainJson::deserialize(json).map(|PlainJson(data)| (!data.is_null()).then_some(data))
}

impl From<Refusal> for RequestError {
    fn from(Refusal { code, message, data }: Refusal) -> Self {
        Self::Refused { code, message, data }
    }
}

/// A page of a list of tools, whose parts are read one by one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPage<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow)]
    next_cursor: Option<&'a RawValue>,
    #[serde(borrow)]
    ttl_ms: Option<&'a RawValue>,
}

/// The result in a response, of a limited number of values.
fn result<'a, T: Deserialize<'a>>(response: &'a [u8]) -> Result<T, RequestError> {
    if has_more_values(MOST_VALUES, response) {
        return Err(malformed(&format!("it contains more than {MOST_VALUES} values")));
    }
    unlimited(response)
}

/// The result in a response. `T` contains no arbitrary JSON, or unread one.
fn unlimited<'a, T: Deserialize<'a>>(response: &'a [u8]) -> Result<T, RequestError> {
    let response = serde_json::from_slice(response).map_err(|error| unreadable(&error))?;
    match response {
        Response { error: Some(refusal), .. } => Err(refusal.into()),
        Response { result: Some(result), .. } => Ok(result),
        Response { .. } => Err(malformed("it contains neither a result nor an error")),
    }
}

/// The result in a response.
pub(super) fn plain<T: DeserializeOwned>(response: &[u8]) -> Result<T, RequestError> {
    if is_expanded(response) { Err(malformed(EXPANDED)) } else { result(response) }
}

/// A result whose content does not matter.
pub(super) fn nothing(response: &[u8]) -> Result<(), RequestError> {
    result::<IgnoredAny>(response).map(drop)
}

/// A page of a list of tools. All entries are kept, valid or not.
pub(super) fn page(response: &[u8]) -> Result<Page, RequestError> {
    // Its parts have limits of their own.
    let RawPage { tools, next_cursor, ttl_ms } = unlimited(response)?;
    Ok(Page {
        bytes: tools.iter().map(|tool| tool.get().len()).sum(),
        tools: tools.into_iter().map(tool).collect(),
        next: next_cursor.and_then(|next| serde_json::from_str(next.get()).ok()),
        ttl: ttl_ms.and_then(|ms| serde_json::from_str(ms.get()).ok()).map(Duration::from_millis),
    })
}

/// One entry. One that cannot be read, for example because it nests too deep, costs no other.
fn tool(entry: &RawValue) -> RemoteTool {
    #[derive(Deserialize)]
    struct NameField {
        name: String,
    }
    let json = entry.get();
    let flaw = if is_expanded(json.as_bytes()) {
        EXPANDED.to_owned()
    } else {
        match serde_json::from_str(json) {
            Ok(described) => return described_by(described),
            Err(error) => error.to_string(),
        }
    };
    RemoteTool {
        name: serde_json::from_str(json).ok().map(|NameField { name }| name),
        flaw: Some(format!("its definition cannot be read: {flaw}")),
        ..RemoteTool::default()
    }
}

fn described_by(described: Value) -> RemoteTool {
    let mut tool = match described {
        Value::Object(tool) => tool,
        _ => Map::new(),
    };
    let annotations = match tool.remove("annotations") {
        Some(Value::Object(annotations)) => annotations,
        _ => Map::new(),
    };
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let annotated = annotations.get("title").and_then(Value::as_str).map(str::to_owned);
    RemoteTool {
        name: text(&mut tool, "name"),
        title: text(&mut tool, "title").or(annotated),
        description: text(&mut tool, "description"),
        input_schema: tool.remove("inputSchema").unwrap_or_default(),
        output_schema: tool.remove("outputSchema").filter(|schema| !schema.is_null()),
        hints: Hints {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
        },
        fields: {
            tool.retain(|_, value| !value.is_null());
            if !annotations.is_empty() {
                tool.insert("annotations".to_owned(), annotations.into());
            }
            tool
        },
        marked: MarkedArguments::default(),
        flaw: None,
    }
}

/// The result of a request, as it is sent, without its type.
pub(super) fn fields(response: &[u8]) -> Result<Answer<Map<String, Value>>, RequestError> {
    let mut answer: Map<String, Value> = plain(response)?;
    match text(&mut answer, "resultType").as_deref() {
        None | Some("complete") => Ok(Answer::Whole(answer)),
        Some("input_required") => again(answer),
        Some(other) => {
            let problem = format!("its type, `{other}`, was not requested");
            Err(malformed(&problem))
        }
    }
}

/// The response to a call.
pub(super) fn answer(response: &[u8]) -> Result<Answer<CallAnswer>, RequestError> {
    let mut answer = match fields(response)? {
        Answer::Whole(answer) => answer,
        Answer::Again { state, requests } => return Ok(Answer::Again { state, requests }),
    };
    let structured = answer.remove("structuredContent");
    let parts = match (answer.remove("content"), &structured) {
        (Some(Value::Array(parts)), _) => parts,
        (None | Some(Value::Null), Some(_)) => Vec::new(),
        _ => return Err(malformed("it has no `content`")),
    };
    let (mut value, mut blocks) = content(parts)?;
    let has_text = !value.is_empty()
        || blocks.iter().any(|block| matches!(block, ContentBlock::Paragraph { .. }));
    if let Some(structured) = &structured
        && !has_text
    {
        // The server's own parts come first.
        match blocks.is_empty() {
            true => value = structured.to_string(),
            false => blocks.push(ContentBlock::paragraph(structured.to_string())),
        }
    }
    let is_error = answer.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let meta = match answer.remove("_meta") {
        Some(Value::Object(meta)) if !meta.is_empty() => Some(Box::new(meta)),
        _ => None,
    };
    let output = ToolOutput { value, structured, blocks, meta, ..ToolOutput::default() };
    Ok(Answer::Whole(CallAnswer { output, is_error }))
}

fn again<T>(mut answer: Map<String, Value>) -> Result<Answer<T>, RequestError> {
    let requests = match answer.remove("inputRequests") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(requests)) => requests,
        Some(_) => return Err(malformed("its `inputRequests` are not an object")),
    };
    match text(&mut answer, "requestState") {
        None if requests.is_empty() => {
            Err(malformed("it requests another call without a state for it"))
        }
        state => Ok(Answer::Again { state, requests }),
    }
}

fn unreadable(error: &serde_json::Error) -> RequestError {
    malformed(&format!("it cannot be read: {error}"))
}

pub(super) fn malformed(problem: &str) -> RequestError {
    RequestError::Malformed(problem.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(result: &Value) -> Vec<u8> {
        json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string().into_bytes()
    }

    fn whole(result: &Value) -> ToolOutput {
        match answer(&response(result)) {
            Ok(Answer::Whole(answer)) => answer.output,
            Ok(Answer::Again { state, .. }) => panic!("again with {state:?}"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn every_kind_of_content_is_kept() {
        let output = whole(&json!({ "content": [
            {"type": "text", "text": "a", "annotations": {"priority": 1}, "_meta": {"x": 1}},
            {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "b", "mimeType": "text/csv"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGk="}},
            {"type": "hologram", "depth": 3},
        ]}));
        assert_eq!(output.value, "");
        assert_eq!(output.structured, None);
        assert_eq!(
            output.blocks,
            [
                ContentBlock::paragraph("a").with_fields(
                    json!({"annotations": {"priority": 1}, "_meta": {"x": 1}})
                        .as_object()
                        .cloned()
                        .unwrap()
                ),
                ContentBlock::image("image/png", *b"hi"),
                ContentBlock::audio("audio/wav", *b"hi"),
                ContentBlock::link("file:///a", "a").media_type("text/plain"),
                ContentBlock::text("file:///b", "b").media_type("text/csv"),
                ContentBlock::binary("file:///c", *b"hi"),
                ContentBlock::paragraph("[content of type `hologram`, which is not shown]"),
            ]
        );
    }

    #[test]
    fn data_stands_in_for_a_text_that_is_not_there() {
        let output = whole(&json!({"content": [], "structuredContent": {"b": 1, "a": [2]}}));
        assert_eq!(output.value, r#"{"b":1,"a":[2]}"#);
        assert_eq!(output.structured, Some(json!({"b": 1, "a": [2]})));
        let text = json!([{"type": "text", "text": "t"}]);
        let output = whole(&json!({"content": text, "structuredContent": {"a": 1}}));
        assert_eq!(output.value, "t");
        assert_eq!(whole(&json!({"structuredContent": 5})).value, "5");
        assert_eq!(whole(&json!({"content": []})).value, "");
    }

    #[test]
    fn one_odd_tool_costs_no_other() {
        let result = json!({ "nextCursor": "n", "tools": [
            {"name": "a", "inputSchema": {"type": "object"}, "title": "A", "annotations":
                {"title": "other", "readOnlyHint": true, "idempotentHint": "yes"}},
            {"name": "b", "inputSchema": "none", "description": 5, "outputSchema": null},
            {"inputSchema": {}},
            "c",
            {"name": "d", "annotations": {"title": "D"}},
        ]});
        let page = page(&response(&result)).unwrap();
        let names: Vec<_> = page.tools.iter().map(|tool| tool.name.as_deref()).collect();
        assert_eq!(names, [Some("a"), Some("b"), None, None, Some("d")]);
        assert_eq!(page.next.as_deref(), Some("n"));
        let [a, b, _, _, d] = page.tools.as_slice() else { panic!() };
        assert_eq!(a.title.as_deref(), Some("A"));
        assert_eq!(a.hints, Hints { read_only: Some(true), destructive: None, idempotent: None });
        assert_eq!((&b.description, &b.output_schema), (&None, &None));
        assert_eq!(b.input_schema, json!("none"));
        assert_eq!(d.title.as_deref(), Some("D"));
        assert_eq!(d.input_schema, Value::Null);
    }
}
