//! What one personality of a caller without a session was shown or may continue was there for its other
//! personalities.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use toolcrib_engine::Personality;
use toolcrib_gateway::{Access, Gateway, GatewayBuilder, HttpAccess};
use toolcrib_mcp::{McpClient, SessionScope, pipe_mcp_client};

use crate::{
    asks::End,
    support::{Era, engine},
    web::{ANA, BOB, Web, request, stateless},
    whole,
};

const GUEST: &str = "ana-as-guest-0123456789";
const OTHER_TENANT: &str = "ana-of-acme-0123456789";
const UNNAMED: &str = "unnamed-token-0123456789";

/// A gateway to servers, for callers with several personalities.
async fn served(servers: &[McpClient]) -> Web {
    let engine = engine().personality(Personality::new("guest"));
    let engine =
        servers.iter().fold(engine, |engine, server| engine.provider(Arc::new(server.clone())));
    let gateway = Gateway::builder(engine.build().unwrap());
    let gateway = servers.iter().fold(gateway, GatewayBuilder::watch);
    Web::of(&gateway.build(), callers()).await
}

fn callers() -> HttpAccess {
    let ana = || Access::new().principal("ana");
    HttpAccess::new()
        .token(ANA, ana())
        .token(GUEST, ana().personality("guest"))
        .token(OTHER_TENANT, ana().tenant("acme"))
        .token(BOB, Access::new().principal("bob"))
        .token(UNNAMED, Access::new())
}

/// The result or the error of a request without a session.
async fn asked(web: &Web, token: &str, method: &str, params: Value) -> Value {
    let uri = params["uri"].as_str().map(str::to_owned);
    let mut request = stateless("/mcp", token, method, params);
    if let Some(uri) = uri {
        request.headers_mut().insert("mcp-name", uri.parse().unwrap());
    }
    let answer = web.reply(request).await.message();
    let is_error = answer["error"].is_object();
    answer[if is_error { "error" } else { "result" }].clone()
}

#[tokio::test]
async fn a_link_was_read_by_those_who_had_not_received_it() {
    // With one server, each URI is its own.
    let web = served(&["s", "t"].map(|name| whole::server(name, Era::Stateless))).await;
    let link = json!({ "name": "mcp__s__mixed", "arguments": {} });
    let read = async |token: &str| {
        let read = asked(&web, token, "resources/read", json!({ "uri": "far://away" })).await;
        let is_read = read["contents"][0]["text"].as_str().is_some_and(|it| it.contains("read me"));
        assert!(is_read || read["code"] == -32602, "{token}: {read}");
        is_read
    };
    let mut may = Vec::new();
    for token in [ANA, GUEST, OTHER_TENANT, BOB] {
        assert!(!read(token).await, "{token}: no server lists such a resource");
        let called = asked(&web, token, "tools/call", link.clone()).await;
        assert!(called.to_string().contains("far://away"), "{token}: {called}");
        may.push(token);
        for other in [ANA, GUEST, OTHER_TENANT, BOB, UNNAMED] {
            assert_eq!(read(other).await, may.contains(&other), "{token}: {other}");
        }
    }
    // The next request with the token may be that of another person.
    let called = asked(&web, UNNAMED, "tools/call", link).await;
    assert!(called.to_string().contains("far://away") && !read(UNNAMED).await, "{called}");
    // In a session, the same personality reads what it received without one, and no other does.
    let uri = json!({ "uri": "far://away" });
    let bob = web.session("/mcp", BOB).await;
    let answer = web.post(BOB, Some(&bob), &request("resources/read", &uri)).await.message();
    assert_eq!(answer["result"]["contents"][0]["uri"], "far://away", "{answer}");
    web.end().await;
}

#[tokio::test]
async fn a_call_that_waits_for_input_was_continued_by_another_personality() {
    let web = served(&[whole::server("s", Era::Stateless)]).await;
    let ask = async |token: &str, more: &Value| {
        let mut params = json!({ "name": "mcp__s__ask", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        }});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        asked(&web, token, "tools/call", params).await
    };
    let waits = ask(ANA, &json!({})).await;
    let key = waits["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let response = json!({ "action": "accept", "content": { "name": "Ana" } });
    let round =
        json!({ "requestState": waits["requestState"], "inputResponses": { key: response } });
    for other in [GUEST, OTHER_TENANT, BOB, UNNAMED] {
        let refused = ask(other, &round).await;
        assert_eq!(refused["code"], -32602, "{other}: {refused}");
    }
    let continued = ask(ANA, &round).await;
    assert!(continued["content"][0]["text"].as_str().unwrap().contains("hi Ana"), "{continued}");
    web.end().await;
}

#[tokio::test]
async fn a_session_of_a_server_for_one_client_served_another_personality() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let open = move || {
        count.fetch_add(1, Ordering::SeqCst);
        let (near, far) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let tool = json!({ "name": "work", "inputSchema": { "type": "object" } });
            End::of(far).serve(json!([tool])).await;
        });
        Ok(near)
    };
    let server = pipe_mcp_client("s", open).session(SessionScope::Client).build().unwrap();
    let web = served(&[server]).await;
    let mut before = opened.load(Ordering::SeqCst);
    for token in [ANA, GUEST, OTHER_TENANT, BOB] {
        for begins in [1, 0] {
            asked(&web, token, "tools/list", json!({})).await;
            let now = opened.load(Ordering::SeqCst);
            assert_eq!(now - before, begins, "{token}");
            before = now;
        }
    }
    web.end().await;
}
