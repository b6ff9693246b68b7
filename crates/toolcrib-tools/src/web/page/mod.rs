//! From a response to text: HTML as Markdown, all other text as it is.

mod attributes;
mod charset;
mod clean;
mod convert;
mod hidden;
mod parse;

use toolcrib_capabilities::http::{HttpResponse, header};
use toolcrib_core::CancellationToken;

/// The longest type of a response in an error, in characters.
const MOST_TYPE: usize = 60;

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Html,
    /// The text is not converted.
    Text,
}

/// A page that was read.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// A note on missing parts or formats of the text.
    pub(super) note: Option<&'static str>,
}

/// Why a page cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    #[error("it needs more elements or steps than are allowed")]
    TooComplex,
    #[error("the call was cancelled")]
    Cancelled,
}

/// How a response is read, by its type, or by its beginning where it has none.
///
/// # Errors
/// The type that cannot be read.
pub(super) fn format_of(response: &HttpResponse) -> Result<Format, String> {
    let said = response.headers.get(header::CONTENT_TYPE);
    let said = said.map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    let named = said.as_deref().and_then(|said| said.split(';').next()).unwrap_or_default().trim();
    if named.is_empty() {
        return guess(&response.body).ok_or_else(|| "a body of an unknown type".to_owned());
    }
    let is_text = named.starts_with("text/")
        || named.ends_with("+json")
        || named.ends_with("+xml")
        || matches!(
            named,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-ndjson"
                | "application/yaml"
                | "application/x-yaml"
                | "application/toml"
        );
    match named {
        "text/html" | "application/xhtml+xml" => Ok(Format::Html),
        _ if is_text => Ok(Format::Text),
        _ => {
            let is_of_type =
                |at: &char| at.is_ascii_alphanumeric() || matches!(at, '/' | '-' | '+' | '.' | '_');
            Err(named.chars().filter(is_of_type).take(MOST_TYPE).collect())
        }
    }
}

fn guess(body: &[u8]) -> Option<Format> {
    let start = body.get(..body.len().min(1024)).unwrap_or_default();
    if start.contains(&0) {
        return None;
    }
    let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
    let is_html = start.starts_with("<!doctype html") || start.starts_with("<html");
    Some(if is_html { Format::Html } else { Format::Text })
}

/// Reads a response. The work is limited by [`parse`] and [`clean`], and may take a second.
pub(super) fn read(
    response: &HttpResponse,
    format: Format,
    cancel: &CancellationToken,
) -> Result<Document, PageError> {
    let said = response.headers.get(header::CONTENT_TYPE).map(header::HeaderValue::as_bytes);
    let text = charset::decode(&response.body, said, format);
    if format == Format::Text {
        return Ok(Document { title: None, text: text.into_owned(), note: None });
    }
    let tree = parse::parse(&text, cancel)?;
    let cleaned = clean::clean(&tree, &response.final_url);
    if cancel.is_cancelled() {
        return Err(PageError::Cancelled);
    }
    let text = convert::to_markdown(&cleaned.root);
    let note = cleaned.is_cut.then_some("deeply nested parts of the page have lost their format");
    Ok(Document { title: cleaned.title, text, note })
}
