//! Searches, against a server with the API of SearXNG.

use serde_json::{Value, json};
use toolcrib_core::ErrorCode;
use toolcrib_tools::{Declaration, web::WebTool};

use crate::support::{Server, answer, call_of, client, ok};

async fn search(server: &Server, args: Value) -> Result<String, (ErrorCode, String)> {
    let url = server.url("/search?categories=general");
    call_of(WebTool::Search { url: url.into() }, &client(), args).await
}

#[tokio::test]
async fn results_are_listed_with_title_url_and_snippet() {
    let long = "s".repeat(700);
    let body = json!({
        "query": "roma",
        "results": [
            { "title": "Roma\ntomato", "url": "https://a.example/r?x=1", "content": "A  plum\ntomato.", "engine": "x" },
            { "title": "Bad", "url": "javascript:alert(1)", "content": "Obey." },
            { "title": "No URL" },
            { "title": "", "url": "https://b.example/", "content": long },
            { "title": "Third", "url": "https://c.example/", "content": null },
        ],
        "unresponsive_engines": [["y", "timeout"]],
    });
    let server = Server::of(&[("/search", ok("application/json", body.to_string()))]).await;
    let found = search(&server, json!({ "query": "roma & sun", "page": 2 })).await.unwrap();
    let expected = format!(
        "1. Roma tomato\n   https://a.example/r?x=1\n   A plum tomato.\n2. (no title)\n   \
         https://b.example/\n   {}…\n3. Third\n   https://c.example/\n\n1 of the search engines did not \
         answer.",
        "s".repeat(500)
    );
    assert_eq!(found, expected);
    let line = "GET /search?categories=general&q=roma+%26+sun&format=json&pageno=2 HTTP/1.1\r\n";
    assert!(server.asked()[0].starts_with(line), "{:?}", server.asked());
    let found = search(&server, json!({ "query": "roma", "limit": 1 })).await.unwrap();
    assert!(!found.contains("2. "), "{found}");
}

#[tokio::test]
async fn nothing_found_and_other_answers_say_what_to_do() {
    let server = Server::of(&[("/search", ok("application/json", r#"{"results": []}"#))]).await;
    let found = search(&server, json!({ "query": "x" })).await.unwrap();
    assert_eq!(found, "no results; use fewer or other words");
    for (bytes, code, text) in [
        (ok("text/html", "<p>Search"), ErrorCode::ExecutionFailed, "did not answer with results"),
        (
            ok("application/json", r#"{"results": 1}"#),
            ErrorCode::ExecutionFailed,
            "try again later",
        ),
        (answer("403 Forbidden", "", b""), ErrorCode::NotAvailable, "only its operator"),
        (answer("429 Too Many", "", b""), ErrorCode::ExecutionFailed, "try again later"),
    ] {
        let server = Server::of(&[("/search", bytes)]).await;
        let (found, message) = search(&server, json!({ "query": "x" })).await.unwrap_err();
        assert_eq!(found, code, "{message}");
        assert!(message.contains(text), "{message}");
    }
}

#[tokio::test]
async fn a_search_url_that_is_none_is_an_error_of_the_declaration() {
    for url in ["searx.example/search", "file:///search", ""] {
        let tool = WebTool::Search { url: url.into() };
        let declaration = tool.declaration(&Declaration::new("", ""), None);
        let error = tool.build(declaration, &client()).unwrap_err().to_string();
        assert!(error.contains("`search_url`: the URL cannot be used"), "{error}");
    }
}
