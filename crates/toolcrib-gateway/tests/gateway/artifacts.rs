//! Results that are too large for a client's model, read on by it.

use serde_json::{Value, json};
use toolcrib_artifacts::{Artifacts, MemoryStore};
use toolcrib_core::{ArtifactStore, Identity, ToolContext, unfence};
use toolcrib_engine::{EngineBuilder, Limits, Personality};
use toolcrib_gateway::{Access, Gateway, HttpAccess};

use super::{
    support::{Client, ERAS, Era, builder, engine},
    web::{ANA, BOB, Web, request, stateless, two},
};

fn large(store: &MemoryStore) -> EngineBuilder {
    let lines: String = (1..=1_000).map(|n| format!("line {n}\n")).collect();
    let body = move |_: Value, _: ToolContext| {
        let lines = lines.clone();
        async move { lines }
    };
    engine()
        .tool(builder("log").handler(body).unwrap())
        .limits(Limits { batch_result_chars: 1_000, ..Limits::default() })
        .artifacts(Artifacts::new(store.clone()))
}

/// The id that a cut result names.
fn id_in(text: &str) -> String {
    let (_, id) = text.rsplit_once("the rest: artifact_read ").expect(text);
    id.strip_suffix(']').unwrap().to_owned()
}

#[tokio::test]
async fn clients_of_both_eras_read_the_rest_of_an_artifact() {
    for era in ERAS {
        let store = MemoryStore::new();
        let client = Client::to(large(&store), era).await;
        let all = ["log", "artifact_read", "artifact_search", "artifact_query"];
        assert_eq!(client.names().await, all);
        let cut = client.call("log", json!({})).await;
        let id = id_in(&cut.content[0].as_text().unwrap().text);
        let args = json!({ "id": id, "tail": 1 });
        let read = client.call("artifact_read", args).await;
        assert_eq!(unfence(&read.content[0].as_text().unwrap().text).0, "line 1000", "{era:?}");

        client.hears_nothing_more().await;
        let stateless = Identity::conversation("stateless");
        let left = store.entries(&stateless).unwrap().len();
        assert_eq!(left, usize::from(era == Era::Stateless), "a session's go with it");
    }
}

#[tokio::test]
async fn a_session_keeps_its_artifacts_when_it_is_begun_again_or_the_gateway_is_replaced() {
    let store = MemoryStore::new();
    let gateway = Gateway::builder(large(&store).build().unwrap()).build();
    let web = Web::of(&gateway, two()).await;
    let session = web.session("/mcp", ANA).await;
    let ask = async |method: &str, params: Value| {
        web.post(ANA, Some(&session), &request(method, &params)).await.message()
    };
    let call = async |name: &str, args: Value| {
        let answer = ask("tools/call", json!({ "name": name, "arguments": args })).await;
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let id = id_in(&call("log", json!({})).await);
    let client = json!({ "name": "again", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let refused = ask("initialize", params).await;
    assert!(refused["error"].is_object(), "{refused}");
    for last in ["line 1000", "line 1000"] {
        let read = call("artifact_read", json!({ "id": id, "tail": 1 })).await;
        assert_eq!(unfence(&read).0, last);
        let next = Gateway::builder(large(&store).build().unwrap());
        let replaced = gateway.replace(next, None).unwrap();
        // Its first request uses the new configuration, and the turn with the previous one ends.
        call("log", json!({})).await;
        assert!(replaced.ended(std::time::Duration::from_secs(9)).await);
    }
    web.end().await;
}

#[tokio::test]
async fn requests_of_one_caller_share_what_was_kept_and_no_other_caller_finds_it() {
    let store = MemoryStore::new();
    let gateway = Gateway::builder(large(&store).build().unwrap()).build();
    let web = Web::of(&gateway, two()).await;
    let call = async |token: &str, name: &str, args: Value| {
        let params = json!({ "name": name, "arguments": args });
        let reply = web.reply(stateless("/mcp", token, "tools/call", params)).await;
        reply.message()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let id = id_in(&call(ANA, "log", json!({})).await);
    let args = json!({ "id": id, "tail": 1 });
    assert_eq!(unfence(&call(ANA, "artifact_read", args.clone()).await).0, "line 1000");
    assert!(call(BOB, "artifact_read", args.clone()).await.contains("there are none"));
    // Nor with the same caller under a personality with less access.
    let gateway = large(&store).personality(Personality::new("guest")).build().unwrap();
    let guest = HttpAccess::new().token(ANA, Access::new().principal("ana").personality("guest"));
    let guests = Web::of(&Gateway::builder(gateway).build(), guest).await;
    let params = json!({ "name": "artifact_read", "arguments": args });
    let reply = guests.reply(stateless("/mcp", ANA, "tools/call", params)).await;
    assert!(reply.body.contains("there are none"), "{reply:?}");
    guests.end().await;
    // Nor in a session of the same caller, which is a separate conversation.
    let session = web.session("/mcp", ANA).await;
    let of_session = async |name: &str, args: &Value| {
        let params = json!({ "name": name, "arguments": args });
        let reply = web.post(ANA, Some(&session), &request("tools/call", &params)).await;
        reply.message()["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert!(of_session("artifact_read", &args).await.contains("there are none"));
    let id = id_in(&of_session("log", &json!({})).await);
    let args = json!({ "id": id, "tail": 1 });
    assert_eq!(unfence(&of_session("artifact_read", &args).await).0, "line 1000");
    web.end().await;
}
