//! Lists of what servers offer beside tools, and their results.

use std::{borrow::Cow, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use rmcp::{
    ErrorData,
    model::{CacheScope, CustomResult, ServerResult},
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};
use toolcrib_core::{__internal::millis, Progress, ToolContext};
use toolcrib_engine::Redactor;
use toolcrib_mcp::__internal::{self as mcp, AssetKind, McpRequest};

use crate::client::{
    config::SOURCES_WITHIN,
    request::{Era, RequestContext},
    request_servers::Servers,
    servers::Server,
};

/// The items of a server's list.
pub(crate) type Items = Arc<[Map<String, Value>]>;

/// How long other servers are waited for when one has what is looked for: an earlier one precedes it.
const OTHERS_WITHIN: Duration = Duration::from_millis(100);

/// The description of a prompt or a resource without known secrets.
///
/// # Errors
/// The text that requests name it by, or the name of an argument, contains one.
pub(crate) fn described(
    redactor: &Redactor,
    kind: AssetKind,
    item: &Map<String, Value>,
) -> Result<Map<String, Value>, &'static str> {
    let is_clean = |text: &Value| {
        text.as_str().is_none_or(|text| matches!(redactor.text(text), Cow::Borrowed(_)))
    };
    let named_by = match kind {
        AssetKind::Prompts => "name",
        AssetKind::Resources => "uri",
        AssetKind::Templates => "uriTemplate",
    };
    if !item.get(named_by).is_none_or(is_clean) {
        return Err(SECRET_IN_NAME);
    }
    let arguments = item.get("arguments").and_then(Value::as_array);
    let mut names = arguments.into_iter().flatten().filter_map(|argument| argument.get("name"));
    if !names.all(is_clean) {
        return Err(SECRET_IN_ARGUMENT);
    }
    match mcp::harmless_json(redactor.description(Value::Object(item.clone()))) {
        Value::Object(clean) => Ok(clean),
        _ => Err(SECRET_IN_NAME),
    }
}

pub(crate) const SECRET_IN_NAME: &str = "its name contains a known secret";

const SECRET_IN_ARGUMENT: &str = "the name of an argument contains a known secret";

/// The refusal of a request for something that lists do not show.
pub(crate) fn withheld(reason: &'static str) -> ErrorData {
    ErrorData::invalid_params(format!("it is withheld: {reason}"), None)
}

/// The lists of all servers.
pub(crate) struct Lists {
    pub(crate) of_servers: Vec<Items>,
    /// Whether each server offers such a list, as far as it is known.
    pub(crate) offers: Vec<bool>,
    pub(crate) is_none_offered: bool,
}

impl Lists {
    /// How long lists of one kind apply together: the least of what the servers state. Zero if one of
    /// those that offer it states nothing or did not answer, or if something else may change the
    /// list at any time.
    pub(crate) fn fresh_for(&self, servers: &Servers, kind: AssetKind) -> Duration {
        let offering = servers.all.iter().zip(&self.offers).filter(|(_, offers)| **offers);
        let stated = offering.map(|(server, _)| server.client.assets_fresh_for(kind)).min();
        stated.filter(|_| !servers.step.iteration.may_change()).unwrap_or_default()
    }
}

/// Asks all servers for lists of these kinds: for the first kind, then for the next. The list of a
/// server that fails, or is slow, is empty. When one is enough, the others are not waited for.
pub(crate) async fn lists(
    servers: &Servers,
    kinds: &[AssetKind],
    is_enough: impl Fn(&Server, AssetKind, &[Map<String, Value>]) -> bool,
) -> Lists {
    let all = kinds.iter().flat_map(|kind| servers.all.iter().map(move |server| (server, *kind)));
    let mut asked: FuturesUnordered<_> = all
        .enumerate()
        .map(|(at, (server, kind))| async move { (at, server, kind, list_of(server, kind).await) })
        .collect();
    let mut answers = vec![(true, Items::default()); asked.len()];
    let mut until = Instant::now() + SOURCES_WITHIN;
    while let Ok(Some((at, server, kind, answer))) = timeout_at(until, asked.next()).await {
        if is_enough(server, kind, &answer.1) {
            until = until.min(Instant::now() + OTHERS_WITHIN);
        }
        if let Some(slow) = answers.get_mut(at) {
            *slow = answer;
        }
    }
    let (offers, of_servers): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let is_none_offered = !offers.contains(&true);
    Lists { of_servers, offers, is_none_offered }
}

/// Whether a server offers lists of a kind, and its list.
async fn list_of(server: &Server, kind: AssetKind) -> (bool, Items) {
    let listed = server.client.assets_within(kind, SOURCES_WITHIN).await;
    (listed.is_some(), listed.unwrap_or_default())
}

/// The result of a list with one page.
pub(crate) fn listed(
    context: &RequestContext<'_>,
    kind: AssetKind,
    items: &[Value],
    fresh_for: Duration,
) -> ServerResult {
    let mut result = json!({ kind.field(): items });
    if let Era::Stateless(_) = context.era
        && let Some(fields) = result.as_object_mut()
    {
        fields.insert("resultType".to_owned(), "complete".into());
        fields.insert("ttlMs".to_owned(), millis(fresh_for).into());
        // What a caller is listed depends on its rights.
        fields.insert("cacheScope".to_owned(), json!(CacheScope::Private));
    }
    ServerResult::CustomResult(CustomResult::new(result))
}

/// Refuses a cursor: lists have one page.
pub(crate) fn one_page(params: &Map<String, Value>) -> Result<(), ErrorData> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => {
            let message = "unknown cursor: the list has one page, without a cursor";
            Err(ErrorData::invalid_params(message, None))
        }
    }
}

/// A request of a server during a call of the pipe.
pub(crate) fn request(
    method: &'static str,
    params: Map<String, Value>,
    cx: &ToolContext,
) -> McpRequest {
    let progress = cx.clone();
    McpRequest {
        method,
        params: Arc::new(params),
        on_progress: Some(Arc::new(move |said| {
            let audience = toolcrib_core::Audience::Dashboard;
            progress.progress(Progress { audience, ..said });
        })),
        client: cx.handle::<toolcrib_core::ClientHandle>().ok().cloned(),
        cancellation: cx.cancellation().clone(),
    }
}
