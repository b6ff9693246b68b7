//! Every request gets a response: also an unreadable or ambiguous one.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines},
    sync::Notify,
    task::JoinHandle,
};
use toolcrib_core::CancellationToken;
use toolcrib_gateway::{Access, Gateway, GatewayError};

use super::{
    support::{Log, builder, engine, tool, waits},
    web::{self, ANA, Web, connect, raw, stateless, two},
};

/// A client that writes raw lines.
struct Typist {
    stdin: DuplexStream,
    stdout: Lines<BufReader<DuplexStream>>,
    served: JoinHandle<Result<(), GatewayError>>,
}

impl Typist {
    fn at(gateway: &Gateway) -> Self {
        let (stdin, far_in) = tokio::io::duplex(1 << 16);
        let (stdout, far_out) = tokio::io::duplex(1 << 16);
        let gateway = gateway.clone();
        let served = tokio::spawn(async move {
            gateway.serve_stdio(far_in, far_out, Access::new(), CancellationToken::new()).await
        });
        Self { stdin, stdout: BufReader::new(stdout).lines(), served }
    }

    async fn write(&mut self, line: impl AsRef<[u8]>) {
        self.stdin.write_all(line.as_ref()).await.unwrap();
        self.stdin.write_all(b"\n").await.unwrap();
    }

    async fn reads(&mut self) -> Value {
        let line = self.stdout.next_line().await.unwrap().expect("there is an answer");
        serde_json::from_str(&line).unwrap()
    }

    async fn asks(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.write(line).await;
        self.reads().await
    }

    async fn begins(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "typist", "version": "1" },
        });
        let answer = self.asks(request(&json!(0), "initialize", &params)).await;
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    async fn ends(self) {
        drop(self.stdin);
        self.served.await.unwrap().unwrap();
    }
}

fn request(id: &Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A call, with this as the argument.
fn call_with(id: u64, argument: &str) -> String {
    format!(
        r#"{{"method":"tools/call","params":{{"name":"a","arguments":{{"a":{argument}}}}},"jsonrpc":"2.0","id":{id}}}"#
    )
}

#[tokio::test]
async fn a_line_that_cannot_be_read_is_answered_with_its_id() {
    const PARSE: i64 = -32700;
    const INVALID: i64 = -32600;
    let log = Log::default();
    let engine = engine().tool(tool("a")).build().unwrap();
    let gateway = Gateway::builder(engine).access_log(log.listener()).build();
    let nested = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let long = format!("\"{}\"", "x".repeat(5 * 1024 * 1024));
    let no_version = r#"{"id":31,"method":"ping"}"#.to_owned();
    let lines = [
        (call_with(1, &nested), json!(1), PARSE, "recursion limit"),
        (call_with(2, r#""\ud800""#), json!(2), PARSE, "unexpected end of hex escape"),
        (call_with(3, "1e999"), json!(3), PARSE, "number out of range"),
        (call_with(4, &long), json!(4), INVALID, "at most 4194304 bytes"),
        (call_with(5, "nonsense"), json!(5), PARSE, "is not valid JSON"),
        (r#"{"jsonrpc":"2.0","id":"six","method":"#.into(), json!("six"), PARSE, "EOF"),
        (r#"{"jsonrpc":"1.0","id":30,"method":"ping"}"#.into(), json!(30), INVALID, "`jsonrpc`"),
        (no_version, json!(31), INVALID, "`jsonrpc`"),
        (r#"{"jsonrpc":"2.0","id":32}"#.into(), json!(32), INVALID, "`method`"),
        (r#"{"jsonrpc":"2.0","id":33,"method":7}"#.into(), json!(33), INVALID, "not a message"),
        ("not json".into(), Value::Null, PARSE, "is not valid JSON"),
        (r#"[{"jsonrpc":"2.0","id":8,"method":"ping"}]"#.into(), Value::Null, INVALID, "batches"),
        (request(&json!(1.5), "ping", &json!({})), Value::Null, INVALID, "`id`"),
        (request(&Value::Null, "ping", &json!({})), Value::Null, INVALID, "`id`"),
        (format!("{}\n", "x".repeat(17 * 1024 * 1024)), Value::Null, INVALID, "at most"),
    ];
    for begins in [false, true] {
        let mut typist = Typist::at(&gateway);
        if begins {
            typist.begins().await;
        }
        let before = log.of("stdio").len();
        for (line, id, code, says) in &lines {
            let answer = typist.asks(line.as_bytes()).await;
            // Without an id, `id` is absent.
            assert_eq!(answer.get("id").unwrap_or(&Value::Null), id, "{answer}");
            assert_eq!(answer["error"]["code"], *code, "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains(says), "{answer}");
            assert!(answer.get("id").is_none_or(|id| !id.is_null()), "{answer}");
        }
        let logged = log.of("stdio");
        assert_eq!(logged.len() - before, lines.len());
        assert!(logged.last().unwrap()["error"].as_str().unwrap().contains("at most"));
        assert_eq!(logged.last().unwrap()["protocol"].is_string(), begins);
        if !begins {
            typist.begins().await;
        }
        // Messages without a waiter for a response are skipped, and the next one is served.
        for told in [
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":1e999}"#,
            r#"{"jsonrpc":"2.0","id":9,"result":1e999}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"what?"}}"#,
            " \r",
        ] {
            typist.write(told).await;
        }
        let answer = typist.asks(call_with(10, "1")).await;
        assert_eq!((&answer["id"], answer["result"].is_object()), (&json!(10), true), "{answer}");
        typist.ends().await;
    }
}

#[tokio::test]
async fn the_error_of_initialize_names_the_missing_field() {
    let gateway = Gateway::builder(engine().build().unwrap()).build();
    let mut typist = Typist::at(&gateway);
    for (params, says) in [
        (json!({}), "missing field `protocolVersion`"),
        (json!({ "protocolVersion": "2025-11-25" }), "missing field `capabilities`"),
    ] {
        let answer = typist.asks(request(&json!(1), "initialize", &params)).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32602)));
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(message, format!("these are not the parameters of `initialize`: {says}"));
    }
    typist.begins().await;
    typist.ends().await;
}

#[tokio::test]
async fn a_second_request_of_one_id_is_refused_while_the_first_is_worked_on() {
    let log = Log::default();
    let slow = waits("slow");
    let engine = engine().tools([slow.tool, tool("a")]).build().unwrap();
    let mut typist = Typist::at(&Gateway::builder(engine).access_log(log.listener()).build());
    typist.begins().await;
    let call = |name: &str| request(&json!(7), "tools/call", &json!({ "name": name }));
    typist.write(call("slow")).await;
    slow.begun.notified().await;
    let refused = typist.asks(call("a")).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)));
    assert!(refused["error"]["message"].as_str().unwrap().contains("still being answered"));
    assert_eq!(log.of("stdio").len(), 1);
    // Once the first is over the id is free.
    let cancelled = json!({ "requestId": 7 });
    typist
        .write(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled })
                .to_string(),
        )
        .await;
    slow.cancelled.notified().await;
    loop {
        let answer = typist.asks(call("a")).await;
        if answer["result"].is_object() {
            assert_eq!(answer["id"], 7);
            break;
        }
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    typist.ends().await;
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused_as_the_protocol_does() {
    let log = Log::default();
    let engine = engine().tool(tool("a")).build().unwrap();
    let web = Web::of(&Gateway::builder(engine).access_log(log.listener()).build(), two()).await;
    let session = web.session("/mcp", ANA).await;
    let before = log.of("http").len();
    let bodies = [
        ("not json".to_owned(), Value::Null, -32700),
        (call_with(2, r#""\ud800""#), json!(2), -32700),
        (r#"[{"jsonrpc":"2.0","id":8,"method":"ping"}]"#.to_owned(), Value::Null, -32600),
        (request(&json!(1.5), "tools/list", &json!({})), Value::Null, -32600),
        (request(&json!(1e30), "tools/list", &json!({})), Value::Null, -32600),
        (request(&Value::Null, "tools/list", &json!({})), Value::Null, -32600),
        (r#"{"jsonrpc":"1.0","id":30,"method":"ping"}"#.to_owned(), json!(30), -32600),
    ];
    for (body, id, code) in &bodies {
        for in_session in [false, true] {
            let mut post = raw("POST", "/mcp", body.clone());
            let headers = post.headers_mut();
            headers.insert("authorization", format!("Bearer {ANA}").parse().unwrap());
            if in_session {
                headers.insert("mcp-session-id", session.parse().unwrap());
            }
            let reply = web.reply(post).await;
            assert_eq!((reply.status, &*reply.kind), (400, "application/json"), "{reply:?}");
            let answer = reply.message();
            assert_eq!(answer.get("id").unwrap_or(&Value::Null), id, "{answer}");
            assert_eq!(answer["error"]["code"], *code, "{answer}");
        }
    }
    let logged = log.of("http");
    assert_eq!(logged.len() - before, 2 * bodies.len());
    assert!(logged[before]["error"].as_str().unwrap().contains("is not valid JSON"));
    // A body that is declared as another type than JSON is another case.
    let mut plain = raw("POST", "/mcp", "not json");
    plain.headers_mut().insert("authorization", format!("Bearer {ANA}").parse().unwrap());
    plain.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(web.reply(plain).await.status, 415);
    web.end().await;
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_and_not_read_if_it_says_so() {
    let gateway = Gateway::builder(engine().build().unwrap()).build();
    let web = Web::of(&gateway, two()).await;
    let too_large = 4 * 1024 * 1024 + 1;
    for (how, body) in [
        (format!("content-length: {too_large}"), String::new()),
        (
            "transfer-encoding: chunked".to_owned(),
            format!("{too_large:x}\r\n{}", "x".repeat(too_large)),
        ),
    ] {
        let mut stream = connect(web.address).await.unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ANA}\r\n\
             content-type: application/json\r\n{how}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let answer = BufReader::new(stream).lines().next_line().await.unwrap().unwrap();
        assert_eq!(answer, "HTTP/1.1 413 Payload Too Large", "{how}");
    }
    web.end().await;
}

#[tokio::test]
async fn an_accept_header_may_contain_wildcards() {
    let web =
        Web::of(&Gateway::builder(engine().tool(tool("a")).build().unwrap()).build(), two()).await;
    for (accept, status) in [
        ("*/*", 200),
        ("application/*, text/event-stream", 200),
        ("application/*;q=0.9, text/*", 200),
        ("application/*", 406),
        ("application/json, */*;q=0", 406),
        ("text/html", 406),
    ] {
        let mut call = stateless("/mcp", ANA, "tools/call", json!({ "name": "a" }));
        call.headers_mut().insert("accept", accept.parse().unwrap());
        let reply = web.reply(call).await;
        assert_eq!(reply.status, status, "{accept}: {reply:?}");
    }
    web.end().await;
}

#[tokio::test]
async fn a_second_request_of_one_id_in_a_session_is_refused_and_the_first_answered() {
    for asks_for_progress in [false, true] {
        let go_on = Arc::new(Notify::new());
        let begun = Arc::new(Notify::new());
        let told = (Arc::clone(&begun), Arc::clone(&go_on));
        let slow = builder("slow")
            .handler(move |_: Value, _| {
                let (begun, go_on) = told.clone();
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    "the first"
                }
            })
            .unwrap();
        let engine = engine().tools([slow, tool("a")]).build().unwrap();
        let web = Web::of(&Gateway::builder(engine).build(), two()).await;
        let session = web.session("/mcp", ANA).await;
        let other = web.session("/mcp", ANA).await;
        let call = |name: &str| {
            let mut params = json!({ "name": name });
            if asks_for_progress {
                params["_meta"] = json!({ "progressToken": name });
            }
            web::request("tools/call", &params)
        };
        let (slow, a) = (call("slow"), call("a"));
        let second = async {
            begun.notified().await;
            for message in [&a, &web::request("tools/list", &json!({}))] {
                let refused = web.post(ANA, Some(&session), message).await;
                assert_eq!(refused.status, 400, "{refused:?}");
                let answer = refused.message();
                assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32600)));
            }
            // Another session's ids are its own.
            assert_eq!(web.post(ANA, Some(&other), &a).await.status, 200);
            go_on.notify_one();
        };
        let (first, ()) = tokio::join!(web.post(ANA, Some(&session), &slow), second);
        assert_eq!(first.message()["result"]["content"][0]["text"], "the first");
        web.end().await;
    }
}
