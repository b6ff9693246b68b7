//! Calls: the request is what the document says, and its server agrees.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, Tool};
use toolcrib_tools::openapi::{Auth, OpenApi, OpenApiSpec};

use crate::server::{Server, Vault, call, call_with, client};

const SHOP: &str = include_str!("shop.yaml");

/// The document as JSON, for the server.
fn json_of_shop() -> Value {
    serde_json::from_str(include_str!("shop.json")).unwrap()
}

async fn shop(secret: &str) -> (Server, Vec<Tool>) {
    let server = Server::of(json_of_shop()).await;
    let spec = OpenApiSpec {
        server: Some(server.url()),
        auth: Auth { any: Some(secret.into()), by_scheme: Vec::new() },
        ..OpenApiSpec::new()
    };
    let tools = spec.build(&OpenApi::parse(SHOP).unwrap(), &client()).unwrap();
    (server, tools)
}

fn named<'t>(tools: &'t [Tool], name: &str) -> &'t Tool {
    tools.iter().find(|tool| tool.name().as_str() == name).unwrap()
}

#[tokio::test]
async fn every_part_of_a_request_has_the_style_of_the_document() {
    let (server, tools) = shop("KEY").await;
    for (name, args, line) in [
        ("listOrders", json!({}), "GET /v1/orders"),
        (
            "listOrders",
            json!({ "state": ["open", "paid"], "ids": [1, 2], "tags": ["a&b", "c"] }),
            "GET /v1/orders?state=open&state=paid&ids=1,2&tags=a%26b%7Cc",
        ),
        (
            "listOrders",
            json!({
                "filter": { "from": "2026-01-01", "sum": { "gt": 5 } }, "page_size": 7,
                "where": { "a": [1] }, "ids": null,
            }),
            "GET /v1/orders?filter%5Bfrom%5D=2026-01-01&filter%5Bsum%5D%5Bgt%5D=5&\
             page%5Bsize%5D=7&where=%7B%22a%22%3A%5B1%5D%7D",
        ),
        ("createOrder", json!({ "body": { "sku": "a", "quantity": 1 } }), "POST /v1/orders"),
        ("replaceOrder", json!({ "id": "a/..b?c", "body": {} }), "PUT /v1/orders/a%2F..b%3Fc"),
        ("deleteOrder", json!({ "id": "7" }), "DELETE /v1/orders/7?api_key=user%3Apass-word"),
        ("head_orders_id", json!({ "id": "7" }), "HEAD /v1/orders/7"),
        (
            "area",
            json!({ "box": [1, 2], ".point": "3", "X-Size": [4, 5] }),
            "GET /v1/areas/;box=1,2/.3",
        ),
    ] {
        let before = server.count();
        let answered = call(named(&tools, name), args.clone()).await;
        assert!(answered.is_ok(), "{name} {args}: {answered:?}");
        assert_eq!(server.count(), before + 1);
        assert_eq!(server.last().line, line);
    }
    assert_eq!(server.last().header("x-size"), "4,5");
    assert_eq!(server.last().header("x-key"), "user:pass-word");
}

#[tokio::test]
async fn bodies_are_json_or_forms() {
    let (server, tools) = shop("KEY").await;
    let body = json!({ "sku": "é", "quantity": 2, "note": null });
    let args = json!({ "body": body, "X-Trace-Id": "t" });
    call(named(&tools, "createOrder"), args).await.unwrap();
    let asked = server.last();
    assert_eq!(serde_json::from_str::<Value>(&asked.body).unwrap(), body);
    assert_eq!(asked.header("content-type"), "application/json");
    assert_eq!(asked.header("x-trace-id"), "t");
    let body = json!({
        "amount": 5, "methods": ["a", "b c"], "card": { "number": "4&2" }, "meta": { "x": 1 },
    });
    call(named(&tools, "pay"), json!({ "id": "1", "body": body })).await.unwrap();
    let expected = "amount=5&methods=a&methods=b%20c&card%5Bnumber%5D=4%262&meta=%7B%22x%22%3A1%7D";
    assert_eq!(server.last().body, expected);
    // The server refuses what the document does not describe, so the checks above can fail.
    let refused = call(named(&tools, "pay"), json!({ "id": "1", "body": { "amount": "x" } })).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, ErrorCode::ExecutionFailed);
    assert!(refused.message.contains("the amount is missing"), "{}", refused.message);
}

#[tokio::test]
async fn forms_of_parts_and_bodies_of_text_are_sent() {
    let form = |of: Value, encoding: Value| json!({ "multipart/form-data": { "schema": of, "encoding": encoding } });
    let properties = json!({
        "file": { "type": "string", "format": "binary" },
        "tags": { "type": "array", "items": { "type": "string" } },
        "meta": { "type": "object" }, "rows": { "type": "array", "items": {} },
        "size": { "type": "integer" },
    });
    let encoding = json!({
        "file": { "contentType": "text/csv" }, "rows": { "contentType": "application/json" },
    });
    let upload = form(json!({ "type": "object", "properties": properties }), encoding);
    let document = json!({
        "openapi": "3.0.3",
        "paths": {
            "/files": { "post": { "operationId": "upload", "requestBody": { "content": upload } } },
            "/raw": { "post": { "operationId": "raw", "requestBody": { "content":
                { "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } } } } },
        },
    });
    let server = Server::of(document.clone()).await;
    let spec = OpenApiSpec { server: Some(server.url()), ..OpenApiSpec::new() };
    let tools = spec.build(&OpenApi::parse(&format!("\u{feff}{document}")).unwrap(), &client());
    let tools = tools.unwrap();
    let body = json!({
        "file": "a,b\r\n--x--", "tags": ["a", "b"], "meta": { "k": 1 }, "rows": [1, 2], "size": 7,
        "none": null, "a\"\r\nX: 1": "odd",
    });
    call(named(&tools, "upload"), json!({ "body": body })).await.unwrap();
    let asked = server.last();
    let media = asked.header("content-type").to_owned();
    let boundary = media.strip_prefix("multipart/form-data; boundary=").unwrap();
    let expected = [
        ("name=\"file\"; filename=\"file\"\r\nContent-Type: text/csv", "a,b\r\n--x--"),
        ("name=\"tags\"", "a"),
        ("name=\"tags\"", "b"),
        ("name=\"meta\"\r\nContent-Type: application/json", "{\"k\":1}"),
        ("name=\"rows\"\r\nContent-Type: application/json", "[1,2]"),
        ("name=\"size\"", "7"),
        ("name=\"a%22%0D%0AX: 1\"", "odd"),
    ]
    .map(|(head, text)| {
        format!("--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n")
    });
    assert_eq!(asked.body, format!("{}--{boundary}--\r\n", expected.concat()));
    let again = call(named(&tools, "upload"), json!({ "body": {} })).await;
    assert!(again.is_ok() && server.last().header("content-type") != media, "{again:?}");

    call(named(&tools, "raw"), json!({ "body": "a file\n" })).await.unwrap();
    assert_eq!(server.last().body, "a file\n");
    assert_eq!(server.last().header("content-type"), "application/octet-stream");
}

#[tokio::test]
async fn secrets_go_where_the_scheme_says_and_only_there() {
    let (server, tools) = shop("KEY").await;
    let vault = Arc::<Vault>::default();
    call_with(named(&tools, "head_orders_id"), json!({ "id": "1" }), &vault).await.unwrap();
    assert!(vault.0.lock().unwrap().is_empty());
    assert_eq!(server.last().header("authorization"), "");
    call_with(named(&tools, "listOrders"), json!({}), &vault).await.unwrap();
    assert_eq!(server.last().header("authorization"), "Bearer user:pass-word");
    call_with(named(&tools, "replaceOrder"), json!({ "id": "1" }), &vault).await.unwrap();
    assert_eq!(server.last().header("authorization"), "Basic dXNlcjpwYXNzLXdvcmQ=");
    let pay = json!({ "id": "1", "body": { "amount": 1 } });
    call_with(named(&tools, "pay"), pay, &vault).await.unwrap();
    assert_eq!(server.last().header("cookie"), "sid=user%3Apass-word");
    assert_eq!(vault.0.lock().unwrap()["KEY"], 3);

    let (server, tools) = shop("BROKEN").await;
    let refused = call(named(&tools, "listOrders"), json!({})).await.unwrap_err();
    assert_eq!(server.count(), 0);
    assert!(!refused.message.contains("Evil"), "{}", refused.message);
}

#[tokio::test]
async fn arguments_cannot_leave_their_place() {
    let (server, tools) = shop("KEY").await;
    for id in ["", ".", "..", "%2e"] {
        let args = json!({ "id": id });
        let called = call(named(&tools, "deleteOrder"), args).await;
        match called {
            Err(error) => assert_eq!(error.code, ErrorCode::InputInvalid, "{id:?}"),
            Ok(_) => {
                assert_eq!(server.last().line.split('?').next(), Some("DELETE /v1/orders/%252e"));
            }
        }
    }
    let refused = call(named(&tools, "listOrders"), json!({ "X-Trace-Id": "a\r\nX: 1" })).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::InputInvalid);
    let args = json!({ "theme": "a; sid=evil\r\nX: 1" });
    call(named(&tools, "listOrders"), args).await.unwrap();
    assert_eq!(server.last().header("cookie"), "theme=a%3B%20sid%3Devil%0D%0AX%3A%201");
}

#[tokio::test]
async fn headers_and_credentials_are_no_arguments_and_a_fixed_query_is_sent() {
    let document = json!({
        "openapi": "3.1.0",
        "components": { "securitySchemes": { "k": { "type": "apiKey", "in": "header", "name": "X-Key" } } },
        "security": [{ "k": [] }],
        "paths": { "/messages?beta=true": { "get": { "operationId": "list", "parameters": [
            { "name": "x-key", "in": "header", "required": true },
            { "name": "api-version", "in": "header", "required": true },
            { "name": "limit", "in": "query", "schema": { "type": "integer" } },
        ] } } },
    });
    let of_server = json!({
        "security": [], "paths": { "/messages": { "get": { "parameters": [
            { "name": "beta", "in": "query" }, { "name": "limit", "in": "query" },
            { "name": "api-version", "in": "header", "required": true },
            { "name": "x-key", "in": "header", "required": true },
        ] } } },
    });
    let server = Server::of(of_server).await;
    let spec = OpenApiSpec {
        server: Some(server.url()),
        auth: Auth { any: Some("KEY".into()), by_scheme: Vec::new() },
        headers: vec![("API-Version".to_owned(), "7".to_owned())],
        ..OpenApiSpec::new()
    };
    let tools = spec.build(&OpenApi::parse(&document.to_string()).unwrap(), &client()).unwrap();
    let properties = tools[0].input_schema()["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["limit"]);
    let answered = call(&tools[0], json!({ "limit": 5 })).await;
    assert!(answered.is_ok(), "{answered:?}");
    assert_eq!(server.last().line, "GET /v1/messages?beta=true&limit=5");
    assert_eq!(server.last().header("api-version"), "7");
}
