//! The agent: three effects on an order, of which a person approves one.

use std::error::Error;

use serde_json::{Value, json};
use toolcrib::{
    CancellationToken,
    agent::Agent,
    agent::AgentBuilder,
    capabilities::http::{HttpClient, HttpRequest, Method},
    models::{Vendor, VendorModel},
    prelude::*,
};

/// None is idempotent: a call that was cut off is not made again.
const EFFECTS: [&str; 3] = ["charge", "refund", "notify"];

pub(crate) fn agent(api: &str) -> Result<AgentBuilder, Box<dyn Error>> {
    let client = HttpClient::builder().allow_addresses(["127.0.0.1/32".parse()?]).build();
    let effect = |name: &'static str| {
        let (client, api) = (client.clone(), api.to_owned());
        let schema = json!({ "type": "object", "properties": { "order": { "type": "string" } } });
        let tool = Tool::builder(name).description("Has an effect on an order.");
        tool.input_schema(schema).handler(move |arguments: Value, _: ToolContext| {
            let order = arguments.get("order").and_then(|order| order.as_str().map(str::to_owned));
            let (client, api) = (client.clone(), api.clone());
            async move {
                let order = order.ok_or_else(|| err("the order is missing"))?;
                let url = format!("{api}/effect/{order}/{name}");
                let request = HttpRequest::new(Method::POST, url);
                let sent = client.send(request, &CancellationToken::new()).await;
                let response = sent.map_err(|error| err(error.to_string()))?;
                Ok::<_, ToolError>(String::from_utf8_lossy(&response.body).into_owned())
            }
        })
    };
    let model = VendorModel::builder(Vendor::OpenAi, "stand-in").base_url(format!("{api}/v1"));
    let asks = Rule::ask("a person approves refunds").tools(["refund"]);
    let agent = Agent::builder().model(model.build()?).policy(Policy::of([asks]));
    Ok(agent.tools(EFFECTS.map(effect)))
}
