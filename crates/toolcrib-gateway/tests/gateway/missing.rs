//! A withheld tool is named to a client that may know it, with a fixed text as its reason.

use std::sync::Arc;

use rmcp::service::ServiceError;
use serde_json::{Value, json};
use tokio::io::duplex;
use toolcrib_core::{DefinitionCheck, ListContext, Policy, Rule, Tool, gated_tools, static_tools};
use toolcrib_engine::{Deferral, EngineBuilder};
use toolcrib_gateway::{Access, Gateway};
use toolcrib_mcp::{McpClient, pipe_mcp_client};

use super::{
    asks::{End, client, initialized},
    support::{Client, ERAS, Era, builder, engine, tool},
};

/// The tools of the server: one is usable, and each other one is withheld for another reason.
fn tools() -> Value {
    let object = json!({ "type": "object" });
    let twin = |description: &str| json!({ "name": "twin", "description": description, "inputSchema": object });
    let task = json!({ "taskSupport": "required" });
    json!([
        { "name": "fine", "inputSchema": object },
        { "name": "broken", "inputSchema": "EVIL text" },
        { "name": "hidden", "inputSchema": "EVIL text" },
        { "name": "excluded", "inputSchema": "EVIL text" },
        { "name": "bad_words", "description": "EVIL text", "inputSchema": object },
        { "name": "task", "inputSchema": object, "execution": task },
        { "name": "schema", "inputSchema": { "type": "object", "properties": { "a": { "$ref": "#/nowhere" } } } },
        twin("One."), twin("Two."),
    ])
}

/// A server of 2025-11-25 with these tools.
fn server(tools: Value) -> McpClient {
    let open = move || {
        let ((near, far), tools) = (duplex(1 << 16), tools.clone());
        tokio::spawn(async move { End::of(far).serve(tools).await });
        Ok(near)
    };
    let check = |tool: &Tool| tool.description().contains("EVIL").then(|| "EVIL text".into());
    let client = pipe_mcp_client("s", open).exclude(["excluded"]);
    client.definition_check(DefinitionCheck::new(check)).build().unwrap()
}

fn gateway(engine: EngineBuilder) -> Gateway {
    gateway_of(engine, tools())
}

fn gateway_of(engine: EngineBuilder, tools: Value) -> Gateway {
    let server = server(tools);
    let engine = engine.provider(Arc::new(server.clone())).build().unwrap();
    Gateway::builder(engine).watch(&server).build()
}

const NAMED: [(&str, &str); 5] = [
    ("mcp__s__bad_words", "a check refuses its definition"),
    ("mcp__s__broken", "its definition is invalid"),
    ("mcp__s__schema", "its schema cannot be enforced"),
    ("mcp__s__task", "it can only run as a task, which is not supported"),
    ("mcp__s__twin", "another tool has its name"),
];

#[tokio::test]
async fn a_withheld_tool_vanished_without_a_word_to_the_client() {
    for era in [Era::Sessions, Era::Stateless] {
        let policy = Policy::of([Rule::deny("no").tools(["mcp__s__hidden"])]);
        let client = Client::of(&gateway(engine().policy(policy)), era, Access::new()).await;
        let listing = client.peer.list_tools(None).await.unwrap();
        let mut names: Vec<_> = listing.tools.iter().map(|tool| &*tool.name).collect();
        names.sort_unstable();
        assert_eq!(names, ["mcp__s__fine", "mcp__s__twin"]);
        let meta = json!(listing.meta.unwrap())["toolcrib/withheld"].clone();
        let tools = meta["tools"].as_array().unwrap().iter();
        let mut named: Vec<_> = tools
            .map(|tool| (tool["name"].as_str().unwrap(), tool["reason"].as_str().unwrap()))
            .collect();
        named.sort_unstable();
        assert_eq!((meta["count"].as_u64(), &*named), (Some(5), &NAMED[..]), "{era:?}");
        for (name, reason) in &NAMED[..4] {
            let error = client.refused(name).await;
            assert_eq!(error.message, format!("this tool is withheld: {reason}; go on without it"));
        }
        // One that a rule or the operator hides, and one that does not exist.
        for name in ["hidden", "excluded", "nothing"] {
            let error = client.refused(&format!("mcp__s__{name}")).await;
            assert!(error.message.starts_with("unknown tool"), "{error:?}");
        }
    }
}

#[tokio::test]
async fn a_session_reads_of_withheld_tools_once_in_a_log_message() {
    let mut client = client(&gateway(engine()), &json!({})).await;
    initialized(&mut client).await;
    let mut messages = Vec::new();
    for id in [1, 2] {
        client.send(json!({ "id": id, "method": "tools/list", "params": {} })).await;
        loop {
            let message = client.read().await;
            if message["id"] == id {
                break;
            }
            if message["method"] == "notifications/message" {
                messages.push(message["params"].clone());
            }
        }
    }
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(message["level"], "warning");
    let text = message["data"].as_str().unwrap();
    assert!(text.contains("\"mcp__s__broken\" (its definition is invalid)"), "{text}");
    assert!(!text.contains("EVIL") && !text.contains("excluded"), "{text}");
}

#[tokio::test]
async fn at_most_twenty_withheld_tools_are_named() {
    let many = (0..23).map(|at| json!({ "name": format!("t{at:02}"), "inputSchema": 1 }));
    let gateway = gateway_of(engine(), Value::from_iter(many));
    let client = Client::of(&gateway, Era::Sessions, Access::new()).await;
    let meta = json!(client.peer.list_tools(None).await.unwrap().meta.unwrap());
    let withheld = &meta["toolcrib/withheld"];
    assert_eq!(withheld["count"], 23);
    assert_eq!(withheld["tools"].as_array().unwrap().len(), 20);
}

#[tokio::test]
async fn call_tool_called_a_withheld_tool_unknown() {
    for era in ERAS {
        let engine = engine().defer(Deferral::new().tools(["mcp__s__fine"]));
        let client = Client::of(&gateway(engine), era, Access::new()).await;
        assert!(client.names().await.contains(&"call_tool".to_owned()));
        for name in ["broken", "bad_words", "nothing"] {
            let name = format!("mcp__s__{name}");
            let direct = client.refused(&name).await;
            let called = json!({ "tool": name, "arguments": {} });
            match client.try_call("call_tool", called).await {
                Err(ServiceError::McpError(error)) => assert_eq!(error, direct, "{era:?}"),
                other => panic!("{era:?}: no protocol error: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_withheld_tool_was_named_longer_than_its_client_takes() {
    let long = json!([{ "name": "reads_the_history_of_a_repository", "inputSchema": 1 }]);
    for era in ERAS {
        let gateway = gateway_of(engine(), long.clone());
        let client = Client::of(&gateway, era, Access::new().max_name_chars(24)).await;
        let meta = json!(client.peer.list_tools(None).await.unwrap().meta.unwrap());
        let name = meta["toolcrib/withheld"]["tools"][0]["name"].as_str().unwrap();
        assert!(name.len() == 24 && name.starts_with("mcp__s__reads_"), "{name}");
        for name in [name, "mcp__s__reads_the_history_of_a_repository"] {
            let error = client.refused(name).await;
            assert!(error.message.starts_with("this tool is withheld: its definition"), "{error}");
        }
    }
}

#[tokio::test]
async fn without_a_server_a_false_origin_is_named_and_a_gate_is_not() {
    let gate = |_: &Tool, _: &ListContext| false;
    for era in ERAS {
        let claims = builder("mcp__x__a").handler(|_: Value, _| async { "" }).unwrap();
        let gated = gated_tools("g", static_tools([tool("gated")]), gate);
        let engine = engine().tools([tool("fine"), claims]).provider(gated);
        let client = Client::to(engine, era).await;
        let listing = client.peer.list_tools(None).await.unwrap();
        let named = json!(listing.meta.unwrap())["toolcrib/withheld"].clone();
        let reason = "it claims to be of another source";
        let only = json!({ "count": 1, "tools": [{ "name": "mcp__x__a", "reason": reason }] });
        assert_eq!(named, only, "{era:?}");
        let error = client.refused("mcp__x__a").await;
        assert_eq!(error.message, format!("this tool is withheld: {reason}; go on without it"));
        assert!(client.refused("gated").await.message.starts_with("unknown tool"));
    }
}
