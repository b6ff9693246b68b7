//! Whatever ends a connection ends its calls, and serving waits for them.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};
use toolcrib_core::CancellationToken;
use toolcrib_gateway::{Access, Gateway};

use super::{
    support::{Client, ERAS, builder, engine, tool, waits},
    web::{ANA, Web, connect, stateless, two},
};

#[tokio::test]
async fn the_end_of_the_input_and_the_cancellation_token_end_serving_and_calls() {
    for (era, is_input) in ERAS.into_iter().flat_map(|era| [(era, true), (era, false)]) {
        let slow = waits("slow");
        let client = Client::to(engine().tool(slow.tool), era).await;
        let peer = client.peer.peer().clone();
        let call = tokio::spawn(async move {
            peer.call_tool(rmcp::model::CallToolRequestParams::new("slow")).await
        });
        slow.begun.notified().await;
        if is_input {
            client.peer.cancel().await.unwrap();
        } else {
            client.cancellation.cancel();
        }
        slow.cancelled.notified().await;
        client.served.await.unwrap().unwrap();
        assert!(call.await.unwrap().is_err() || !is_input);
    }
}

#[tokio::test]
async fn a_request_to_a_gateway_that_is_being_stopped_is_sent_to_another_one() {
    let slow = waits("slow");
    let engine = engine().tool(slow.tool).build().unwrap();
    let gateway = Gateway::builder(engine).drain(Duration::from_hours(1)).build();
    let web = Web::of(&gateway, two()).await;
    let list = |token| stateless("/mcp", token, "tools/list", json!({}));
    let mut kept = web.connection().await;
    let mut calling = web.connection().await;
    let call = stateless("/mcp", ANA, "tools/call", json!({ "name": "slow", "arguments": {} }));
    let call = tokio::spawn(async move { calling.send_request(call).await });
    slow.begun.notified().await;
    let answer = kept.send_request(list(ANA)).await.unwrap();
    assert_eq!(answer.status(), 200);
    drop(answer.into_body().collect().await.unwrap());

    web.cancellation.cancel();
    // The listener is closed after the first moment at which requests are refused.
    while connect(web.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    kept.ready().await.unwrap();
    let refused = kept.send_request(list(ANA)).await.unwrap();
    let header = |name: &str| refused.headers()[name].to_str().unwrap();
    let answered = (refused.status().as_u16(), header("retry-after"), header("connection"));
    assert_eq!(answered, (503, "1", "close"));
    // The call goes on until its client disconnects.
    assert_eq!(slow.cancelled.notified().now_or_never(), None);
    call.abort();
    slow.cancelled.notified().await;
    web.end().await;
}

#[tokio::test]
async fn piped_requests_are_answered_after_the_input_ends() {
    let engine = engine().tool(tool("a")).build().unwrap();
    let gateway = Gateway::builder(engine).build();
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "pipe", "version": "1" },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "a" } }),
    ];
    // Garbage and lines that are too long are refused, and end nothing.
    let mut input = format!("{}\nnot JSON\n{{\"a\":\n", "x".repeat(5 * 1024 * 1024));
    for line in lines {
        input.push_str(&format!("{line}\n"));
    }
    let (mut stdin, far_in) = tokio::io::duplex(1 << 16);
    let (mut stdout, far_out) = tokio::io::duplex(1 << 16);
    let served = tokio::spawn(async move {
        gateway.serve_stdio(far_in, far_out, Access::new(), CancellationToken::new()).await
    });
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let mut output = String::new();
    stdout.read_to_string(&mut output).await.unwrap();
    served.await.unwrap().unwrap();
    let answers: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let initialized = answers.iter().find(|answer| answer["id"] == 1).unwrap();
    assert_eq!(initialized["result"]["serverInfo"]["name"], "toolcrib");
    assert_eq!(initialized["result"]["protocolVersion"], "2025-06-18");
    let result = answers.iter().find(|answer| answer["id"] == 2).unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "a ran");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_keeps_nothing_running() {
    for by_token in [true, false] {
        let done = Arc::new(Notify::new());
        let says = Arc::clone(&done);
        let long = builder("long").handler(move |_: Value, _| {
            let done = Arc::clone(&says);
            async move {
                done.notify_one();
                "x".repeat(10_000)
            }
        });
        let gateway = Gateway::builder(engine().tool(long.unwrap()).build().unwrap()).build();
        let (mut stdin, far_in) = tokio::io::duplex(1 << 16);
        let (stdout, far_out) = tokio::io::duplex(1024);
        let cancellation = CancellationToken::new();
        let token = cancellation.clone();
        let served = tokio::spawn(async move {
            gateway.serve_stdio(far_in, far_out, Access::new(), token).await
        });
        for line in [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "pipe", "version": "1" },
            } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "long" } }),
        ] {
            stdin.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        done.notified().await;
        // An undeliverable notification is not waited for.
        match by_token {
            true => cancellation.cancel(),
            false => drop(stdin),
        }
        served.await.unwrap().unwrap();
        drop(stdout);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_writes_is_disconnected() {
    let gateway = Gateway::builder(engine().build().unwrap()).build();
    let (mut stdin, far_in) = tokio::io::duplex(1 << 16);
    let (_stdout, far_out) = tokio::io::duplex(1024);
    let served = tokio::spawn(async move {
        gateway.serve_stdio(far_in, far_out, Access::new(), CancellationToken::new()).await
    });
    let mut id = 0;
    let mut ping = || {
        id += 1;
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }))
    };
    while stdin.write_all(ping().as_bytes()).await.is_ok() {}
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn silence_or_invalid_input_is_no_error_of_the_gateway() {
    let gateway = Gateway::builder(engine().build().unwrap()).build();
    let serve = |input: &'static [u8]| {
        let gateway = gateway.clone();
        async move {
            let (far_out, _stdout) = tokio::io::duplex(1 << 16);
            gateway.serve_stdio(input, far_out, Access::new(), CancellationToken::new()).await
        }
    };
    serve(b"").await.unwrap();
    serve(b"garbage\n").await.unwrap();
    let early = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let early: &'static [u8] = Vec::leak([early.as_slice(), b"\n"].concat());
    let refused = serve(early).await.unwrap_err();
    assert!(refused.to_string().contains("did not begin a connection"), "{refused}");
}
