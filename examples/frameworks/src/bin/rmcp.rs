//! An rmcp server whose tools are those of an engine. A client of rmcp lists and calls them.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::{error::Error, sync::Arc};

use example_frameworks::engine;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::io::duplex;
use toolcrib::prelude::*;

// snippet
struct Served(Engine);

impl ServerHandler for Served {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut turn = self.0.turn(TurnOptions::default()).map_err(internal)?;
        let iteration = turn.iteration().await.map_err(internal)?;
        let tools = iteration.menu().tools().iter().map(|tool| {
            let schema = tool.input_schema().as_object().cloned().unwrap_or_default();
            Tool::new(tool.name().to_string(), tool.description().to_owned(), schema)
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut turn = self.0.turn(TurnOptions::default()).map_err(internal)?;
        let mut iteration = turn.iteration().await.map_err(internal)?;
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        let call = ToolCall::new(context.id.to_string(), &*call.name, arguments);
        let result = iteration.execute(vec![call]).await.remove(0);
        let content = vec![ContentBlock::text(&*result.text)];
        Ok(match result.is_ok() {
            true => CallToolResult::success(content),
            false => CallToolResult::error(content),
        }
        .into())
    }
}

fn internal(error: impl Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
// end

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (here, there) = duplex(64 * 1024);
    let server = tokio::spawn(async move {
        let served = Served(engine().map_err(|error| error.to_string())?);
        served.serve(there).await.map_err(|error| error.to_string())
    });
    let client = ().serve(here).await?;
    for tool in client.list_all_tools().await? {
        println!("offered: {}", tool.name);
    }
    for (name, arguments) in [("weather", json!({ "city": "Bergen" })), ("heating_off", json!({}))]
    {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let call = CallToolRequestParams::new(name).with_arguments(arguments);
        let result = client.call_tool(call).await?;
        let text = result.content.iter().filter_map(|block| block.as_text());
        let text: String = text.map(|block| block.text.as_str()).collect();
        println!("{name}: {text} (error: {})", result.is_error.unwrap_or_default());
    }
    client.cancel().await?;
    server.await??.cancel().await?;
    Ok(())
}
