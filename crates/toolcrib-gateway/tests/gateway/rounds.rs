//! Calls that need input of a client without a session: their messages, and the limit of waiting calls.

use serde_json::{Value, json};
use toolcrib_gateway::{Access, Fence, HttpAccess};

use super::{
    asks::{End, gateway, no_rule},
    support::Era,
    web::{ANA, BOB, Reply, Web, stateless, two},
    whole,
};

const CAN: &str = "io.modelcontextprotocol/clientCapabilities";

/// The parameters of a call of `work`, with progress and log messages.
fn work(token: &str) -> Value {
    json!({ "name": "mcp__s__work", "arguments": {}, "_meta": {
        CAN: { "elicitation": {} }, "progressToken": token,
        "io.modelcontextprotocol/logLevel": "debug",
    }})
}

/// Progress and a log message of a call.
async fn report(server: &mut End, call: &Value, done: u32) {
    let token = &call["params"]["_meta"]["progressToken"];
    let meta = json!({
        "example.test/k": done, "toolcrib/x": 1, "io.modelcontextprotocol/x": 1,
    });
    let progress = json!({ "progressToken": token, "progress": done, "_meta": meta });
    server.send(json!({ "method": "notifications/progress", "params": progress })).await;
    let log = json!({ "level": "info", "data": format!("log {done}") });
    server.send(json!({ "method": "notifications/message", "params": log })).await;
}

/// The messages in the body of a response, but its last one.
fn heard(reply: &Reply) -> Vec<Value> {
    let events = reply.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut messages: Vec<Value> = events.map(|data| serde_json::from_str(data).unwrap()).collect();
    messages.pop();
    messages
}

/// They went to the stream of the first request, which had ended.
#[tokio::test]
async fn messages_of_a_later_round_come_with_its_request_and_its_token() {
    let (gateway, mut connections) = gateway(no_rule());
    let access = HttpAccess::new().token(ANA, Access::new().fence(Fence::Off));
    let web = Web::of(&gateway, access).await;
    let send = |params: Value| web.reply(stateless("/mcp", ANA, "tools/call", params));
    let asks = async {
        let mut server = connections.recv().await.unwrap();
        server.greeted().await;
        let call = server.heard().await;
        report(&mut server, &call, 1).await;
        let form = json!({ "message": "Who?", "requestedSchema": { "type": "object" } });
        server.send(json!({ "id": "e", "method": "elicitation/create", "params": form })).await;
        (server, call)
    };
    let (first, (mut server, call)) = tokio::join!(send(work("first")), asks);
    let asked = first.message()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{first:?}");

    let mut again = work("second");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    again["inputResponses"] = json!({ key: { "action": "decline" } });
    again["requestState"] = asked["requestState"].clone();
    let ends = async {
        assert_eq!(server.heard().await["result"]["action"], "decline");
        report(&mut server, &call, 2).await;
        server.answer(&call, json!({ "content": [] })).await;
    };
    let (second, ()) = tokio::join!(send(again), ends);
    for (reply, token, done) in [(first, "first", 1), (second, "second", 2)] {
        let heard = heard(&reply);
        let of = |method: &str| heard.iter().find(|it| it["method"] == method).cloned();
        let progress = of("notifications/progress").unwrap_or_else(|| panic!("{reply:?}"));
        assert_eq!(progress["params"]["progressToken"], token);
        assert_eq!(progress["params"]["progress"], f64::from(done));
        assert_eq!(progress["params"]["_meta"], json!({ "example.test/k": done }));
        let log = of("notifications/message").unwrap_or_else(|| panic!("{reply:?}"));
        assert_eq!(log["params"]["data"], format!("log {done}"));
    }
    web.end().await;
}

/// One client took all places of calls that wait.
#[tokio::test]
async fn a_principal_with_many_waiting_calls_leaves_places_to_others() {
    let web = Web::of(&whole::gateway(&["s"], Era::Stateless), two()).await;
    let ask = async |token: &str, more: Value| {
        let mut params = json!({
            "name": "mcp__s__ask", "arguments": {}, "_meta": { CAN: { "elicitation": {} } },
        });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = web.reply(stateless("/mcp", token, "tools/call", params)).await;
        reply.message()
    };
    let first = ask(ANA, json!({})).await["result"]["requestState"].clone();
    for _ in 1..256 {
        assert!(ask(ANA, json!({})).await["result"]["requestState"].is_string());
    }
    let refused = ask(ANA, json!({})).await;
    assert_eq!(refused["error"]["code"], -32603, "{refused}");
    let other = ask(BOB, json!({})).await;
    let state = &other["result"]["requestState"];
    assert!(state.is_string(), "{other}");
    // It took the place of the oldest.
    let gone = ask(ANA, json!({ "requestState": first })).await;
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    let kept = ask(BOB, json!({ "requestState": state })).await;
    assert_eq!(kept["result"]["resultType"], "input_required", "{kept}");
    web.end().await;
}
