//! One page of a catalogue.

use serde_json::Value;
use toolcrib_scope::http::{HeaderValue, HttpResponse, Url, header};

use super::{
    HubPointers,
    catalogue::{host, leads_on, same_origin},
    listed::RemoteTool,
};

/// A page, as it was read.
#[derive(Debug)]
pub(super) struct Page {
    /// What was asked.
    pub(super) url: String,
    /// Who answered, after redirects.
    pub(super) final_url: Url,
    pub(super) etag: Option<HeaderValue>,
    pub(super) tools: Vec<RemoteTool>,
    /// The next page's cursor or URL, as it stands.
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
        let body = response.body.as_ref();
        let json: Value =
            serde_json::from_slice(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body))
                .map_err(|error| format!("the catalogue of `{host}` is no JSON: {error}"))?;
        let list = json.pointer(&pointers.list).ok_or_else(|| {
            format!(
                "the catalogue of `{host}` has nothing at `{}`, where its list is",
                pointers.list
            )
        })?;
        let list = list.as_array().ok_or_else(|| {
            format!("what the catalogue of `{host}` has at `{}` is no list", pointers.list)
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
            bytes: body.len(),
        })
    }

    /// Whether both read the same, so that the one may stand for the other the next time too.
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
        .map_err(|error| format!("its catalogue names a next page that is no URL: {error}"))?;
    if !same_origin(first, url.as_str()) {
        return Err(format!(
            "its catalogue names a next page on another server, `{}`, which is not asked",
            url.origin().ascii_serialization()
        ));
    }
    Ok(url.into())
}
