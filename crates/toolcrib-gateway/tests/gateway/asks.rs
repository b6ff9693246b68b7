//! Requests of a server to the client of a session, during its calls and outside of them. Both ends
//! are raw JSON, which the test writes and reads.

use std::{sync::Arc, time::Duration};

use futures_util::stream;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf,
        WriteHalf, duplex, split,
    },
    sync::mpsc,
    time::timeout,
};
use toolcrib_core::{CancellationToken, Policy, Rule};
use toolcrib_engine::{EngineBuilder, OnFailure};
use toolcrib_gateway::{Access, Gateway, HttpAccess};
use toolcrib_mcp::{mcp_client, pipe_mcp_client, server::Http};

use super::{
    support::engine,
    web::{ANA, Web, post, request},
};

/// The other end of a connection of the gateway.
pub(super) struct End {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl End {
    pub(super) fn of(stream: DuplexStream) -> Self {
        let (read, write) = split(stream);
        Self { lines: BufReader::new(read).lines(), write }
    }

    pub(super) async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({ "id": request["id"], "result": result })).await;
    }

    pub(super) async fn read(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }

    /// The next message to a server of 2025-11-25 beside lists of its tools.
    pub(super) async fn heard(&mut self) -> Value {
        loop {
            let message = self.read().await;
            match message["method"].as_str() {
                Some("server/discover") => {
                    let error = json!({ "code": -32601, "message": "unknown" });
                    self.send(json!({ "id": message["id"], "error": error })).await;
                }
                Some("tools/list") => {
                    let tool = json!({ "name": "work", "inputSchema": { "type": "object" } });
                    self.answer(&message, json!({ "tools": [tool] })).await;
                }
                _ => return message,
            }
        }
    }

    /// Serves these tools, as a server of 2025-11-25.
    pub(super) async fn serve(&mut self, tools: Value) {
        while let Ok(Some(line)) = self.lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let result = match message["method"].as_str() {
                Some("initialize") => json!({
                    "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "s", "version": "1" },
                }),
                Some("tools/list") => json!({ "tools": tools }),
                Some("server/discover") => {
                    let error = json!({ "code": -32601, "message": "unknown" });
                    self.send(json!({ "id": message["id"], "error": error })).await;
                    continue;
                }
                _ => continue,
            };
            self.answer(&message, result).await;
        }
    }

    /// Answers `initialize`, up to `initialized`; returns the declared capabilities.
    pub(super) async fn greeted(&mut self) -> Value {
        let initialize = self.heard().await;
        let result = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" },
        });
        self.answer(&initialize, result).await;
        assert_eq!(self.heard().await["method"], "notifications/initialized");
        initialize["params"]["capabilities"].clone()
    }
}

/// A gateway to a server `s`, whose connections the test serves.
pub(super) fn gateway(rule: Rule) -> (Gateway, mpsc::UnboundedReceiver<End>) {
    gateway_of(engine().policy(Policy::of([rule])))
}

/// The same with another engine.
pub(super) fn gateway_of(engine: EngineBuilder) -> (Gateway, mpsc::UnboundedReceiver<End>) {
    gateway_with(engine, OnFailure::Fail)
}

/// The same with what follows when the server cannot be listed.
pub(super) fn gateway_with(
    engine: EngineBuilder,
    on_failure: OnFailure,
) -> (Gateway, mpsc::UnboundedReceiver<End>) {
    let (opened, connections) = mpsc::unbounded_channel();
    let open = move || {
        let (near, far) = duplex(1 << 16);
        opened.send(End::of(far)).map_err(std::io::Error::other)?;
        Ok(near)
    };
    let server = pipe_mcp_client("s", open).build().unwrap();
    let engine = engine.provider_with(Arc::new(server.clone()), on_failure);
    (Gateway::builder(engine.build().unwrap()).watch(&server).build(), connections)
}

pub(super) fn no_rule() -> Rule {
    Rule::deny("nothing").tools(["unknown"])
}

/// A client that has sent `initialize`.
pub(super) async fn client(gateway: &Gateway, capabilities: &Value) -> End {
    let (near, far) = duplex(1 << 20);
    let (stdin, stdout) = split(far);
    let gateway = gateway.clone();
    tokio::spawn(async move {
        gateway.serve_stdio(stdin, stdout, Access::new(), CancellationToken::new()).await
    });
    let mut client = End::of(near);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": { "name": "raw", "version": "1" },
    });
    client.send(json!({ "id": 0, "method": "initialize", "params": params })).await;
    client
}

pub(super) async fn initialized(client: &mut End) {
    let begun = client.read().await;
    assert!(begun["result"].is_object(), "{begun}");
    client.send(json!({ "method": "notifications/initialized" })).await;
}

/// Official servers ask for the roots when they are initialized, and again when these have changed.
#[tokio::test]
async fn a_session_with_one_client_asks_it_outside_of_calls_too() {
    let can = json!({
        "elicitation": { "url": {} }, "sampling": { "tools": {}, "context": {} },
        "roots": { "listChanged": true },
    });
    let (gateway, mut connections) = gateway(no_rule());
    let mut first = client(&gateway, &can).await;
    let mut server = connections.recv().await.unwrap();
    assert_eq!(server.greeted().await, can, "what the client declared is declared");
    server.send(json!({ "id": "r", "method": "roots/list" })).await;

    // Not before it is initialized, and with parameters that are no `null`.
    initialized(&mut first).await;
    let roots = json!({ "roots": [{ "uri": "file:///a" }] });
    let asked = first.read().await;
    let of_server = json!({ "_meta": { "toolcrib/server": "s" } });
    assert_eq!((&asked["method"], &asked["params"]), (&json!("roots/list"), &of_server));
    first.answer(&asked, roots.clone()).await;
    let got = server.heard().await;
    assert_eq!((&got["id"], &got["result"]), (&json!("r"), &roots));

    // A call that is in progress has nothing to do with it.
    let params = json!({ "name": "mcp__s__work", "arguments": {} });
    first.send(json!({ "id": 1, "method": "tools/call", "params": params })).await;
    let call = server.heard().await;
    server.send(json!({ "id": "in a call", "method": "roots/list" })).await;
    let asked = first.read().await;
    server.answer(&call, json!({ "content": [] })).await;
    assert_eq!(first.read().await["id"], 1);
    first.answer(&asked, roots.clone()).await;
    assert_eq!(server.heard().await["result"], roots);

    first.send(json!({ "method": "notifications/roots/list_changed" })).await;
    assert_eq!(server.heard().await["method"], "notifications/roots/list_changed");
    let complete = json!({ "elicitationId": "e" });
    let method = "notifications/elicitation/complete";
    server.send(json!({ "method": method, "params": complete })).await;
    let told = first.read().await;
    assert_eq!((&told["method"], &told["params"]), (&json!(method), &complete));

    // As many as in one call, until the client sends a request.
    for id in 0..17 {
        server.send(json!({ "id": id, "method": "roots/list" })).await;
        if id < 16 {
            let asked = first.read().await;
            first.answer(&asked, roots.clone()).await;
        }
        let is_refused = server.heard().await["error"]["code"] == -32601;
        assert_eq!(is_refused, id == 16, "{id}");
    }

    // The same session: it is unknown whose request it is.
    let mut second = client(&gateway, &can).await;
    initialized(&mut second).await;
    first.send(json!({ "id": 2, "method": "ping" })).await;
    assert_eq!(first.read().await["id"], 2);
    server.send(json!({ "id": "of two", "method": "roots/list" })).await;
    assert_eq!(server.heard().await["error"]["code"], -32601);
}

/// Over HTTP, the stream says which call a request of the server belongs to.
#[tokio::test]
async fn of_two_clients_with_calls_the_one_whose_stream_it_came_on_is_asked() {
    type Stream = mpsc::UnboundedSender<Result<String, std::io::Error>>;
    let (opened, mut streams) = mpsc::unbounded_channel::<(Value, Stream)>();
    let (answered, mut answers) = mpsc::unbounded_channel::<Value>();
    let serve = move |body: axum::body::Bytes| {
        let message: Value = serde_json::from_slice(&body).unwrap();
        let response = |kind: &str, body| {
            let response = axum::response::Response::builder().header("content-type", kind);
            response.header("mcp-session-id", "one").body::<axum::body::Body>(body).unwrap()
        };
        let of_result = |result: Value| {
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            response("application/json", answer.to_string().into())
        };
        let reply = match message["method"].as_str() {
            Some("initialize") => of_result(json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "s", "version": "1" },
            })),
            Some("tools/list") => of_result(json!({ "tools": [
                { "name": "work", "inputSchema": { "type": "object" } },
            ]})),
            Some("tools/call") => {
                let (stream, texts) = mpsc::unbounded_channel();
                opened.send((message, stream)).unwrap();
                let texts =
                    stream::unfold(texts, |mut texts| async { Some((texts.recv().await?, texts)) });
                response("text/event-stream", axum::body::Body::from_stream(texts))
            }
            Some("server/discover") => {
                let error = json!({ "code": -32601, "message": "unknown" });
                let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                response("application/json", answer.to_string().into())
            }
            method => {
                if method.is_none() {
                    answered.send(message).unwrap();
                }
                let mut accepted = response("text/plain", "".into());
                *accepted.status_mut() = axum::http::StatusCode::ACCEPTED;
                accepted
            }
        };
        async move { reply }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let app = axum::Router::new().route("/mcp", axum::routing::post(serve));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let server = mcp_client("s", Http::new(url)).build().unwrap();
    let engine = engine().provider(Arc::new(server.clone()));
    let gateway = Gateway::builder(engine.build().unwrap()).watch(&server).build();

    let can = json!({ "elicitation": { "form": {} } });
    let mut clients = Vec::new();
    for number in 0..2 {
        let mut client = client(&gateway, &can).await;
        initialized(&mut client).await;
        let params = json!({ "name": "mcp__s__work", "arguments": {} });
        client.send(json!({ "id": number, "method": "tools/call", "params": params })).await;
        clients.push((client, streams.recv().await.unwrap()));
    }
    for (client, (call, stream)) in &mut clients {
        let event = |message: Value| stream.send(Ok(format!("data: {message}\n\n"))).unwrap();
        let form = json!({ "message": "Who?", "requestedSchema": {
            "type": "object", "properties": { "name": { "type": "string" } },
        }});
        event(
            json!({ "jsonrpc": "2.0", "id": "e", "method": "elicitation/create", "params": form }),
        );
        let asked = client.read().await;
        assert_eq!(asked["method"], "elicitation/create");
        client.answer(&asked, json!({ "action": "decline" })).await;
        assert_eq!(answers.recv().await.unwrap()["result"]["action"], "decline");
        event(json!({ "jsonrpc": "2.0", "id": call["id"], "result": { "content": [] } }));
        assert!(client.read().await["result"].is_object());
    }
}

#[tokio::test]
async fn a_rule_denies_a_server_the_roots() {
    let denied = Rule::deny("no roots").toolsets(["mcp.roots"]);
    let (gateway, mut connections) = gateway(denied);
    let can = json!({ "sampling": {}, "roots": { "listChanged": true } });
    let mut client = client(&gateway, &can).await;
    let mut server = connections.recv().await.unwrap();
    assert_eq!(server.greeted().await, json!({ "sampling": {} }));
    initialized(&mut client).await;
    server.send(json!({ "id": 1, "method": "roots/list" })).await;
    assert_eq!(server.heard().await["error"]["code"], -32601);
}

#[tokio::test]
async fn progress_passes_with_its_metadata_and_without_a_message_gets_none() {
    let (gateway, mut connections) = gateway(no_rule());
    let mut client = client(&gateway, &json!({})).await;
    let mut server = connections.recv().await.unwrap();
    server.greeted().await;
    initialized(&mut client).await;
    let params = json!({
        "name": "mcp__s__work", "arguments": {}, "_meta": { "progressToken": "t" },
    });
    client.send(json!({ "id": 1, "method": "tools/call", "params": params })).await;
    let call = server.heard().await;
    let token = &call["params"]["_meta"]["progressToken"];
    let meta = json!({ "example.test/k": { "a": [1] }, "toolcrib/x": 1 });
    let progress = json!({ "progressToken": token, "progress": 0.5, "total": 2, "_meta": meta });
    server.send(json!({ "method": "notifications/progress", "params": progress })).await;
    let meta = json!({ "example.test/k": { "a": [1] } });
    let progress = json!({ "progressToken": "t", "progress": 0.5, "total": 2.0, "_meta": meta });
    assert_eq!(client.read().await["params"], progress);
    server.answer(&call, json!({ "content": [] })).await;
    assert_eq!(client.read().await["id"], 1);
}

/// The stream so far, up to an event with this text.
async fn read_to(body: &mut Incoming, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let frame = timeout(Duration::from_secs(300), body.frame()).await.expect("an event");
        read.push_str(str::from_utf8(&frame.unwrap().unwrap().into_data().unwrap()).unwrap());
    }
    read
}

/// The question was the oldest of too many messages, and the call waited until its end.
#[tokio::test]
async fn a_question_is_kept_for_a_client_that_reads_late() {
    let (gateway, mut connections) = gateway(no_rule());
    let web = Web::of(&gateway, HttpAccess::new().token(ANA, Access::new())).await;
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "slow", "version": "1" },
    });
    let initialize = request("initialize", &params);
    let greet = async {
        let mut server = connections.recv().await.unwrap();
        server.greeted().await;
        server
    };
    let (begun, mut server) = tokio::join!(web.post(ANA, None, &initialize), greet);
    let session = begun.session.unwrap();
    let params = json!({
        "name": "mcp__s__work", "arguments": {}, "_meta": { "progressToken": "t" },
    });
    let message = request("tools/call", &params);
    let send = web.send(post("/mcp", ANA, Some(&session), &message));
    let (mut lost, call) = tokio::join!(send, server.heard());
    let form = json!({ "message": "Who?", "requestedSchema": { "type": "object" } });
    server.send(json!({ "id": "e", "method": "elicitation/create", "params": form })).await;
    let read = read_to(lost.body_mut(), "elicitation/create").await;
    let first = read.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    drop(lost);
    for number in 0..100 {
        let log = json!({ "level": "info", "data": number });
        server.send(json!({ "method": "notifications/message", "params": log })).await;
    }
    server.send(json!({ "id": "p", "method": "ping" })).await;
    assert_eq!(server.heard().await["id"], "p");

    // It comes back, and has lost all but the first event.
    let mut get = post("/mcp", ANA, Some(&session), &json!({}));
    *get.method_mut() = hyper::Method::GET;
    get.headers_mut().insert("last-event-id", first.parse().unwrap());
    let mut again = web.send(get).await;
    let read = read_to(again.body_mut(), "\"data\":99").await;
    let events = read.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut events = events.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let asked = events.next().unwrap();
    assert_eq!(asked["method"], "elicitation/create", "{read}");
    assert_eq!(events.count(), 63, "no other message is kept longer");
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } });
    assert_eq!(web.post(ANA, Some(&session), &answer).await.status, 202);
    assert_eq!(server.heard().await["result"]["action"], "decline");
    server.answer(&call, json!({ "content": [] })).await;
    read_to(again.body_mut(), "\"result\"").await;
    web.end().await;
}
