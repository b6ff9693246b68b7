//! Requests over HTTP: their headers, and their responses as JSON or as a stream.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes};
use serde_json::{Value, json};
use tokio::sync::Notify;
use toolcrib_core::{SkillId, ToolContext, ToolError, ToolName};
use toolcrib_engine::{OnSkip, Skill, SkillStep, Skills};
use toolcrib_gateway::Gateway;

use super::{
    support::{builder, engine, tool, waits},
    web::{ANA, Web, post, raw, request, stateless, two},
};

async fn web(engine: toolcrib_engine::EngineBuilder) -> Web {
    Web::of(&Gateway::builder(engine.build().unwrap()).build(), two()).await
}

#[tokio::test]
async fn json_and_event_streams_have_the_same_responses() {
    let fails = builder("fails")
        .handler(|_: Value, _| async { Err::<String, _>(ToolError::failed("no paper")) })
        .unwrap();
    let web = web(engine().tools([tool("read"), fails])).await;
    let session = web.session("/mcp", ANA).await;
    for name in ["read", "fails", "unknown"] {
        let plain = json!({ "name": name, "arguments": { "a": 1 } });
        // A request with a progress token may get more than one message.
        let mut other = plain.clone();
        other["_meta"] = json!({ "progressToken": "p" });
        let [alone, through] = [&plain, &other]
            .map(|params| web.reply(stateless("/mcp", ANA, "tools/call", params.clone())));
        let (alone, through) = (alone.await, through.await);
        assert_eq!(alone.message(), through.message());
        assert_eq!((alone.status, &*alone.kind), (through.status, "application/json"));

        let [alone, through] = [&plain, &other].map(|params| request("tools/call", params));
        let alone = web.post(ANA, Some(&session), &alone).await;
        let through = web.post(ANA, Some(&session), &through).await;
        assert_eq!(alone.message(), through.message());
        // On a machine that stalls for a moment, the first is a stream as well.
        assert!(["application/json", "text/event-stream"].contains(&&*alone.kind));
        assert_eq!((alone.status, through.status), (200, 200));
        assert_eq!(through.kind, "text/event-stream");
    }
    web.end().await;
}

#[tokio::test]
async fn a_sessions_client_can_come_back_for_the_answer_to_a_long_call() {
    let done = Arc::new(Notify::new());
    let waited = Arc::clone(&done);
    let long = builder("long")
        .handler(move |_: Value, _| {
            let waited = Arc::clone(&waited);
            async move {
                waited.notified().await;
                "it is done"
            }
        })
        .unwrap();
    let web = web(engine().tool(long)).await;
    let session = web.session("/mcp", ANA).await;
    let call = request("tools/call", &json!({ "name": "long" }));
    let answer = web.send(post("/mcp", ANA, Some(&session), &call)).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut events = answer.into_body();
    let first = events.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let event = first.lines().find_map(|line| line.strip_prefix("id:")).unwrap().trim();
    drop(events);

    let mut resume = post("/mcp", ANA, Some(&session), &json!({}));
    *resume.method_mut() = "GET".parse().unwrap();
    resume.headers_mut().insert("last-event-id", event.parse().unwrap());
    let mut said = String::new();
    let mut events = web.send(resume).await.into_body();
    done.notify_one();
    while !said.contains("it is done") {
        let data = events.frame().await.expect("the answer comes").unwrap().into_data().unwrap();
        said.push_str(str::from_utf8(&data).unwrap());
    }
    assert!(said.contains(r#""id":7"#), "{said}");
    web.end().await;
}

#[tokio::test]
async fn a_sessions_call_is_cancelled_by_its_id_at_once_and_later() {
    let (at_once, later) = (waits("at_once"), waits("later"));
    let web = web(engine().tools([at_once.tool, later.tool, tool("read")])).await;
    let session = web.session("/mcp", ANA).await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
    });
    let call = |name: &str| {
        let call = request("tools/call", &json!({ "name": name }));
        web.send(post("/mcp", ANA, Some(&session), &call))
    };
    let begun = async {
        at_once.begun.notified().await;
        assert_eq!(web.post(ANA, Some(&session), &cancel).await.status, 202);
        at_once.cancelled.notified().await;
    };
    tokio::join!(call("at_once"), begun);

    let stream = call("later").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert_eq!(web.post(ANA, Some(&session), &cancel).await.status, 202);
    later.cancelled.notified().await;
    drop(stream);
    let read = request("tools/call", &json!({ "name": "read" }));
    let read = web.post(ANA, Some(&session), &read).await;
    assert_eq!(read.message()["result"]["content"][0]["text"], "read ran");
    web.end().await;
}

#[tokio::test]
async fn what_a_long_call_changes_is_announced_and_keeps_nothing_open() {
    let begun = Arc::new(Notify::new());
    let tells = Arc::clone(&begun);
    let long = builder("look")
        .handler(move |_: Value, _: ToolContext| {
            tells.notify_one();
            async {
                tokio::time::sleep(Duration::from_millis(150)).await;
                "looked"
            }
        })
        .unwrap();
    let step = |name: &str| SkillStep::new(ToolName::new(name).unwrap());
    let skill = Skill::new(SkillId::new("refunding").unwrap(), "About refunds.", "How to refund.")
        .steps([step("look"), step("refund")], OnSkip::Advance);
    let skills = Skills::new(vec![skill]).unwrap();
    let web = web(engine().tools([long, tool("refund")]).skills(skills)).await;
    let call = request("tools/call", &json!({ "name": "look" }));
    for hangs_up in [false, true] {
        let session = web.session("/mcp/skill/refunding", ANA).await;
        assert_eq!(web.names(ANA, &session).await[0], "look");
        let mut listen = post("/mcp", ANA, Some(&session), &json!({}));
        *listen.method_mut() = "GET".parse().unwrap();
        let mut stream = web.send(listen).await.into_body();
        let answer = web.send(post("/mcp", ANA, Some(&session), &call));
        if hangs_up {
            tokio::select! {
                _ = answer => {}
                () = begun.notified() => {}
            }
        } else {
            let answer = answer.await.into_body().collect().await.unwrap().to_bytes();
            assert!(str::from_utf8(&answer).unwrap().contains("looked"));
            begun.notified().await;
        }
        let mut heard = String::new();
        while !heard.contains("notifications/tools/list_changed") {
            let frame = stream.frame().await.unwrap().unwrap();
            heard.push_str(str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
        assert_eq!(web.names(ANA, &session).await[0], "refund");
    }
    web.end().await;
}

#[tokio::test]
async fn contradictory_headers_and_invalid_bodies_are_refused() {
    let (ran, counted) = counting();
    let web = web(engine().tool(counted)).await;
    let session = web.session("/mcp", ANA).await;
    let call = || stateless("/mcp", ANA, "tools/call", json!({ "name": "counted" }));
    let in_session = |message: Value| post("/mcp", ANA, Some(&session), &message);
    let plain = || request("tools/call", &json!({ "name": "counted" }));

    let with = |mut request: Request<Full<Bytes>>, name: &'static str, value: Option<&str>| {
        request.headers_mut().remove(name);
        if let Some(value) = value {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        request
    };
    let mut no_capabilities = plain();
    no_capabilities["params"]["_meta"] =
        json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let marked = json!({ "name": "=?base64?Y291bnRlZA==?=" });
    let mut twice = call();
    twice.headers_mut().append("mcp-name", "other".parse().unwrap());
    let mut broken = raw("POST", "/mcp", r#"{"jsonrpc":"2.0","id":7,"method":"tools/call""#);
    broken.headers_mut().insert("authorization", format!("Bearer {ANA}").parse().unwrap());
    for (what, request, status) in [
        ("another name above", with(call(), "mcp-name", Some("other")), 400),
        ("a name that means another", stateless("/mcp", ANA, "tools/call", marked), 400),
        ("no name above", with(call(), "mcp-name", None), 400),
        ("two names above", twice, 400),
        ("another method above", with(call(), "mcp-method", Some("tools/list")), 400),
        ("another version above", with(call(), "mcp-protocol-version", Some("2025-06-18")), 400),
        ("no version above", with(call(), "mcp-protocol-version", None), 400),
        ("no capabilities", in_session(no_capabilities), 400),
        ("takes no events", with(call(), "accept", Some("application/json")), 406),
        ("is no JSON", with(call(), "content-type", Some("text/plain")), 415),
        ("an unknown version", with(in_session(plain()), "mcp-protocol-version", Some("1")), 400),
        ("no session", with(in_session(plain()), "mcp-session-id", Some("none")), 404),
        ("cut off", broken, 400),
    ] {
        let reply = web.reply(request).await;
        assert_eq!(reply.status, status, "{what}: {reply:?}");
    }
    // An array is not an object, though it could be parsed as one field by field; nor is invalid
    // JSON.
    for body in [
        r#"["2.0",7,"tools/call",["counted",{}]]"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["counted",{}]}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"counted","_meta":[]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"counted","_meta":{"x":1e999}}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"counted"}} {}"#,
    ] {
        let mut request = raw("POST", "/mcp", body);
        for (name, value) in
            [("authorization", &*format!("Bearer {ANA}")), ("mcp-session-id", &session)]
        {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let reply = web.reply(request).await;
        assert!(reply.status >= 400 || reply.message()["error"].is_object(), "{body}: {reply:?}");
    }
    assert_eq!(ran.load(Relaxed), 0);
    // And what is in order runs, whatever else is said about it.
    let mut told = plain();
    told["params"]["_meta"] = json!({ "traceparent": "00-1", "mine": { "a": [1] } });
    assert_eq!(web.reply(in_session(told)).await.status, 200);
    assert_eq!(web.reply(call()).await.status, 200);
    assert_eq!(ran.load(Relaxed), 2);
    web.end().await;
}

#[tokio::test]
async fn a_header_that_repeats_an_argument_is_compared_with_it() {
    let region = builder("region")
        .input_schema(json!({
            "type": "object",
            "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        }))
        .handler(|args: Value, _: ToolContext| async move { args["region"].to_string() })
        .unwrap();
    let web = web(engine().tool(region)).await;
    for (argument, header, status) in [
        (json!("eu"), Some("eu"), 200),
        (json!("zürich"), Some("=?base64?esO8cmljaA==?="), 200),
        (json!("eu"), Some("us"), 400),
        (json!("eu"), None, 400),
        (Value::Null, Some("eu"), 400),
        (Value::Null, None, 200),
    ] {
        let params = json!({ "name": "region", "arguments": { "region": argument } });
        let mut call = stateless("/mcp", ANA, "tools/call", params);
        if let Some(header) = header {
            call.headers_mut().insert("mcp-param-region", header.parse().unwrap());
        }
        let reply = web.reply(call).await;
        assert_eq!(reply.status, status, "{argument} {header:?}: {reply:?}");
        assert_eq!(reply.message()["error"]["code"] == -32020, status == 400, "{reply:?}");
    }
    web.end().await;
}

/// A tool, and how often it ran.
fn counting() -> (Arc<AtomicUsize>, toolcrib_core::Tool) {
    let ran = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&ran);
    let tool = builder("counted")
        .handler(move |_: Value, _: ToolContext| {
            counts.fetch_add(1, Relaxed);
            async { "ran" }
        })
        .unwrap();
    (ran, tool)
}
