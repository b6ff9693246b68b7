//! What a search changes in the bytes of later requests.

use std::{iter, sync::Arc};

use serde_json::{Value, json};
use toolcrib_core::{
    CALL_TOOL, Menu, Message, ModelRequest, SEARCH_TOOLS, Tool, ToolCall, ToolName,
};
use toolcrib_models::{OpenAiApi, Vendor, VendorModel};

use crate::support::{ReceivedRequest, Reply, Server, ask, request, tool};

/// An API, and whether its own tool search is used.
#[derive(Debug, Clone, Copy)]
struct Kind {
    vendor: Vendor,
    api: Option<OpenAiApi>,
    loads: bool,
}

const fn kind(vendor: Vendor, api: Option<OpenAiApi>, loads: bool) -> Kind {
    Kind { vendor, api, loads }
}

const KINDS: [Kind; 7] = [
    kind(Vendor::Anthropic, None, true),
    kind(Vendor::Anthropic, None, false),
    kind(Vendor::OpenAi, Some(OpenAiApi::Responses), true),
    kind(Vendor::OpenAi, Some(OpenAiApi::Responses), false),
    kind(Vendor::OpenAi, Some(OpenAiApi::ChatCompletions), false),
    kind(Vendor::Gemini, None, false),
    kind(Vendor::Ollama, None, false),
];

/// A new model each time: a restarted program has no caches.
async fn sent(kind: Kind, asked: ModelRequest) -> ReceivedRequest {
    let server = Server::start(iter::repeat_with(|| Reply::json(500, "{}"))).await;
    let mut builder =
        VendorModel::builder(kind.vendor, "m").base_url(&server.url).tool_search(kind.loads);
    if let Some(api) = kind.api {
        builder = builder.api(api);
    }
    let model = Arc::new(builder.build().unwrap());
    ask(&model, asked).await.outcome.unwrap_err();
    server.last()
}

fn framework(name: &str) -> Tool {
    let schema = json!({ "type": "object", "properties": { "needs": { "type": "array" } } });
    let builder = Tool::builder(name).description(name).input_schema(schema).framework();
    builder.handler(|_: Value, _| async { "never called" }).unwrap()
}

fn plain(name: &str) -> Tool {
    tool(name, &format!("What {name} does."), json!({ "type": "object", "properties": {} }))
}

/// The menu of a mode after these tools were found.
fn menu(listed: bool, found: &[&str]) -> Menu {
    let mut tools = vec![plain("visible"), framework(SEARCH_TOOLS)];
    if !listed {
        tools.push(framework(CALL_TOOL));
    }
    let names: Vec<_> = found.iter().map(|name| ToolName::new(*name).unwrap()).collect();
    let deferred = ["alpha", "beta", "gamma"].map(plain).to_vec();
    Menu::with_deferred(tools, deferred).unwrap().reveal(&names, listed)
}

fn searched(found: &[&str], number: usize) -> [Message; 2] {
    let id = format!("call_{number}");
    let tools: Vec<_> =
        found.iter().map(|name| json!({ "name": name, "description": "It." })).collect();
    let text = json!({ "found": [{ "need": "it", "tools": tools }] }).to_string();
    let call = ToolCall::new(id.as_str(), SEARCH_TOOLS, json!({ "needs": ["it"] }));
    let result = Message::Tool {
        call_id: id.into(),
        name: SEARCH_TOOLS.into(),
        text: text.into(),
        blocks: Arc::default(),
        is_error: false,
        untrusted: false,
    };
    [Message::assistant("", vec![call]), result]
}

/// A conversation before any search, after one and after two, with the menus of a mode.
fn conversation(listed: bool) -> Vec<ModelRequest> {
    let mut messages = vec![Message::user("Do it.")];
    let mut requests = Vec::new();
    let mut asked = |messages: &[Message], found: &[&str]| {
        let menu = Arc::new(menu(listed, found));
        requests.push(ModelRequest { menu, ..request(messages.to_vec(), Vec::new()) });
    };
    asked(&messages, &[]);
    messages.extend(searched(&["beta"], 1));
    asked(&messages, &["beta"]);
    messages.extend(searched(&["gamma", "alpha"], 2));
    asked(&messages, &["beta", "gamma", "alpha"]);
    requests
}

/// The JSON of the tools.
fn tools(seen: &ReceivedRequest) -> Vec<Value> {
    let tools = seen.json()["tools"].as_array().unwrap().clone();
    match tools.first().and_then(|first| first["functionDeclarations"].as_array()) {
        Some(declared) => declared.clone(),
        None => tools,
    }
}

/// The name of a declaration.
fn name(tool: &Value) -> &str {
    let named = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
    named.or_else(|| tool["type"].as_str()).unwrap()
}

#[tokio::test]
async fn the_bytes_before_the_first_revealed_tool_stay_the_same() {
    for kind in KINDS {
        for listed in [false, true] {
            let mut bodies = Vec::new();
            for asked in conversation(listed) {
                bodies.push(sent(kind, asked).await);
            }
            let [before, after, last] = &bodies[..] else { panic!() };
            // Where the first revealed tool begins: in the tools, or after all of the conversation.
            let end = |seen: &ReceivedRequest| {
                seen.body.find("\"beta\"").or(seen.body.find("\\\"beta\\\""))
            };
            assert_eq!(end(before), None, "{kind:?}");
            let revealed = end(after).unwrap();
            let begins = &after.body[..revealed];
            let common = before.body.bytes().zip(after.body.bytes());
            let common = common.take_while(|(one, other)| one == other).count();
            // The first difference is the revealed tool, or the end of the first conversation.
            let stable = begins.rfind("{").unwrap().min(common);
            assert!(after.body.starts_with(&before.body[..stable]), "{kind:?} {listed}");
            // Of the messages, only the breakpoints move along.
            let plain = |body: &str| body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
            assert!(plain(&last.body).starts_with(&plain(begins)), "{kind:?} {listed}");
            // All definitions before it are the same, byte for byte.
            let (first, then) = (tools(before), tools(after));
            assert_eq!(then[..first.len()], first, "{kind:?} {listed}");
            let block = serde_json::to_string(&first).unwrap();
            let same = |seen: &ReceivedRequest| seen.body.contains(block.trim_end_matches(']'));
            assert!(same(before) && same(after) && same(last), "{kind:?} {listed}");
        }
    }
}

#[tokio::test]
async fn revealed_tools_are_declared_in_order_where_the_mode_says() {
    for kind in KINDS {
        for listed in [false, true] {
            let asked = conversation(listed).pop().unwrap();
            let seen = sent(kind, asked).await;
            let tools = tools(&seen);
            let names: Vec<_> = tools.iter().map(name).collect();
            let expected: &[&str] = match (kind.vendor, kind.loads, listed) {
                (Vendor::Anthropic, true, _) => {
                    &["visible", SEARCH_TOOLS, "beta", "gamma", "alpha"]
                }
                // The definitions are in the results.
                (_, true, _) => &["visible", "tool_search"],
                (_, false, true) => &["visible", SEARCH_TOOLS, "beta", "gamma", "alpha"],
                (_, false, false) => &["visible", SEARCH_TOOLS, CALL_TOOL],
            };
            assert_eq!(names, expected, "{kind:?} {listed}");
            for tool in &tools {
                let defers = tool.get("defer_loading").is_some();
                assert!(!(defers && tool.get("cache_control").is_some()), "{tool}");
                assert_eq!(defers, kind.loads && ["beta", "gamma", "alpha"].contains(&name(tool)));
            }
        }
    }
}

#[tokio::test]
async fn a_restarted_program_sends_the_same_bytes() {
    for kind in KINDS {
        for listed in [false, true] {
            for (one, other) in conversation(listed).into_iter().zip(conversation(listed)) {
                assert_eq!(sent(kind, one).await.body, sent(kind, other).await.body, "{kind:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_tool_that_is_no_longer_permitted_is_not_loaded() {
    for kind in KINDS.into_iter().filter(|kind| kind.loads) {
        let mut asked = conversation(false).pop().unwrap();
        // The policy has revoked `gamma`: the menu neither defers nor reveals it.
        let tools = vec![plain("visible"), framework(SEARCH_TOOLS), framework(CALL_TOOL)];
        let names = ["beta", "gamma", "alpha"].map(|name| ToolName::new(name).unwrap());
        let deferred = ["alpha", "beta"].map(plain).to_vec();
        asked.menu = Arc::new(Menu::with_deferred(tools, deferred).unwrap().reveal(&names, false));
        let seen = sent(kind, asked).await;
        assert!(seen.body.contains("\"beta\"") && !seen.body.contains("gamma"), "{}", seen.body);
    }
}

#[tokio::test]
async fn a_failed_search_keeps_its_words() {
    for kind in KINDS {
        let mut asked = conversation(false).swap_remove(0);
        let [call, _] = searched(&[], 1);
        let failed = Message::Tool {
            call_id: "call_1".into(),
            name: SEARCH_TOOLS.into(),
            text: "`needs` has at most 5 items".into(),
            blocks: Arc::default(),
            is_error: true,
            untrusted: false,
        };
        asked.messages = Arc::new(vec![Message::user("Do it."), call, failed]);
        assert!(sent(kind, asked).await.body.contains("at most 5 items"), "{kind:?}");
    }
}

#[test]
fn a_vendor_s_feature_is_refused_where_the_api_lacks_it() {
    for (vendor, base_url) in [(Vendor::Gemini, None), (Vendor::OpenAi, Some("http://127.0.0.1:1"))]
    {
        let mut builder = VendorModel::builder(vendor, "m");
        if let Some(url) = base_url {
            builder = builder.base_url(url);
        }
        let searches = builder.clone().tool_search(true).build().unwrap_err().to_string();
        assert!(searches.contains("`tool_search` must be false"), "{searches}");
        let clears = builder.clear_above(50_000).build().unwrap_err().to_string();
        assert!(clears.contains("`clear_above` must be absent"), "{clears}");
    }
}
