//! One page of a catalog.

use serde_json::Value;
use toolcrib_capabilities::http::{HeaderValue, HttpResponse, Url, header, parse_url};

use super::{HubPointers, listed::RemoteTool};
use crate::http::answer::json;

/// A page, as it was read.
#[derive(Debug)]
pub(super) struct Page {
    /// The requested URL.
    pub(super) url: String,
    /// Who answered, after redirects.
    pub(super) final_url: Url,
    pub(super) etag: Option<HeaderValue>,
    pub(super) tools: Vec<RemoteTool>,
    /// The next page's cursor or URL, as listed.
    pub(super) next: Option<String>,
    pub(super) bytes: usize,
}

impl Page {
    pub(super) fn read(
        url: String,
        response: &HttpResponse,
        pointers: &HubPointers,
    ) -> Result<Self, String> {
        let host = host(response);
        let json = json(response)
            .map_err(|error| format!("the catalog of `{host}` is no JSON: {error}"))?;
        let list = json.pointer(&pointers.list).ok_or_else(|| {
            format!("the catalog of `{host}` has nothing at `{}`, where its list is", pointers.list)
        })?;
        let list = list.as_array().ok_or_else(|| {
            format!("what the catalog of `{host}` has at `{}` is not a list", pointers.list)
        })?;
        let text = |tool: &Value, pointer: &str| {
            tool.pointer(pointer).and_then(Value::as_str).map(str::to_owned)
        };
        let tools = list.iter().map(|tool| RemoteTool {
            name: text(tool, &pointers.name).filter(|name| !name.trim().is_empty()),
            description: text(tool, &pointers.description),
            schema: tool.pointer(&pointers.schema).filter(|schema| !schema.is_null()).cloned(),
        });
        let next = pointers.next.as_deref().and_then(|pointer| json.pointer(pointer));
        Ok(Self {
            url,
            final_url: response.final_url.clone(),
            etag: response.headers.get(header::ETAG).cloned(),
            tools: tools.collect(),
            next: next.and_then(leads_on),
            bytes: response.body.len(),
        })
    }

    /// Whether both are equal, so that the older one can be reused.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.url == other.url
            && self.etag == other.etag
            && self.next == other.next
            && self.final_url == other.final_url
            && self.tools == other.tools
    }
}

/// The URL of the next page, seen from the page that names it. It has to lead to the server that the
/// hub is declared for: what is secret in the headers goes along.
pub(super) fn next_page(first: &str, from: &Url, next: &str) -> Result<String, String> {
    let url = from
        .join(next)
        .map_err(|error| format!("its catalog names a next page that is no URL: {error}"))?;
    if !same_origin(first, url.as_str()) {
        return Err(format!(
            "its catalog names a next page on another server, `{}`, which is not asked",
            url.origin().ascii_serialization()
        ));
    }
    Ok(url.into())
}

/// The host that answered.
pub(super) fn host(response: &HttpResponse) -> &str {
    response.final_url.host_str().unwrap_or_default()
}

/// Whether two URLs lead to one server.
fn same_origin(a: &str, b: &str) -> bool {
    match (parse_url(a), parse_url(b)) {
        (Ok(a), Ok(b)) => a.origin() == b.origin(),
        _ => false,
    }
}

/// Text of the value at the pointer to a cursor or URL; none at the end.
fn leads_on(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
