//! One call, and all that may become of it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_core::CancellationToken;

use super::{
    super::{
        CallRequest, Connection, RequestError,
        open::{Greeting, attempt},
        pipe::Pipe,
    },
    call, call_with,
    raw::{Raw, raw},
    unheard,
};

/// A connection to a legacy server, and the server.
async fn connected() -> (Arc<dyn Connection>, Raw) {
    let (connect, mut connections) = raw(64 * 1024);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server
    });
    let connection = connect.connect(unheard()).await.unwrap();
    (connection, server.await.unwrap())
}

async fn modern() -> (Arc<dyn Connection>, Raw) {
    let (connect, mut connections) = raw(64 * 1024);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_modern(json!({})).await;
        server
    });
    let connection = connect.connect(unheard()).await.unwrap();
    (connection, server.await.unwrap())
}

/// A call on its way, and its request as the server read it.
async fn under_way(
    connection: &Arc<dyn Connection>,
    server: &mut Raw,
) -> (tokio::task::JoinHandle<Result<super::super::CallAnswer, RequestError>>, Value) {
    let calling = tokio::spawn(connection.call_tool(call("work")));
    let request = server.expect("tools/call").await;
    (calling, request)
}

#[tokio::test]
async fn arguments_go_and_an_answer_comes() {
    let (connection, mut server) = connected().await;
    let calling = tokio::spawn(connection.call_tool(call_with("add", json!({"a": 1}))));
    let request = server.expect("tools/call").await;
    assert_eq!(request["params"]["name"], "add");
    assert_eq!(request["params"]["arguments"], json!({"a": 1}));
    let content = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    server.answer(&request, json!({"content": content, "isError": true})).await;
    let answer = calling.await.unwrap().unwrap();
    assert!(answer.is_error);
    assert_eq!(answer.output.value, "one\ntwo");
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_loses_it_and_later_calls_are_not_sent() {
    let (connection, mut server) = connected().await;
    let (calling, _) = under_way(&connection, &mut server).await;
    drop(server);
    let lost = calling.await.unwrap().unwrap_err();
    assert!(
        matches!(&lost, RequestError::Lost(reason) if reason == "it closed the connection"),
        "{lost:?}"
    );
    assert_eq!(&*connection.closed().await, "it closed the connection");
    let not_sent = connection.call_tool(call("work")).await.unwrap_err();
    assert!(matches!(not_sent, RequestError::NotSent(_)), "{not_sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_reads_nothing_ends_the_connection_and_what_waited_was_not_sent() {
    let (connect, mut connections) = raw(512);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server
    });
    let connection = connect.connect(unheard()).await.unwrap();
    let _server = server.await.unwrap();
    let large = json!({"text": "x".repeat(4096)});
    let half = tokio::spawn(connection.call_tool(call_with("half", large)));
    tokio::task::yield_now().await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let waiting = tokio::spawn(connection.call_tool(call("waiting")));
    let reason = connection.closed().await;
    assert_eq!(&*reason, "it has read nothing for 30s");
    let half = half.await.unwrap().unwrap_err();
    assert!(matches!(half, RequestError::Lost(_)), "{half:?}");
    let waiting = waiting.await.unwrap().unwrap_err();
    assert!(matches!(waiting, RequestError::NotSent(_)), "{waiting:?}");
}

#[tokio::test]
async fn a_call_that_is_cancelled_or_dropped_is_cancelled_at_the_server_and_forgotten() {
    let (sender, mut connections) = tokio::sync::mpsc::unbounded_channel();
    let dial = Pipe::new("raw".to_owned(), move || {
        let (ours, theirs) = tokio::io::duplex(4096);
        sender.send(Raw::new(theirs)).map_err(std::io::Error::other)?;
        Ok(ours)
    });
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server
    });
    let Ok(link) = attempt(&dial, Greeting::Either, &unheard()).await else {
        panic!("it is not connected")
    };
    let mut server = server.await.unwrap();
    let intake = Arc::clone(&link.requests.wiring.intake);

    let cancellation = CancellationToken::new();
    let request = CallRequest { cancellation: cancellation.clone(), ..call("work") };
    let cancelled = tokio::spawn(link.call_tool(request));
    let first = server.expect("tools/call").await;
    assert_eq!(intake.expected(), 1);
    cancellation.cancel();
    let error = cancelled.await.unwrap().unwrap_err();
    assert!(matches!(error, RequestError::Cancelled), "{error:?}");
    let told = server.expect("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], first["id"]);

    let dropped = tokio::spawn(link.call_tool(call("work")));
    let second = server.expect("tools/call").await;
    dropped.abort();
    let told = server.expect("notifications/cancelled").await;
    assert_eq!(told["params"]["requestId"], second["id"]);
    assert_eq!(intake.expected(), 0);

    // Their answers come too late, and hurt nobody.
    server.answer(&first, json!({"content": []})).await;
    let third = tokio::spawn(link.call_tool(call("work")));
    let request = server.expect("tools/call").await;
    server.answer(&request, json!({"content": [{"type": "text", "text": "third"}]})).await;
    assert_eq!(third.await.unwrap().unwrap().output.value, "third");
    assert_eq!(intake.expected(), 0);
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_is_not_sent() {
    let (connection, mut server) = connected().await;
    let request = call("never");
    request.cancellation.cancel();
    let error = connection.call_tool(request).await.unwrap_err();
    assert!(matches!(error, RequestError::NotSent(_)), "{error:?}");
    let (calling, request) = under_way(&connection, &mut server).await;
    assert_eq!(request["params"]["name"], "work");
    server.answer(&request, json!({"content": []})).await;
    calling.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_while_it_waits_to_be_written_never_is() {
    let (connect, mut connections) = raw(512);
    let server = tokio::spawn(async move {
        let mut server = connections.recv().await.unwrap();
        server.greet_legacy().await;
        server
    });
    let connection = connect.connect(unheard()).await.unwrap();
    let mut server = server.await.unwrap();
    let second = std::time::Duration::from_secs(1);
    let large = json!({"text": "x".repeat(4096)});
    let half = tokio::spawn(connection.call_tool(call_with("half", large)));
    tokio::time::sleep(second).await;
    let request = call("waiting");
    let cancellation = request.cancellation.clone();
    let waiting = tokio::spawn(connection.call_tool(request));
    tokio::time::sleep(second).await;
    cancellation.cancel();
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, RequestError::NotSent(_)), "{error:?}");

    let later = tokio::spawn(connection.call_tool(call("later")));
    for expected in ["half", "later"] {
        let request = loop {
            let message = server.read().await.unwrap();
            if message["method"] == "tools/call" {
                break message;
            }
        };
        assert_eq!(request["params"]["name"], expected);
        server.answer(&request, json!({"content": []})).await;
    }
    half.await.unwrap().unwrap();
    later.await.unwrap().unwrap();
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_answer() {
    let (connection, mut server) = connected().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let on_progress = Arc::new(move |text, percent| heard.lock().unwrap().push((text, percent)));
    let calling = tokio::spawn(connection.call_tool(CallRequest { on_progress, ..call("work") }));
    let request = server.expect("tools/call").await;
    let token = &request["params"]["_meta"]["progressToken"];
    for progress in [
        json!({"progressToken": token, "progress": 1, "total": 4, "message": "reading"}),
        json!({"progressToken": token, "progress": 3, "total": 4}),
        json!({"progressToken": 12345, "progress": 3, "message": "of another call"}),
        json!({"progressToken": token, "progress": 5}),
        json!({"progressToken": token, "progress": 9, "total": 4, "message": "done"}),
    ] {
        let method = "notifications/progress";
        server.write(&json!({"jsonrpc": "2.0", "method": method, "params": progress})).await;
    }
    server.answer(&request, json!({"content": []})).await;
    calling.await.unwrap().unwrap();
    let expected = [
        ("reading".to_owned(), Some(25)),
        ("3 of 4".to_owned(), Some(75)),
        ("5".to_owned(), None),
        ("done".to_owned(), Some(100)),
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
}

#[tokio::test]
async fn answers_with_other_ids_are_nobodys_and_an_id_as_text_is_another() {
    let (connection, mut server) = connected().await;
    let (calling, request) = under_way(&connection, &mut server).await;
    let as_text = json!(request["id"].to_string());
    for id in [json!(987_654), json!("no number"), as_text, json!(null), json!({}), json!(1.5)] {
        let foreign = json!({"content": [{"type": "text", "text": "foreign"}]});
        server.write(&json!({"jsonrpc": "2.0", "id": id, "result": foreign})).await;
    }
    let result = json!({"content": [{"type": "text", "text": "ours"}]});
    server.write(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    assert_eq!(calling.await.unwrap().unwrap().output.value, "ours");
}

#[tokio::test]
async fn what_a_server_refuses_keeps_its_code_and_its_words() {
    let (connection, mut server) = connected().await;
    let (calling, request) = under_way(&connection, &mut server).await;
    server.refuse(&request, -32602, &"no ".repeat(3_000)).await;
    let RequestError::Refused { code, message } = calling.await.unwrap().unwrap_err() else {
        panic!("it is not refused")
    };
    assert_eq!(code, -32602);
    assert_eq!(message.chars().count(), 2_001);
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_ends_its_call_alone() {
    let (connection, mut server) = connected().await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (answer, says) in [
        (format!(r#""result":{{"content":[],"structuredContent":{deep}}}"#), "cannot be read"),
        (r#""answer":{}"#.to_owned(), "neither a result nor an error"),
        (r#""result":{}"#.to_owned(), "no `content`"),
        (
            r#""result":{"content":[{"type":"image","mimeType":"image/png","data":"%"}]}"#
                .to_owned(),
            "no base64",
        ),
    ] {
        let (calling, request) = under_way(&connection, &mut server).await;
        server.text(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{answer}}}\n", request["id"])).await;
        let error = calling.await.unwrap().unwrap_err();
        assert!(
            matches!(&error, RequestError::Malformed(problem) if problem.contains(says)),
            "{error:?}"
        );
    }
    let (calling, request) = under_way(&connection, &mut server).await;
    server.answer(&request, json!({"content": []})).await;
    calling.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_may_ask_whether_somebody_is_there_and_nothing_else() {
    let (_connection, mut server) = connected().await;
    for (id, method) in [
        (1, "ping"),
        (2, "sampling/createMessage"),
        (3, "roots/list"),
        (4, "elicitation/create"),
        (5, "made/up"),
    ] {
        server
            .write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {
                "messages": [], "maxTokens": 1, "message": "?",
                "requestedSchema": {"type": "object", "properties": {}},
            }}))
            .await;
        let answer = server.read().await.unwrap();
        assert_eq!(answer["id"], id);
        match method {
            "ping" => assert_eq!(answer["result"], json!({})),
            _ => assert_eq!(answer["error"]["code"], -32601, "{answer}"),
        }
    }
}

#[tokio::test]
async fn a_call_that_asks_to_be_sent_again_is_with_its_state() {
    let (connection, mut server) = modern().await;
    let (calling, first) = under_way(&connection, &mut server).await;
    assert!(first["params"].get("requestState").is_none());
    server.answer(&first, json!({"resultType": "input_required", "requestState": "half"})).await;
    let second = server.expect("tools/call").await;
    assert_eq!(second["params"]["requestState"], "half");
    assert_eq!(second["params"]["name"], "work");
    let done = json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]});
    server.answer(&second, done).await;
    assert_eq!(calling.await.unwrap().unwrap().output.value, "done");
}

#[tokio::test]
async fn a_call_is_not_sent_again_for_ever_nor_for_input_nor_after_a_loss() {
    let (connection, mut server) = modern().await;
    let (calling, mut request) = under_way(&connection, &mut server).await;
    for round in 0..10 {
        let again = json!({"resultType": "input_required", "requestState": round.to_string()});
        server.answer(&request, again).await;
        if round < 9 {
            request = server.expect("tools/call").await;
        }
    }
    let error = calling.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, RequestError::Malformed(problem) if problem.contains("10 times")),
        "{error:?}"
    );

    let (calling, request) = under_way(&connection, &mut server).await;
    let asks = json!({"q": {"method": "roots/list"}});
    let asked = json!({"resultType": "input_required", "requestState": "s", "inputRequests": asks});
    server.answer(&request, asked).await;
    let error = calling.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, RequestError::Malformed(problem) if problem.contains("input")),
        "{error:?}"
    );

    let (calling, request) = under_way(&connection, &mut server).await;
    server.answer(&request, json!({"resultType": "input_required", "requestState": "s"})).await;
    drop(server);
    let error = calling.await.unwrap().unwrap_err();
    assert!(matches!(error, RequestError::Lost(_)), "{error:?}");
}
