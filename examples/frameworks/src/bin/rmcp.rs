//! An engine's tools in an rmcp server, and the gateway of an engine. A client of rmcp lists and calls them.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;

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
use tokio::io::{DuplexStream, duplex};
use toolcrib::{
    CancellationToken,
    mcp::{Access, Gateway},
    prelude::*,
};

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

/// Serves an engine as the gateway does, until its client has gone.
async fn serve(engine: Engine, there: DuplexStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    // snippet
    let (read, write) = tokio::io::split(there);
    let gateway = Gateway::builder(engine).build();
    gateway.serve_stdio(read, write, Access::new(), CancellationToken::new()).await?;
    // end
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("a handler of rmcp:");
    let (here, there) = duplex(64 * 1024);
    let served = Served(engine()?);
    let server = tokio::spawn(async move {
        let running = served.serve(there).await?;
        running.waiting().await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    client(here).await?;
    server.await?.map_err(|error| error.to_string())?;

    println!("the gateway:");
    let (here, there) = duplex(64 * 1024);
    let server = tokio::spawn(serve(engine()?, there));
    client(here).await?;
    server.await?.map_err(|error| error.to_string())?;
    Ok(())
}

/// A client of rmcp.
async fn client(here: DuplexStream) -> Result<(), Box<dyn Error>> {
    let client = ().serve(here).await?;
    for tool in client.list_all_tools().await? {
        println!("  offered: {}", tool.name);
    }
    let arguments = json!({ "city": "Bergen" }).as_object().cloned().unwrap_or_default();
    let call = CallToolRequestParams::new("weather").with_arguments(arguments);
    let result = client.call_tool(call).await?;
    let text = result.content.iter().filter_map(|block| block.as_text());
    let text: String = text.map(|block| block.text.as_str()).collect();
    println!("  weather: {text}");
    match client.call_tool(CallToolRequestParams::new("heating_off")).await {
        Ok(result) => println!("  heating_off: error: {}", result.is_error.unwrap_or_default()),
        Err(error) => println!("  heating_off: {error}"),
    }
    client.cancel().await?;
    Ok(())
}
