//! Errors of calls that fail.

use std::sync::Arc;

use serde_json::json;
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{CancellationToken, ErrorCode, NetworkRules, ToolContextParts};
use toolcrib_tools::http::{HttpToolSpec, Method};

use crate::support::{Server, answer, client, client_of, fails, get, ok, post, spec};

async fn status(status: &str, headers: &str, body: &str) -> String {
    let server = Server::answering(answer(status, headers, body)).await;
    let (code, message) = fails(get(&server.url("/"), &[]), json!({})).await;
    assert_eq!(code, ErrorCode::ExecutionFailed);
    message
}

#[tokio::test]
async fn a_status_that_is_no_success_is_said_with_what_came_along() {
    assert_eq!(
        status("404 Not Found", "Content-Type: text/plain\r\n", " no such user \n").await,
        "`127.0.0.1` answered 404 Not Found: no such user"
    );
    assert_eq!(status("599 Odd", "", "").await, "`127.0.0.1` answered 599");
    assert_eq!(status("304 Not Modified", "", "").await, "`127.0.0.1` answered 304 Not Modified");
    let long = status("500 Internal", "Content-Type: text/html\r\n", &"é".repeat(501)).await;
    assert!(long.ends_with(&format!("Error: {}…", "é".repeat(500))), "{long}");
    let picture = status("400 Bad Request", "Content-Type: image/png\r\n", "png").await;
    assert_eq!(picture, "`127.0.0.1` answered 400 Bad Request");
}

#[tokio::test]
async fn a_refused_credential_and_a_wait_are_named() {
    for refused in ["401 Unauthorized", "403 Forbidden"] {
        let message = status(refused, "", "").await;
        assert!(message.contains("credential"), "{message}");
        assert!(message.contains("operator"), "{message}");
    }
    let message = status("429 Too Many Requests", "Retry-After: 120\r\n", "slow down").await;
    assert!(message.ends_with("; try again in 120 s: slow down"), "{message}");
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    let message = status("503 No", &format!("Retry-After: {date}\r\n"), "").await;
    assert!(message.ends_with(&format!("; try again after {date}")), "{message}");
    let message = status("429 No", &format!("Retry-After: {}\r\n", "9".repeat(5000)), "").await;
    assert!(message.len() < 200, "{message}");
}

#[tokio::test]
async fn a_write_that_may_have_run_has_an_unknown_outcome() {
    for (bytes, read_only, writing) in [
        (String::new(), ErrorCode::ExecutionFailed, ErrorCode::OutcomeUnknown),
        (answer("504 T", "", ""), ErrorCode::ExecutionFailed, ErrorCode::OutcomeUnknown),
        (answer("502 T", "", ""), ErrorCode::ExecutionFailed, ErrorCode::OutcomeUnknown),
        (answer("500 T", "", ""), ErrorCode::ExecutionFailed, ErrorCode::OutcomeUnknown),
        (answer("408 T", "", ""), ErrorCode::ExecutionFailed, ErrorCode::OutcomeUnknown),
        (answer("501 T", "", ""), ErrorCode::ExecutionFailed, ErrorCode::ExecutionFailed),
        (answer("503 T", "", ""), ErrorCode::ExecutionFailed, ErrorCode::ExecutionFailed),
        // The server knows, and says so.
        (answer("409 T", "", ""), ErrorCode::ExecutionFailed, ErrorCode::ExecutionFailed),
        (
            answer("302 Found", "Location: http://10.0.0.1/\r\n", ""),
            ErrorCode::ExecutionFailed,
            ErrorCode::OutcomeUnknown,
        ),
    ] {
        let server = Server::answering(bytes.clone()).await;
        let asks = get(&server.url("/"), &[]);
        let writes = post(&server.url("/"), &[], json!({}));
        let mut post_that_reads = writes.clone();
        post_that_reads.declaration.annotations.read_only = true;
        let mut get_that_writes = asks.clone();
        get_that_writes.declaration.annotations.read_only = false;
        for (tool, expected) in [
            (asks, read_only),
            (writes, writing),
            (post_that_reads, read_only),
            (get_that_writes, writing),
        ] {
            let (code, message) = fails(tool, json!({})).await;
            assert_eq!(code, expected, "{bytes}: {message}");
            assert_eq!(code == ErrorCode::OutcomeUnknown, message.contains("check before"));
        }
    }
}

#[tokio::test]
async fn only_read_only_requests_are_retried() {
    for (method, read_only, expected) in [
        (Method::GET, true, Ok(3)),
        (Method::POST, true, Ok(3)),
        (Method::GET, false, Err(ErrorCode::OutcomeUnknown)),
        (Method::POST, false, Err(ErrorCode::OutcomeUnknown)),
    ] {
        let server = Server::breaking_once(answer("204 No Content", "", "")).await;
        let mut tool = spec(method.clone(), &server.url("/"), &[]);
        tool.declaration.annotations.read_only = read_only;
        let tool = tool.build(&client()).unwrap();
        let call = || tool.call(json!({}), ToolContextParts::detached().into());
        call().await.unwrap();
        let outcome = call().await.map(|_| server.asked().len()).map_err(|error| error.code);
        assert_eq!(outcome, expected, "{method}");
    }
}

#[tokio::test]
async fn a_request_that_was_not_sent_is_a_plain_failure() {
    let port = Server::silent().await.address.port();
    tokio::task::yield_now().await;
    let url = format!("http://127.0.0.1:{port}/?key=s3cret");
    let (code, message) = fails(post(&url, &[], json!({})), json!({})).await;
    assert_eq!(code, ErrorCode::ExecutionFailed, "{message}");
    assert!(message.starts_with("no connection to `127.0.0.1` on port "), "{message}");
    assert!(!message.contains("s3cret"), "{message}");
}

#[tokio::test]
async fn a_forbidden_host_is_not_available() {
    let server = Server::silent().await;
    let narrow = client().only(["a.example".parse().unwrap()]);
    for (client, text, operator) in [
        (
            HttpClient::builder().build(),
            "has an address that this tool may not reach: this machine",
            "127.0.0.1, which is this machine; if it is meant, write \
             `allow_addresses = [\"127.0.0.1/32\"]` in the tool",
        ),
        (
            narrow,
            "is not among the hosts that this tool may ask",
            "`127.0.0.1` is not among the permitted hosts",
        ),
    ] {
        let tool = post(&server.url("/"), &[], json!({})).build(&client).unwrap();
        let error = tool.call(json!({}), ToolContextParts::detached().into()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NotAvailable);
        assert!(error.message.contains(text), "{error:?}");
        assert!(error.cause_chain().unwrap().contains(operator), "{error:?}");
        assert!(!error.message.contains("allow_addresses"), "{error:?}");
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn the_operator_reads_which_request_failed_and_never_its_query() {
    // Another server, under a path with unknown content.
    let there = Server::answering(answer("500 No", "", "")).await;
    let cause = async |spec: HttpToolSpec| {
        let tool = spec.build(&client_of(&there)).unwrap();
        let args = json!({ "city": "Oslo / \u{fc}", "key": "k3y" });
        let error = tool.call(args, ToolContextParts::detached().into()).await.unwrap_err();
        assert!(!error.message.contains("/v1/"), "{error:?}");
        let cause = error.cause_chain().unwrap();
        assert!(!cause.contains("k3y"), "{cause}");
        cause
    };
    let at = |server: &Server| {
        let url = server.url("/v1/{city}?key={key}");
        (get(&url, &["city", "key"]), format!("GET {}", server.url("/v1/Oslo%20%2F%20%C3%BC: ")))
    };
    for (status, said) in [("404 Not Found", "404 Not Found"), ("599 Odd", "599")] {
        let server = Server::answering(answer(status, "", "")).await;
        let (spec, asked) = at(&server);
        assert_eq!(cause(spec).await, format!("{asked}{said}"));
    }
    // A status that is fine, and an answer that is not.
    let server =
        Server::answering(answer("200 OK", "Content-Type: application/json\r\n", "{")).await;
    let (spec, asked) = at(&server);
    assert_eq!(cause(spec).await, format!("{asked}200 OK"));
    let location = format!("Location: {}\r\n", there.url("/v1/s3cret?k3y"));
    let server = Server::answering(answer("302 Found", &location, "")).await;
    let (spec, asked) = at(&server);
    let asked = asked.trim_end_matches(": ");
    let origin = there.url("");
    assert_eq!(
        cause(spec).await,
        format!("{asked}, redirected to {origin}: 500 Internal Server Error")
    );
    let long = get(&server.url(&format!("/v1/{}", "x".repeat(600))), &[]);
    let told = cause(HttpToolSpec { max_redirects: 0, ..long }).await;
    assert!(told.contains("xxx…: `127.0.0.1` redirects once more"), "{told}");
}

#[tokio::test]
async fn the_model_reads_no_internal_addresses() {
    let redirect = answer("302 Found", "Location: http://10.11.12.13/\r\n", "");
    let server = Server::answering(redirect).await;
    let tool = HttpToolSpec { max_redirects: 1, ..get(&server.url("/"), &[]) };
    let tool = tool.build(&client()).unwrap();
    let error = tool.call(json!({}), ToolContextParts::detached().into()).await.unwrap_err();
    assert!(error.message.contains("`127.0.0.1` redirects, and then"), "{error:?}");
    assert_eq!(
        error.cause_chain().unwrap(),
        format!(
            "GET {}: `127.0.0.1` redirects, and then: `10.11.12.13` leads to 10.11.12.13, which is \
             private; if it is meant, write `allow_addresses = [\"10.11.12.13/32\"]` in the tool",
            server.url("/")
        )
    );
}

#[tokio::test]
async fn redirects_and_sizes_are_bound_by_the_tool() {
    let server = Server::answering(answer("302 Found", "Location: /x\r\n", "")).await;
    let tool = HttpToolSpec { max_redirects: 0, ..get(&server.url("/"), &[]) };
    let (_, message) = fails(tool, json!({})).await;
    assert!(message.contains("more than the limit of 0"), "{message}");
    let server = Server::answering(answer("200 OK", "", &"x".repeat(101))).await;
    let tool = HttpToolSpec { max_body_bytes: 100, ..get(&server.url("/"), &[]) };
    let (code, message) = fails(tool, json!({})).await;
    assert_eq!(code, ErrorCode::ExecutionFailed);
    assert!(message.contains("larger than 100 bytes"), "{message}");
}

#[tokio::test]
async fn a_call_that_is_cut_off_says_what_is_known() {
    for (method, sent, expected) in [
        (Method::GET, true, ErrorCode::Cancelled),
        (Method::POST, true, ErrorCode::OutcomeUnknown),
        (Method::POST, false, ErrorCode::Cancelled),
    ] {
        let server = Server::silent().await;
        let tool = spec(method, &server.url("/"), &[]).build(&client()).unwrap();
        let cancellation = CancellationToken::new();
        if !sent {
            cancellation.cancel();
        }
        let parts =
            ToolContextParts { cancellation: cancellation.clone(), ..ToolContextParts::detached() };
        let (outcome, ()) = tokio::join!(tool.call(json!({}), parts.into()), async {
            if sent {
                server.got_one.cancelled().await;
                cancellation.cancel();
            }
        });
        assert_eq!(outcome.unwrap_err().code, expected);
    }
}

#[tokio::test]
async fn a_personality_that_keeps_the_tool_from_its_host_makes_it_not_available() {
    let server = Server::answering(ok("text/plain", "here")).await;
    let tool = get(&server.url("/"), &[]).build(&client()).unwrap();
    let under = |allow: Option<&str>, deny: Option<&str>| {
        let texts = |text: Option<&str>| text.into_iter().map(Into::into).collect();
        let allow = allow.map(|host| texts(Some(host)));
        let network = Arc::new(NetworkRules { allow, deny: texts(deny) });
        tool.call(json!({}), ToolContextParts { network, ..ToolContextParts::detached() }.into())
    };
    assert_eq!(under(Some("127.0.0.1"), None).await.unwrap().value, "here");
    for (allow, deny) in
        [(Some("other.test"), None), (None, Some("127.0.0.1")), (None, Some("http://x"))]
    {
        let refused = under(allow, deny).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotAvailable, "{refused:?}");
    }
    assert_eq!(server.asked().len(), 1);
}
