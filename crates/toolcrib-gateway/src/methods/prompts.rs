//! Prompts of the servers, under the names that their tools would have.

use std::{collections::HashSet, sync::Arc};

use rmcp::{
    ErrorData,
    model::{CustomResult, ServerResult},
};
use serde_json::{Map, Value, json};
use toolcrib_core::{
    __internal::shortened, ContentBlock, Tool, ToolBody, ToolContext, ToolError, ToolOutput,
};
use toolcrib_mcp::{
    __internal::{self as mcp, AssetKind},
    McpClient,
};

use super::{
    assets::{described, listed, lists, one_page, request, withheld},
    find_resource::link,
};
use crate::{
    client::{
        judged::{Body, JudgedOnly, PROMPTS, named},
        names::ShownNames,
        request::RequestContext,
        request_servers::Servers,
        servers::Server,
    },
    wire::{
        message::{Outcome, is_of_protocol, no_method},
        result,
    },
};

/// The field of a block with the role of its message.
const ROLE: &str = "role";

/// `prompts/list`.
pub(crate) async fn list(context: &RequestContext<'_>, params: Map<String, Value>) -> Outcome {
    one_page(&params)?;
    let _place = context.place()?;
    let servers = context.servers().await?;
    let lists = lists(&servers, &[AssetKind::Prompts], |_, _, _| false).await;
    if lists.is_none_offered {
        return Err(no_method("prompts/list"));
    }
    let redactor = context.serving.gateway.config.engine.redactor();
    let names = &context.serving.gateway.config.names;
    let fresh_for = lists.fresh_for(&servers, AssetKind::Prompts);
    let (mut items, mut taken) = (Vec::new(), HashSet::new());
    for (server, list) in servers.all.iter().zip(lists.of_servers) {
        for item in list.iter() {
            let Some(own) = item.get("name").and_then(Value::as_str) else { continue };
            let known = server.client.exposed_name(own);
            // As `find`: the first of two equal names, whether it is permitted or not.
            let shown = names.of_server(&server.name, &known, Some(own)).into_owned();
            let shown = if taken.insert(shown.clone()) { shown } else { known.clone() };
            let judged = prompt(server, &known, JudgedOnly);
            if !judged.is_some_and(|judged| servers.step.iteration.admits(&judged, None)) {
                continue;
            }
            let Ok(mut item) = described(redactor, AssetKind::Prompts, item) else { continue };
            item.insert("name".to_owned(), shown.into());
            items.push(Value::Object(item));
        }
    }
    Ok(listed(context, AssetKind::Prompts, &items, fresh_for))
}

/// `prompts/get`.
pub(crate) async fn get(context: &RequestContext<'_>, mut params: Map<String, Value>) -> Outcome {
    let _place = context.place()?;
    let (name, arguments) = match (params.remove("name"), params.remove("arguments")) {
        (Some(Value::String(name)), None | Some(Value::Null)) => (name, Map::new()),
        (Some(Value::String(name)), Some(Value::Object(arguments))) => (name, arguments),
        _ => {
            let message =
                "`prompts/get` takes `name`, a string, and `arguments`, an object or absent";
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let servers = context.servers().await?;
    let ServerPrompt { server, own, known, item } =
        find(&servers, &context.serving.gateway.config.names, &name).await?;
    let redactor = context.serving.gateway.config.engine.redactor();
    described(redactor, AssetKind::Prompts, &item).map_err(withheld)?;
    let mut sent = Map::from_iter([("name".to_owned(), Value::from(&*own))]);
    if !arguments.is_empty() {
        sent.insert("arguments".to_owned(), arguments.clone().into());
    }
    let client = server.client.clone();
    let body = Body(move |cx: ToolContext| messages(client.clone(), sent.clone(), cx));
    let absent = || no_prompt(&name);
    let tool = prompt(server, &known, body).ok_or_else(absent)?;
    let mut result = context.through_the_pipe(&servers.step, tool, arguments, absent).await?;
    let gateway = &context.serving.gateway;
    link(context, &servers.step, &server.name, &mut result.blocks);
    // A user has chosen the prompt, so its own text is not fenced; that of resources in it is.
    let fences = gateway.fences(&context.caller.access, &server.name);
    let messages: Vec<_> = result
        .blocks
        .iter()
        .filter_map(|block| {
            let role = block.fields().and_then(|fields| fields.get(ROLE)).cloned();
            let content = match block {
                ContentBlock::Text { .. } => result::block(block, &result.name, fences),
                _ => mcp::block(block),
            };
            Some(json!({ "role": role.unwrap_or_else(|| "user".into()), "content": content? }))
        })
        .collect();
    let mut answer = Map::from_iter([("messages".to_owned(), Value::from(messages))]);
    answer.extend(result.meta.map(|meta| *meta).unwrap_or_default());
    finish(context, &mut answer);
    Ok(ServerResult::CustomResult(CustomResult::new(answer.into())))
}

/// The messages of a server's prompt.
async fn messages(
    client: McpClient,
    params: Map<String, Value>,
    cx: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let mut answer = client.request(request("prompts/get", params, &cx)).await?;
    let server = client.name().as_str();
    let Some(Value::Array(messages)) = answer.remove("messages") else {
        let about = format!("MCP server `{server}` gave no messages of the prompt");
        return Err(ToolError::failed(about));
    };
    let blocks = messages.into_iter().map(|message| block(server, message));
    let blocks = blocks.collect::<Result<_, _>>()?;
    answer.retain(|key, _| ["_meta", "description"].contains(&key.as_str()));
    Ok(ToolOutput { blocks, meta: Some(answer.into()), ..ToolOutput::default() })
}

/// Completes a result with a server's metadata, in the form of the request's era.
pub(crate) fn finish(context: &RequestContext<'_>, answer: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = answer.get_mut("_meta") {
        meta.retain(|key, _| !is_of_protocol(key));
    }
    if context.era.session().is_none() {
        answer.insert("resultType".to_owned(), "complete".into());
    }
}

/// A message of a prompt, whose role is kept in a field.
fn block(server: &str, message: Value) -> Result<ContentBlock, ToolError> {
    let Value::Object(mut message) = message else {
        return mcp::content_block(server, message);
    };
    let role = message.remove(ROLE).unwrap_or_else(|| "user".into());
    let mut content = message.remove("content").unwrap_or_default();
    if let Some(content) = content.as_object_mut() {
        content.insert(ROLE.to_owned(), role);
    }
    mcp::content_block(server, content)
}

/// A prompt of a server.
pub(crate) struct ServerPrompt<'a> {
    pub(crate) server: &'a Server,
    /// The server's own name.
    pub(crate) own: Arc<str>,
    /// The whole name, by which rules judge, whatever name a client uses.
    pub(crate) known: String,
    /// Its description, as listed.
    pub(crate) item: Map<String, Value>,
}

/// The prompt that a client means by a name.
pub(crate) async fn find<'a>(
    servers: &'a Servers,
    shown: &ShownNames,
    name: &str,
) -> Result<ServerPrompt<'a>, ErrorData> {
    let has = |server: &Server, list: &[Map<String, Value>]| {
        list.iter().find_map(|item| {
            let own = item.get("name").and_then(Value::as_str)?;
            let known = server.client.exposed_name(own);
            let is_meant =
                known == name || shown.of_server(&server.name, &known, Some(own)) == name;
            is_meant.then(|| (Arc::<str>::from(own), known, item.clone()))
        })
    };
    let in_list = |server: &'a Server, list: &[Map<String, Value>]| {
        has(server, list).map(|(own, known, item)| ServerPrompt { server, own, known, item })
    };
    // A server that does not answer delays nothing that the last lists decide.
    let known = servers
        .all
        .iter()
        .find_map(|server| in_list(server, &server.client.last_assets(AssetKind::Prompts)?));
    if let Some(found) = known {
        return Ok(found);
    }
    let has_it =
        |server: &Server, _: AssetKind, list: &[Map<String, Value>]| has(server, list).is_some();
    let lists = lists(servers, &[AssetKind::Prompts], has_it).await;
    if lists.is_none_offered {
        return Err(no_method("prompts/get"));
    }
    let mut listed = servers.all.iter().zip(&lists.of_servers);
    listed.find_map(|(server, list)| in_list(server, list)).ok_or_else(|| no_prompt(name))
}

/// A prompt in the form that rules judge.
pub(crate) fn prompt(server: &Server, name: &str, body: impl ToolBody) -> Option<Tool> {
    named(&server.name, name.to_owned(), PROMPTS, body)
}

fn no_prompt(name: &str) -> ErrorData {
    let message = format!("there is no prompt `{}`", shortened(name));
    ErrorData::invalid_params(message, None)
}
