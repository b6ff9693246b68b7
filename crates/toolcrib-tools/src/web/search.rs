//! The body of `web_search`: the JSON API of SearXNG.

use std::{fmt::Write, sync::Arc};

use serde_json::Value;
use toolcrib_capabilities::http::{HttpResponse, StatusCode, Url, parse_url};
use toolcrib_core::{ErrorCode, ToolContext, ToolError, ToolOutput};

use super::{LIMIT, MATCHES, MOST_MATCHES, MOST_URL, PAGE, QUERY, failure, request};
use crate::{
    arguments::{present, text},
    http::{
        answer::{json, one_line},
        cause,
        exchange::Exchange,
    },
};

/// How much of a title and a snippet is shown, in characters.
const MOST_TITLE: usize = 200;
const MOST_SNIPPET: usize = 500;

/// The handler of the tool.
pub(super) struct Body {
    pub(super) exchange: Exchange,
    /// Absent only where it cannot be read, and the tool is not made.
    pub(super) url: Option<Url>,
}

/// A declared URL.
///
/// # Errors
/// The problem of the URL.
pub(super) fn url(text: &str) -> Result<Url, String> {
    parse_url(text).map_err(|error| error.to_string())
}

impl Body {
    pub(super) async fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Some(mut url) = self.url.clone() else {
            return Err(ToolError::not_set_up("a search server"));
        };
        let query = text(&args, QUERY).unwrap_or_default();
        let number = |name| present(&args, name).and_then(Value::as_u64);
        let most = number(LIMIT).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MATCHES);
        let page = number(PAGE).unwrap_or(1).to_string();
        url.query_pairs_mut()
            .append_pair("q", &query)
            .append_pair("format", "json")
            .append_pair("pageno", &page);
        let client = self.exchange.client(&cx)?;
        let request = request(&self.exchange, url.as_str(), "application/json");
        let (asked, response) = self.exchange.response(&client, request, &cx).await?;
        match response.status {
            status if status.is_success() => {}
            // SearXNG refuses a format that its settings do not list.
            StatusCode::FORBIDDEN => {
                let text = "the search server refuses this; only its operator can change that";
                let cause = format!(
                    "{}; SearXNG answers so where `search.formats` in its settings.yml lacks \
                     `json`, and where its limiter refuses a client",
                    cause::answered(&asked, &response)
                );
                return Err(ToolError::new(ErrorCode::NotAvailable, text).caused_by(cause));
            }
            _ => return Err(failure::status(&response, &asked)),
        }
        let found = found(&response).map_err(|problem| {
            let text = "the search server did not answer with results; try again later";
            ToolError::failed(text)
                .caused_by(format!("{}; {problem}", cause::answered(&asked, &response)))
        })?;
        Ok(ToolOutput::text(shown(&found, most.clamp(1, MOST_MATCHES))))
    }
}

fn found(response: &HttpResponse) -> Result<Value, String> {
    let found = json(response)?;
    match found.get("results") {
        Some(Value::Array(_)) => Ok(found),
        _ => Err("there is no list `results` in its JSON".to_owned()),
    }
}

/// The results as a list. A result without a URL that can be read is left out.
fn shown(found: &Value, most: usize) -> String {
    let list = |name: &str| found.get(name).and_then(Value::as_array).into_iter().flatten();
    let mut text = String::new();
    let results = list("results").filter_map(|result| {
        let of = |key: &str| result.get(key).and_then(Value::as_str).unwrap_or_default();
        let url = parse_url(of("url")).ok().filter(|url| url.as_str().len() <= MOST_URL)?;
        Some((url, one_line(of("title"), MOST_TITLE), one_line(of("content"), MOST_SNIPPET)))
    });
    for (position, (url, title, snippet)) in results.take(most).enumerate() {
        let title = if title.is_empty() { "(no title)" } else { &title };
        let _ = writeln!(text, "{}. {title}\n   {url}", position + 1);
        if !snippet.is_empty() {
            let _ = writeln!(text, "   {snippet}");
        }
    }
    if text.is_empty() {
        text.push_str("no results; use fewer or other words\n");
    }
    let silent = list("unresponsive_engines").count();
    if silent > 0 {
        let _ = writeln!(text, "\n{silent} of the search engines did not answer.");
    }
    text.truncate(text.trim_end().len());
    text
}
