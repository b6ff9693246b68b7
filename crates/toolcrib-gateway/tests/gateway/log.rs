//! The access log contains sender and target of requests, and never their arguments.

use serde_json::{Value, json};
use toolcrib_core::{Policy, Rule};
use toolcrib_engine::Redactor;
use toolcrib_gateway::{Access, Gateway};

use super::{
    support::{Client, ERAS, Era, Log, builder, engine, tool},
    web::{ANA, Web, request, stateless, two},
};

#[tokio::test]
async fn calls_and_listings_are_logged_with_identity_origin_and_outcome() {
    for era in ERAS {
        let remote = |name: &str| {
            let builder = builder(name)
                .origin("mcp:git")
                .mcp_server("git")
                .input_schema(json!({ "type": "object" }));
            builder.handler(|args: Value, _| async move { args["said"].to_string() }).unwrap()
        };
        let log = Log::default();
        let policy = Policy::of([Rule::deny("no pushing").tools(["mcp__git__push"])]);
        let engine = engine()
            .tools([remote("mcp__git__log"), remote("mcp__git__push"), tool("own")])
            .policy(policy);
        let gateway = Gateway::builder(engine.build().unwrap()).access_log(log.listener()).build();
        let access = Access::new().principal("ana").tenant("acme");
        let client = Client::of(&gateway, era, access).await;
        client.names().await;
        client.call("mcp__git__log", json!({ "said": "hunter2" })).await;
        client.refused("mcp__git__push").await;

        let listing = &log.of("tools/list")[0];
        assert_eq!((&listing["principal"], &listing["tenant"]), (&json!("ana"), &json!("acme")));
        assert_eq!((&listing["offered"], &listing["withheld"]), (&json!(2), &json!(1)));
        assert_eq!(
            listing["remote"],
            json!([
                { "name": "mcp__git__log", "origin": "mcp:git" },
                {
                    "name": "mcp__git__push", "origin": "mcp:git", "withheld_by": "policy",
                    "reason": listing["remote"][1]["reason"],
                },
            ])
        );
        assert!(listing["remote"][1]["reason"].as_str().unwrap().contains("no pushing"));

        let calls = log.of("tools/call");
        assert_eq!(
            (&calls[0]["tool"], &calls[0]["origin"]),
            (&json!("mcp__git__log"), &json!("mcp:git"))
        );
        assert_eq!((&calls[0]["code"], &calls[0]["chars"]), (&Value::Null, &json!(9)));
        assert_eq!(
            (&calls[1]["code"], &calls[1]["origin"]),
            (&json!("not_available"), &Value::Null)
        );
        assert!(calls[0]["time"].as_str().unwrap().ends_with('Z'));
        assert!(calls[0]["duration_ms"].is_u64() && calls[0]["turn_id"].is_string());
        assert_eq!(calls[0]["session"].is_string(), era == Era::Sessions);
        let version = if era == Era::Sessions { "2025-11-25" } else { "2026-07-28" };
        assert_eq!(calls[0]["protocol"], version);
        assert_eq!(log.of("initialize").len(), usize::from(era == Era::Sessions));
        let all = format!("{:?}{:?}{calls:?}{listing}", log.of("initialize"), log.of("http"));
        assert!(!all.contains("hunter2"));
    }
}

#[tokio::test]
async fn over_http_the_peer_is_logged_and_no_token() {
    let log = Log::default();
    let engine = engine().tool(tool("a")).build().unwrap();
    let web = Web::of(&Gateway::builder(engine).access_log(log.listener()).build(), two()).await;
    web.reply(stateless("/mcp", ANA, "tools/call", json!({ "name": "a" }))).await;
    web.reply(stateless("/mcp", "wrong-token-0123456789", "tools/call", json!({ "name": "a" })))
        .await;
    // A session's version is the negotiated one, also if its requests do not state it.
    let session = web.session("/mcp", ANA).await;
    web.post(ANA, Some(&session), &request("tools/call", &json!({ "name": "a" }))).await;
    let (calls, refused) = (log.of("tools/call"), log.of("http"));
    assert_eq!(calls[0]["protocol"], "2026-07-28");
    assert_eq!(calls[1]["protocol"], "2025-06-18");
    assert!(calls[0]["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert!(refused[0]["peer"].is_string() && refused[0].get("principal").is_none());
    let all = format!("{calls:?}{refused:?}");
    assert!(!all.contains("token-0"), "{all}");
    web.end().await;
}

#[tokio::test]
async fn what_clients_write_is_redacted_and_cut_and_refusals_have_their_status() {
    let log = Log::default();
    let redactor = Redactor::new(["sk-live-0123456789".to_owned()]);
    let engine = engine().redactor(redactor).tool(tool("a")).build().unwrap();
    let web = Web::of(&Gateway::builder(engine).access_log(log.listener()).build(), two()).await;
    let long = "n".repeat(100_000);
    for name in ["get-sk-live-0123456789", &long] {
        let session = web.session("/mcp", ANA).await;
        web.post(ANA, Some(&session), &request("tools/call", &json!({ "name": name }))).await;
    }
    let calls = log.of("tools/call");
    assert_eq!(calls[0]["tool"], "get-[redacted]");
    assert_eq!(calls[1]["tool"].as_str().unwrap().chars().count(), 65);
    assert!(calls[1].to_string().len() < 3_000, "{}", calls[1]);

    // These are refused by the protocol.
    web.post(ANA, Some("no-session"), &request("tools/list", &json!({}))).await;
    let mut unread = stateless("/mcp", ANA, "tools/list", json!({}));
    unread.headers_mut().insert("accept", "text/html".parse().unwrap());
    let reply = web.reply(unread).await;
    assert_eq!((reply.status, reply.body.is_empty()), (406, false));
    let refused = log.of("http");
    let statuses: Vec<_> = refused.iter().map(|entry| entry["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [404, 406]);
    assert_eq!(refused[0]["principal"], "ana");
    assert!(refused[0]["error"].as_str().unwrap().contains("Session not found"), "{refused:?}");
    web.end().await;
}
