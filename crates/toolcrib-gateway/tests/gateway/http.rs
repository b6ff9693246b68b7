//! Access over HTTP, and the protection of sessions.

use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use toolcrib_core::{Policy, Progress, Rule, RuleConditions, SkillId, ToolContext};
use toolcrib_engine::{LoadedSkills, SkillSource, Skills};
use toolcrib_gateway::{Access, Gateway, GatewayError, HttpAccess, MAX_SESSIONS};

use super::{
    support::{Log, billing, builder, engine, tool, waits},
    web::{ANA, BOB, Web, connect, initialize, names, post, raw, request, stateless, two},
};

/// Ana may write, Bob may not.
fn desk() -> toolcrib_engine::EngineBuilder {
    let readers = RuleConditions { roles: vec!["reader".into()], ..RuleConditions::default() };
    let mut policy = Policy::of([Rule::deny("readers only read").tools(["write"]).when(readers)]);
    policy.roles.grant("bob", "reader");
    engine().tools([tool("read"), tool("write")]).policy(policy)
}

async fn web(engine: toolcrib_engine::EngineBuilder) -> Web {
    Web::of(&Gateway::builder(engine.build().unwrap()).build(), two()).await
}

#[tokio::test]
async fn a_request_needs_a_host_an_origin_and_a_token_in_this_order() {
    let log = Log::default();
    let gateway = Gateway::builder(desk().build().unwrap()).access_log(log.listener()).build();
    let access = two().allow_host("tools.example:8443").allow_origin("https://page.example");
    let web = Web::of(&gateway, access).await;
    let list = |host: &str, origin: Option<&str>, token: Option<&str>| {
        let mut list = stateless("/mcp", "", "tools/list", json!({}));
        let headers = list.headers_mut();
        headers.insert("host", host.parse().unwrap());
        headers.remove("authorization");
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().unwrap());
        }
        if let Some(token) = token {
            headers.insert("authorization", token.parse().unwrap());
        }
        web.reply(list)
    };
    let (host, page, bearer) =
        ("tools.example:8443", Some("https://page.example"), format!("Bearer {ANA}"));
    for (sent_host, origin, token, status) in [
        (host, None, Some(bearer.as_str()), 200),
        (host, page, Some(&bearer), 200),
        (host, None, Some(&format!("bearer {ANA}")), 200),
        (host, Some("https://evil.example"), Some(&bearer), 403),
        (host, Some("null"), None, 403),
        ("localhost", None, Some(&bearer), 403),
        ("evil.example", page, None, 403),
        (host, None, None, 401),
        (host, page, Some("Bearer"), 401),
        (host, None, Some("Bearer ana-token-012345678"), 401),
        (host, None, Some(&format!("Bearer {ANA}x")), 401),
        (host, None, Some(&format!("Basic {ANA}")), 401),
        (host, None, Some(ANA), 401),
    ] {
        let reply = list(sent_host, origin, token).await;
        assert_eq!(reply.status, status, "{sent_host} {origin:?} {token:?}: {reply:?}");
        assert_eq!(reply.challenge.as_deref(), (status == 401).then_some("Bearer"));
        if status != 200 {
            assert_eq!(reply.kind, "application/json");
            assert!(reply.message()["error"].is_string() && !reply.body.contains("read"));
        }
    }
    let statuses: Vec<_> =
        log.of("http").iter().map(|entry| entry["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [[403; 4].as_slice(), &[401; 6]].concat());
    web.end().await;
}

#[tokio::test]
async fn each_token_has_its_own_menu_in_both_eras() {
    let web = web(desk()).await;
    for (token, menu) in [(ANA, &["read", "write"][..]), (BOB, &["read"])] {
        let session = web.session("/mcp", token).await;
        assert_eq!(web.names(token, &session).await, menu);
        let listing = web.reply(stateless("/mcp", token, "tools/list", json!({}))).await;
        assert_eq!(names(&listing), menu);
        assert_eq!(listing.kind, "application/json");
    }
    let call = web.reply(stateless("/mcp", BOB, "tools/call", json!({ "name": "write" }))).await;
    assert_eq!(call.message()["error"]["data"]["code"], "not_available");
    web.end().await;
}

#[tokio::test]
async fn a_session_is_worth_nothing_without_its_token() {
    let web = web(desk()).await;
    let anas = web.session("/mcp", ANA).await;
    let list = request("tools/list", &json!({}));
    assert_eq!(web.post(BOB, Some(&anas), &list).await.status, 404);
    assert_eq!(web.post("someone-0123456789", Some(&anas), &list).await.status, 401);
    for method in ["GET", "DELETE"] {
        let mut request = post("/mcp", BOB, Some(&anas), &json!({}));
        *request.method_mut() = method.parse().unwrap();
        let status = web.reply(request).await.status;
        assert_eq!(status, 404, "{method}");
    }
    assert_eq!(web.post(ANA, Some("no-such-session"), &list).await.status, 404);
    // It is still there, and Ana's.
    assert_eq!(web.names(ANA, &anas).await, ["read", "write"]);
    web.end().await;
}

#[tokio::test]
async fn a_session_activates_skills_and_its_stream_says_that_the_menu_changed() {
    let web = web(engine().tools([tool("refund"), tool("note")]).skills(billing())).await;
    let session = web.session("/mcp", ANA).await;
    let other = web.session("/mcp", ANA).await;
    assert_eq!(web.names(ANA, &session).await, ["refund", "note", "read_skill"]);
    let mut listen = post("/mcp", ANA, Some(&session), &json!({}));
    *listen.method_mut() = "GET".parse().unwrap();
    let mut stream = web.send(listen).await.into_body();

    let read = json!({ "name": "read_skill", "arguments": { "id": "billing" } });
    let read = web.post(ANA, Some(&session), &request("tools/call", &read)).await;
    assert!(read.message()["result"]["content"][0]["text"].as_str().unwrap().contains("billing"));
    let mut heard = String::new();
    while !heard.contains("notifications/tools/list_changed") {
        let frame = stream.frame().await.unwrap().unwrap();
        heard.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    assert_eq!(web.names(ANA, &session).await, ["refund", "read_skill"]);
    assert_eq!(web.names(ANA, &other).await, ["refund", "note", "read_skill"]);
    web.end().await;
}

#[tokio::test]
async fn an_endpoint_presets_a_skill() {
    let web = web(engine().tools([tool("refund"), tool("note")]).skills(billing())).await;
    let path = "/mcp/skill/bill%69ng";
    assert_eq!(names(&web.reply(stateless(path, ANA, "tools/list", json!({}))).await), ["refund"]);
    let all = web.reply(stateless("/mcp", ANA, "tools/list", json!({}))).await;
    assert_eq!(names(&all), ["refund", "note"]);
    let session = web.session(path, ANA).await;
    assert_eq!(web.names(ANA, &session).await, ["refund", "read_skill"]);

    let unknown = web.reply(stateless("/mcp/skill/biling", ANA, "tools/list", json!({}))).await;
    assert_eq!((unknown.status, unknown.kind.as_str()), (404, "application/json"));
    assert_eq!(unknown.message()["error"], "unknown skill `biling`");
    // A client without a token cannot learn which skills exist.
    let stranger = web.reply(stateless("/mcp/skill/biling", "x", "tools/list", json!({}))).await;
    assert_eq!(stranger.status, 401);
    web.end().await;
}

/// Skills that come and go.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<Arc<Skills>>>);

impl SkillSource for Shelf {
    fn skills(&self) -> LoadedSkills {
        LoadedSkills { skills: Arc::clone(&self.0.lock().unwrap()), ..LoadedSkills::default() }
    }
}

#[tokio::test]
async fn an_endpoint_exists_while_its_skill_exists() {
    let shelf = Shelf::default();
    let tools = [tool("refund"), tool("note")];
    let web = web(engine().tools(tools).skill_source(shelf.clone())).await;
    let list = || web.reply(stateless("/mcp/skill/billing", ANA, "tools/list", json!({})));
    assert_eq!(list().await.status, 404);
    *shelf.0.lock().unwrap() = Arc::new(billing());
    assert_eq!(names(&list().await), ["refund"]);
    *shelf.0.lock().unwrap() = Arc::default();
    assert_eq!(list().await.status, 404);
    web.end().await;
}

#[tokio::test]
async fn invalid_requests_are_refused_and_other_clients_served_on() {
    let web = web(desk()).await;
    let with_token = |path: &str, body: String| {
        let mut request = raw("POST", path, body);
        let token = format!("Bearer {ANA}").parse().unwrap();
        request.headers_mut().insert("authorization", token);
        request
    };
    for (path, body, status) in [
        ("/mcp", "{".to_owned(), 400),
        ("/mcp", "[]".to_owned(), 400),
        ("/", String::new(), 404),
        ("/mcp/", String::new(), 404),
        ("/mcp/skill/", String::new(), 404),
    ] {
        let reply = web.reply(with_token(path, body)).await;
        assert_eq!(reply.status, status, "{path}: {reply:?}");
    }
    let healthy = web.reply(raw("GET", "/healthz", "")).await;
    assert_eq!((healthy.status, healthy.body.as_str()), (200, "ok\n"));
    let mut elsewhere = raw("GET", "/healthz", "");
    elsewhere.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(web.reply(elsewhere).await.status, 403);

    // Invalid HTTP ends its own connection.
    let mut garbage = connect(web.address).await.unwrap();
    garbage.write_all(b"\x16\x03\x01 hello\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    garbage.read_to_end(&mut answer).await.unwrap();
    assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 400"));
    let session = web.session("/mcp", ANA).await;
    assert_eq!(web.names(ANA, &session).await, ["read", "write"]);
    web.end().await;
}

#[tokio::test]
async fn the_error_of_arguments_that_are_not_an_object_names_them() {
    let web = web(engine().tool(tool("a"))).await;
    let session = web.session("/mcp", ANA).await;
    for params in [json!({ "name": "a", "arguments": [1] }), json!({ "arguments": {} })] {
        let in_session = web.post(ANA, Some(&session), &request("tools/call", &params)).await;
        let alone = web.reply(stateless("/mcp", ANA, "tools/call", params)).await;
        for reply in [in_session, alone] {
            let error = &reply.message()["error"];
            assert_eq!(error["code"], -32602, "{reply:?}");
            assert!(error["message"].as_str().unwrap().contains("`arguments`, an object"));
        }
    }
    let unknown = web.post(ANA, Some(&session), &request("tools/dance", &json!({}))).await;
    assert_eq!(unknown.message()["error"]["code"], -32601);
    web.end().await;
}

#[tokio::test]
async fn a_disconnect_and_a_deleted_session_end_their_calls() {
    let (dropped, deleted) = (waits("dropped"), waits("deleted"));
    let web = web(engine().tools([dropped.tool, deleted.tool])).await;
    let call = stateless("/mcp", ANA, "tools/call", json!({ "name": "dropped" }));
    tokio::select! {
        _ = web.send(call) => panic!("it does not answer"),
        () = dropped.begun.notified() => {}
    }
    dropped.cancelled.notified().await;

    let session = web.session("/mcp", ANA).await;
    let call = request("tools/call", &json!({ "name": "deleted" }));
    let stream = web.send(post("/mcp", ANA, Some(&session), &call)).await;
    deleted.begun.notified().await;
    let mut delete = post("/mcp", ANA, Some(&session), &json!({}));
    *delete.method_mut() = "DELETE".parse().unwrap();
    assert!(web.reply(delete).await.status < 300);
    deleted.cancelled.notified().await;
    drop(stream);
    assert_eq!(web.post(ANA, Some(&session), &call).await.status, 404);
    web.end().await;
}

#[tokio::test]
async fn progress_of_a_stateless_call_comes_before_its_result() {
    let works = builder("works")
        .handler(|_: serde_json::Value, cx: ToolContext| async move {
            cx.progress(Progress::user("half").percent(50));
            "worked"
        })
        .unwrap();
    let web = web(engine().tool(works)).await;
    let mut call = json!({ "name": "works" });
    let whole = web.reply(stateless("/mcp", ANA, "tools/call", call.clone())).await;
    assert_eq!(whole.kind, "application/json");
    call["_meta"] = json!({ "progressToken": "p" });
    let stream = web.reply(stateless("/mcp", ANA, "tools/call", call)).await;
    assert_eq!(stream.kind, "text/event-stream");
    let progress = stream.body.find("notifications/progress").unwrap();
    assert!(progress < stream.body.find("worked").unwrap());
    web.end().await;
}

#[tokio::test]
async fn one_session_too_many_of_a_token_is_refused_until_another_ends() {
    let web = web(engine().tool(tool("a"))).await;
    let mut sessions = Vec::new();
    for _ in 0..MAX_SESSIONS / 2 {
        let reply = web.post(ANA, None, &initialize()).await;
        sessions.push(reply.session.unwrap());
    }
    let refused = web.post(ANA, None, &initialize()).await.message();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("reached its limit of open sessions"), "{message}");
    // The stateless era has none, and another token has its own.
    let listing = web.reply(stateless("/mcp", ANA, "tools/list", json!({}))).await;
    assert_eq!(names(&listing), ["a"]);
    web.session("/mcp", BOB).await;

    let mut delete = post("/mcp", ANA, Some(&sessions[7]), &json!({}));
    *delete.method_mut() = "DELETE".parse().unwrap();
    web.reply(delete).await;
    while web.post(ANA, None, &initialize()).await.message()["error"].is_object() {
        tokio::task::yield_now().await;
    }
    assert_eq!(web.names(ANA, &sessions[8]).await, ["a"]);
    web.end().await;
}

#[tokio::test]
async fn the_end_of_serving_ends_calls_sessions_and_streams() {
    let (in_session, alone) = (waits("in_session"), waits("alone"));
    let web = web(engine().tools([in_session.tool, alone.tool])).await;
    let session = web.session("/mcp", ANA).await;
    let call = request("tools/call", &json!({ "name": "in_session" }));
    let stream = web.send(post("/mcp", ANA, Some(&session), &call)).await;
    let mut listen = post("/mcp", ANA, Some(&session), &json!({}));
    *listen.method_mut() = "GET".parse().unwrap();
    let listening = web.send(listen).await;
    let call = stateless("/mcp", ANA, "tools/call", json!({ "name": "alone" }));
    let ends = async {
        in_session.begun.notified().await;
        alone.begun.notified().await;
        web.cancellation.cancel();
    };
    let (answer, ()) = tokio::join!(web.send(call), ends);
    in_session.cancelled.notified().await;
    alone.cancelled.notified().await;
    let _ = answer.into_body().collect().await;
    let _ = stream.into_body().collect().await;
    let _ = listening.into_body().collect().await;
    web.end().await;
}

#[tokio::test]
async fn http_access_without_a_strong_token_is_refused() {
    let gateway = Gateway::builder(engine().skills(billing()).build().unwrap()).build();
    let refused = async |access: HttpAccess| {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        gateway.serve_http(listener, access, Default::default()).await.unwrap_err()
    };
    assert!(matches!(refused(HttpAccess::new()).await, GatewayError::NoToken));
    let short = HttpAccess::new().token("0123456789abcdef", Access::new()).token("", Access::new());
    let short = refused(short).await;
    assert!(matches!(short, GatewayError::TokenTooShort { position: 2, chars: 0 }), "{short}");
    let same = refused(two().token(ANA, Access::new())).await;
    assert!(matches!(same, GatewayError::SameToken { first: 1, second: 3 }), "{same}");
    let skill = Access::new().skill(SkillId::new("x").unwrap());
    assert!(matches!(refused(HttpAccess::new().token(ANA, skill)).await, GatewayError::Access(_)));
    assert!(matches!(refused(two().allow_host("http://x")).await, GatewayError::Host(_)));
    assert!(matches!(refused(two().allow_origin("x")).await, GatewayError::Origin(_)));
    // The `Debug` of an access does not contain its tokens.
    assert!(!format!("{:?}", two()).contains("token-0"));
}
