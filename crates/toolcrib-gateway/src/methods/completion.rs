//! Completion of arguments of prompts and of resource templates.

use std::time::Duration;

use rmcp::{
    ErrorData,
    model::{CustomResult, ServerResult},
};
use serde_json::{Map, Value, json};
use toolcrib_core::{ToolContext, ToolError, ToolOutput};
use toolcrib_mcp::McpClient;

use super::{assets::request, find_resource, prompts};
use crate::{
    client::{
        judged::{Body, RESOURCES, tool},
        offers::CombinedOffers,
        request::RequestContext,
    },
    wire::message::{Outcome, no_method},
};

/// `completion/complete`.
pub(crate) async fn complete(
    context: &RequestContext<'_>,
    mut params: Map<String, Value>,
) -> Outcome {
    let _place = context.place()?;
    let wrong = || {
        let message = "`completion/complete` takes `ref`, a prompt or a resource template, and \
            `argument`, with `name` and `value`";
        ErrorData::invalid_params(message, None)
    };
    let Some(Value::Object(mut of)) = params.remove("ref") else { return Err(wrong()) };
    if !params.get("argument").is_some_and(Value::is_object) {
        return Err(wrong());
    }
    let text = |of: &Map<String, Value>, name: &str| {
        of.get(name).and_then(Value::as_str).map(str::to_owned)
    };
    let servers = context.servers().await?;
    // No server is waited for: only that of the reference must answer.
    if !CombinedOffers::within(Duration::ZERO, &servers.all).await.completions {
        return Err(no_method("completion/complete"));
    }
    let (server, prompt) = match text(&of, "type").as_deref() {
        Some("ref/prompt") => {
            let name = text(&of, "name").ok_or_else(wrong)?;
            let found =
                prompts::find(&servers, &context.serving.gateway.config.names, &name).await?;
            of.insert("name".to_owned(), (*found.own).into());
            (found.server, Some(found.known))
        }
        Some("ref/resource") => {
            let uri = text(&of, "uri").ok_or_else(wrong)?;
            let found = find_resource::find(context, &servers, &uri, "completion/complete").await?;
            of.insert("uri".to_owned(), (*found.uri).into());
            (found.server, None)
        }
        _ => return Err(wrong()),
    };
    params.insert("ref".to_owned(), of.clone().into());
    // Rules on arguments judge a template like a resource. Everything that the server receives is
    // searched for secrets.
    let mut arguments = params.clone();
    arguments.retain(|key, _| ["argument", "context"].contains(&key.as_str()));
    arguments.extend(of.into_iter().filter(|(key, _)| key == "uri"));
    let client = server.client.clone();
    let body = Body(move |cx: ToolContext| values(client.clone(), params.clone(), cx));
    let tool = match &prompt {
        Some(known) => prompts::prompt(server, known, body),
        None => tool(&server.name, "resources", RESOURCES, body),
    };
    let absent = || ErrorData::invalid_params("there is nothing to complete by this name", None);
    let tool = tool.ok_or_else(absent)?;
    let result = context.through_the_pipe(&servers.step, tool, arguments, absent).await?;
    let completion = result.structured.filter(|completion| completion.get("values").is_some());
    let completion = completion.unwrap_or_else(|| json!({ "values": [], "hasMore": true }));
    let mut answer = Map::from_iter([("completion".to_owned(), completion)]);
    answer.extend(result.meta.map(|meta| *meta).unwrap_or_default());
    prompts::finish(context, &mut answer);
    Ok(ServerResult::CustomResult(CustomResult::new(answer.into())))
}

/// The values that a server proposes; none if it completes nothing.
async fn values(
    client: McpClient,
    params: Map<String, Value>,
    cx: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let offers = client.offers().await?;
    if offers.capabilities.completions.is_none() {
        return Ok(ToolOutput::json(json!({ "values": [] })));
    }
    let mut answer = client.request(request("completion/complete", params, &cx)).await?;
    let completion = answer.remove("completion").unwrap_or_default();
    answer.retain(|key, _| key == "_meta");
    Ok(ToolOutput { meta: Some(answer.into()), ..ToolOutput::json(completion) })
}
