//! Resources of the servers, and their templates. A URI stays the server's; one that an earlier
//! server also offers is qualified: `mcp:NAME/URI`.

use std::{borrow::Cow, collections::HashSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use rmcp::{
    ErrorData,
    model::{ReadResourceResult, ResourceContents, ServerResult},
};
use serde_json::{Map, Value, json};
use toolcrib_core::{Tool, ToolContext, ToolError, ToolOutput, harmless};
use toolcrib_mcp::{
    __internal::{self as mcp, AssetKind},
    McpClient,
};

use super::{
    assets::{SECRET_IN_NAME, described, listed, lists, one_page, request, withheld},
    find_resource::{ServerResource, find, link, not_found, qualified, uri_of},
    skills,
};
use crate::{
    client::{
        judged::{Body, JudgedOnly, RESOURCES, tool},
        request::{Era, RequestContext},
        request_servers::Servers,
        servers::Server,
        subscription::{MOST_SUBSCRIPTIONS, Subscription},
    },
    wire::message::{Outcome, is_of_protocol, no_method},
};

/// `resources/list` and `resources/templates/list`.
pub(crate) async fn list(
    context: &RequestContext<'_>,
    params: Map<String, Value>,
    kind: AssetKind,
) -> Outcome {
    one_page(&params)?;
    let _place = context.place()?;
    let servers = context.servers().await?;
    let lists = lists(&servers, &[kind], |_, _, _| false).await;
    let own = match kind {
        AssetKind::Resources => skills::listed(context),
        _ => Vec::new(),
    };
    if lists.is_none_offered && !context.serving.gateway.has_skills(&context.caller.access) {
        return Err(no_method(match kind {
            AssetKind::Templates => "resources/templates/list",
            _ => "resources/list",
        }));
    }
    let key = if kind == AssetKind::Templates { "uriTemplate" } else { "uri" };
    let redactor = context.serving.gateway.config.engine.redactor();
    let mut seen: HashSet<_> = own.iter().map(|resource| resource.uri.clone()).collect();
    let own = own.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
    let own = own.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let own = own.iter().filter_map(|item| described(redactor, kind, item.as_object()?).ok());
    let mut items: Vec<_> = own.map(Value::Object).collect();
    let fresh_for = match context.serving.gateway.has_skills(&context.caller.access) {
        // Files of skills may change at any time.
        true => Duration::ZERO,
        false => lists.fresh_for(&servers, kind),
    };
    for (server, list) in servers.all.iter().zip(lists.of_servers) {
        let Some(judged) = judged(server) else { continue };
        for item in list.iter() {
            let Some(uri) = item.get(key).and_then(Value::as_str) else { continue };
            // As `find`: the first server of a URI has it, whether it is permitted or not.
            let is_first = seen.insert(uri.to_owned());
            // A cleaned URI would be another one.
            if harmless(uri) != uri || !permits(&servers, &judged, uri) {
                continue;
            }
            let shown = match is_first {
                true => uri.to_owned(),
                false => qualified(&server.name, uri),
            };
            let Ok(mut item) = described(redactor, kind, item) else { continue };
            item.insert(key.to_owned(), shown.into());
            items.push(Value::Object(item));
        }
    }
    Ok(listed(context, kind, &items, fresh_for))
}

/// `resources/read`.
pub(crate) async fn read(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let _place = context.place()?;
    let requested = uri_of(&params)?;
    let redactor = context.serving.gateway.config.engine.redactor();
    if let Cow::Owned(_) = redactor.text(&requested) {
        return Err(withheld(SECRET_IN_NAME));
    }
    if let Some(own) = skills::read(context, &requested).await? {
        return own;
    }
    let servers = context.servers().await?;
    let ServerResource { server, uri } =
        find(context, &servers, &requested, "resources/read").await?;
    let absent = || not_found(context, &requested);
    let arguments = Map::from_iter([("uri".to_owned(), Value::from(&*uri))]);
    let (client, sent) = (server.client.clone(), arguments.clone());
    let body = Body(move |cx: ToolContext| contents(client.clone(), sent.clone(), cx));
    let tool = tool(&server.name, "resources", RESOURCES, body).ok_or_else(absent)?;
    let mut result = context.through_the_pipe(&servers.step, tool, arguments, absent).await?;
    link(context, &servers.step, &server.name, &mut result.blocks);
    let fences = context.serving.gateway.fences(&context.caller.access, &server.name);
    let shown = |own: String| if own == *uri { requested.to_string() } else { own };
    let mut contents: Vec<_> = result
        .blocks
        .iter()
        .map(|block| match mcp::contents(block) {
            Some(ResourceContents::TextResourceContents { uri, mime_type, text, meta }) => {
                let text = if fences { toolcrib_core::fence(&result.name, &text) } else { text };
                ResourceContents::TextResourceContents { uri: shown(uri), mime_type, text, meta }
            }
            Some(ResourceContents::BlobResourceContents { uri, mime_type, blob, meta }) => {
                ResourceContents::BlobResourceContents { uri: shown(uri), mime_type, blob, meta }
            }
            // A line about contents that are left out.
            _ => ResourceContents::text(block.as_read(), &*requested),
        })
        .collect();
    if contents.is_empty() && !result.value.is_empty() {
        contents.push(ResourceContents::text(&*result.value, &*requested));
    }
    let mut read = ReadResourceResult::new(contents);
    read.meta = result.meta.as_deref().and_then(|meta| {
        let mut meta = meta.get("_meta")?.as_object()?.clone();
        meta.retain(|key, _| !is_of_protocol(key));
        serde_json::from_value(meta.into()).ok()
    });
    Ok(read.into())
}

/// The contents of a server's resource.
async fn contents(
    client: McpClient,
    params: Map<String, Value>,
    cx: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let mut answer = client.request(request("resources/read", params, &cx)).await?;
    let name = client.name().as_str();
    let Some(Value::Array(contents)) = answer.remove("contents") else {
        let about = format!("MCP server `{name}` gave no contents of the resource");
        return Err(ToolError::failed(about));
    };
    let blocks = contents.into_iter().map(|each| mcp::resource_block(name, each));
    let blocks = blocks.collect::<Result<_, _>>()?;
    // The server's lifetime does not consider this gateway's policy.
    answer.retain(|key, _| key == "_meta");
    Ok(ToolOutput { blocks, meta: Some(answer.into()), ..ToolOutput::default() })
}

/// `resources/subscribe`, in a session.
pub(crate) async fn subscribe(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    let _place = context.place()?;
    let Era::Session(session) = &context.era else { return Err(no_method("resources/subscribe")) };
    let requested = uri_of(&params)?;
    let servers = context.servers().await?;
    let subscription = subscribed(context, &servers, &requested).await?;
    let mut subscriptions = session.subscriptions.lock();
    if subscriptions.len() >= MOST_SUBSCRIPTIONS {
        let message = format!("a client has at most {MOST_SUBSCRIPTIONS} subscriptions");
        return Err(ErrorData::internal_error(message, None));
    }
    subscriptions.insert(requested, subscription);
    Ok(ServerResult::empty(()))
}

/// `resources/unsubscribe`, in a session.
pub(crate) async fn unsubscribe(
    context: &RequestContext<'_>,
    params: Map<String, Value>,
) -> Outcome {
    let Era::Session(session) = &context.era else {
        return Err(no_method("resources/unsubscribe"));
    };
    let requested = uri_of(&params)?;
    let ended = session.subscriptions.lock().remove(&requested);
    if ended.is_none() {
        // Only what exists can be named without having been subscribed to.
        let servers = context.servers().await?;
        find(context, &servers, &requested, "resources/unsubscribe").await?;
    }
    Ok(ServerResult::empty(()))
}

/// Subscribes to a resource.
pub(crate) async fn subscribed(
    context: &RequestContext<'_>,
    servers: &Servers,
    requested: &str,
) -> Result<Subscription, ErrorData> {
    let ServerResource { server, uri } =
        find(context, servers, requested, "resources/subscribe").await?;
    let absent = || not_found(context, requested);
    let arguments = Map::from_iter([("uri".to_owned(), Value::from(&*uri))]);
    let begun = Arc::new(Mutex::new(None));
    let (client, own, slot) = (server.client.clone(), Arc::clone(&uri), Arc::clone(&begun));
    let body = Body(move |_: ToolContext| {
        let (client, uri, begun) = (client.clone(), Arc::clone(&own), Arc::clone(&slot));
        async move {
            *begun.lock() = Some(client.subscribe(uri).await?);
            Ok(ToolOutput::default())
        }
    });
    let tool = tool(&server.name, "resources", RESOURCES, body).ok_or_else(absent)?;
    context.through_the_pipe(&servers.step, tool, arguments, absent).await?;
    let upstream = begun.lock().take().ok_or_else(absent)?;
    Ok(Subscription { server: Arc::clone(&server.name), uri, _upstream: upstream })
}

/// The resources of a server in the form that rules judge.
fn judged(server: &Server) -> Option<Tool> {
    tool(&server.name, "resources", RESOURCES, JudgedOnly)
}

/// Whether personality, skills and policy permit a resource of a server.
fn permits(servers: &Servers, judged: &Tool, uri: &str) -> bool {
    servers.step.iteration.admits(judged, Some(&json!({ "uri": uri })))
}
