//! Results of calls that succeed.

use serde_json::{Value, json};
use toolcrib_core::ErrorCode;
use toolcrib_tools::http::{HttpToolSpec, Method};

use crate::support::{Server, answer, call, fails, get, ok, post, spec};

const ANSWER: &str = r#"{ "data": { "items": [ {"id": 1}, {"id": 2, "name": "two"} ], "n": null },
    "a/b": "slash", "": 0.5 }"#;

/// The text and the data of what a server answers, through a pointer.
async fn read(bytes: impl Into<Vec<u8>>, pointer: Option<&str>) -> (String, Option<Value>) {
    let server = Server::answering(bytes).await;
    let tool = HttpToolSpec { pointer: pointer.map(str::to_owned), ..get(&server.url("/"), &[]) };
    let output = call(tool, json!({})).await.unwrap();
    (output.value, output.structured)
}

async fn refused(bytes: impl Into<Vec<u8>>, pointer: Option<&str>) -> String {
    let server = Server::answering(bytes).await;
    let tool = HttpToolSpec { pointer: pointer.map(str::to_owned), ..get(&server.url("/"), &[]) };
    let (code, message) = fails(tool, json!({})).await;
    assert_eq!(code, ErrorCode::ExecutionFailed);
    message
}

#[tokio::test]
async fn the_pointed_part_of_a_response_is_text_and_data() {
    let json = ok("application/json; charset=utf-8", ANSWER);
    for (pointer, text, data) in [
        ("/data/items/1", r#"{"id":2,"name":"two"}"#, json!({ "id": 2, "name": "two" })),
        ("/data/items/1/name", "two", json!("two")),
        ("/data/items/0/id", "1", json!(1)),
        ("/data/n", "null", json!(null)),
        ("/a~1b", "slash", json!("slash")),
        ("/", "0.5", json!(0.5)),
    ] {
        assert_eq!(read(json.as_str(), Some(pointer)).await, (text.to_owned(), Some(data)));
    }
    let all: Value = serde_json::from_str(ANSWER).unwrap();
    assert_eq!(read(json, None).await, (all.to_string(), Some(all.clone())));
}

#[tokio::test]
async fn json_is_what_reads_as_json() {
    for content_type in
        ["application/problem+json", "TEXT/JSON", "application/vnd.api+json;x=y", ""]
    {
        let (text, data) = read(ok(content_type, r#"{"a": 1}"#), None).await;
        assert_eq!((text.as_str(), data), (r#"{"a":1}"#, Some(json!({ "a": 1 }))));
    }
    // With a pointer, whatever it is said to be; some servers say that all is text.
    assert_eq!(read(ok("text/plain", "\u{feff}[7]"), Some("/0")).await.0, "7");
    assert_eq!(read(ok("application/octet-stream", "[7]"), Some("/0")).await.0, "7");
    assert_eq!(read(ok("text/plain", "[7]"), None).await, ("[7]".to_owned(), None));
}

#[tokio::test]
async fn a_part_that_is_missing_is_named_with_what_is_there() {
    let json = || ok("application/json", ANSWER);
    assert!(
        refused(json(), Some("/data/items/5"))
            .await
            .ends_with("has nothing at `/data/items/5`; at `/data/items` is a list of 2")
    );
    assert!(
        refused(json(), Some("/data/itms/0")).await.ends_with("at `/data` there are `items`, `n`")
    );
    assert!(
        refused(json(), Some("/x/y/z")).await.ends_with("at its top there are `data`, `a/b`, ``")
    );
    assert!(refused(json(), Some("/data/n/x")).await.ends_with("at `/data/n` is null"));
    assert!(refused(json(), Some("/a~1b/x")).await.ends_with("at `/a~1b` is a text"));

    let many: serde_json::Map<_, _> =
        (0..1000).map(|n| (format!("{n}{}", "k".repeat(1000)), json!(1))).collect();
    let message = refused(ok("application/json", &Value::from(many).to_string()), Some("/x")).await;
    assert!(message.ends_with("and more"), "{message}");
    assert!(message.chars().count() < 2000, "{}", message.len());
}

#[tokio::test]
async fn a_declared_json_body_that_is_invalid_is_an_error() {
    let message = refused(ok("application/json", "{\"a\": s3cret"), None).await;
    assert!(message.contains("declared a JSON body, but it is not valid JSON"), "{message}");
    assert!(message.contains("line 1 column 7") && !message.contains("s3cret"), "{message}");
    let deep = "[".repeat(100_000);
    assert!(refused(ok("application/json", &deep), None).await.contains("not valid JSON"));
    let message = refused(ok("text/html", "<p>x"), Some("/a")).await;
    assert!(message.ends_with("answered text where JSON was expected"), "{message}");
    let message = refused(ok("image/png", "png"), Some("/a")).await;
    assert!(message.ends_with("answered image/png where JSON was expected"), "{message}");
    refused(ok("application/json", ""), Some("/a")).await;
}

#[tokio::test]
async fn text_bodies_are_returned_and_other_types_are_named() {
    let mut latin = ok("text/plain", "caf?").into_bytes();
    *latin.last_mut().unwrap() = 0xe9;
    assert_eq!(read(latin, None).await, ("caf\u{fffd}".to_owned(), None));
    assert_eq!(read(ok("image/svg+xml", "<svg/>"), None).await.0, "<svg/>");
    assert_eq!(read(ok("application/x-ndjson", "{}\n{}"), None).await.0, "{}\n{}");
    assert_eq!(read(answer("200 OK", "", "plain"), None).await.0, "plain");
    let (text, data) = read(ok("Application/PDF; x=y", "%PDF-1.7"), None).await;
    assert_eq!(text, "application/pdf, 8 bytes, omitted");
    assert_eq!(data, None);
    let mut bytes = answer("200 OK", "", "????").into_bytes();
    *bytes.last_mut().unwrap() = 0xff;
    assert_eq!(read(bytes, None).await.0, "a body without a content type, 4 bytes, omitted");
}

#[tokio::test]
async fn a_response_without_a_body_is_reported_as_done() {
    assert_eq!(read(answer("204 No Content", "", ""), Some("/a")).await.0, "done (204)");
    assert_eq!(read(answer("201 Created", "", ""), None).await.0, "done (201)");
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
    let output = call(spec(Method::HEAD, &server.url("/"), &[]), json!({})).await.unwrap();
    assert_eq!((output.value.as_str(), output.structured), ("done (200)", None));
}

#[tokio::test]
async fn an_unreadable_response_to_a_write_has_an_unknown_outcome() {
    for (bytes, pointer) in [
        (ok("application/json", "{"), None),
        (ok("application/json", "{}"), Some("/id")),
        (ok("text/html", "<p>"), Some("/id")),
        (ok("application/json", &"1".repeat(2000)), None),
    ] {
        let server = Server::answering(bytes).await;
        let mut tool = post(&server.url("/"), &[], json!({}));
        tool.pointer = pointer.map(str::to_owned);
        tool.max_body_bytes = 1000;
        let (code, message) = fails(tool, json!({})).await;
        assert_eq!(code, ErrorCode::OutcomeUnknown);
        assert!(message.ends_with("so check before trying again"), "{message}");
    }
}
