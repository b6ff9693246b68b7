//! Errors of a hub, and text that they never contain.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::json;
use toolcrib_core::{DiscoveryErrorClass, ToolHub as _};
use toolcrib_tools::hub::{HubLimits, HubSpec};

use crate::support::{SECRET, Server, build, fails, in_pages, json, of, spec, status};

async fn fails_with(spec: HubSpec) -> (DiscoveryErrorClass, Option<String>, String) {
    let error = fails(spec).await;
    (error.class(), error.code().map(str::to_owned), error.message().to_owned())
}

fn source(code: Option<&str>, message: &str) -> (DiscoveryErrorClass, Option<String>, String) {
    (DiscoveryErrorClass::Source, code.map(str::to_owned), message.to_owned())
}

#[tokio::test]
async fn pages_that_never_end_are_given_up() {
    let server = Server::start(|asked| match asked.uri.path() {
        "/cursor" => json(&json!({ "tools": [], "next": "same" })),
        "/url" => json(&json!({ "tools": [], "next": "/url" })),
        _ => {
            static PAGE: AtomicUsize = AtomicUsize::new(0);
            let next = PAGE.fetch_add(1, Ordering::SeqCst);
            json(&json!({ "tools": [{ "name": format!("t{next}") }], "next": next }))
        }
    })
    .await;
    let loops = |page: usize| {
        let message = format!("page {page} of its catalog names a next page that was there before");
        source(Some("page_loop"), &message)
    };
    assert_eq!(fails_with(in_pages(&server, "/cursor?c={cursor}")).await, loops(2));
    assert_eq!(fails_with(in_pages(&server, "/url")).await, loops(2));
    let bounded = |limits| HubSpec { limits, ..in_pages(&server, "/more?c={cursor}") };
    let limits = HubLimits { pages: 3, ..HubLimits::default() };
    let too_many = source(None, "its catalog has more than 3 pages");
    assert_eq!(fails_with(bounded(limits)).await, too_many);
    let limits = HubLimits { tools: 2, ..HubLimits::default() };
    let too_many = source(None, "its catalog lists more than 2 tools");
    assert_eq!(fails_with(bounded(limits)).await, too_many);
    let limits = HubLimits { bytes: 100, ..HubLimits::default() };
    let too_large = source(Some("too_large"), "its catalog has more than 100 bytes");
    assert_eq!(fails_with(bounded(limits)).await, too_large);
}

#[tokio::test]
async fn a_next_page_on_another_server_is_not_asked() {
    let other = Server::of(json!({ "tools": [] })).await;
    let elsewhere = other.url("/");
    let server = Server::of(json!({ "tools": [], "next": elsewhere })).await;
    let (_, _, message) = fails_with(in_pages(&server, "/")).await;
    assert!(message.contains("a next page on another server"), "{message}");
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn a_response_that_is_not_a_catalog_is_an_error() {
    let text = |body: &'static str| Server::start(move |_| status(200, &[], body));
    for (body, problem) in [
        ("<html>", "the catalog of `127.0.0.1` is no JSON: expected value at line 1 column 1"),
        ("{}", "the catalog of `127.0.0.1` has nothing at `/tools`, where its list is"),
        (r#"{"tools":{}}"#, "what the catalog of `127.0.0.1` has at `/tools` is not a list"),
    ] {
        let server = text(body).await;
        assert_eq!(fails_with(in_pages(&server, "/")).await, source(None, problem));
    }
}

#[tokio::test]
async fn a_refusing_status_is_reported_with_its_retry_time() {
    for (code, head, message, wait) in [
        (401, "", "`127.0.0.1` answered 401 Unauthorized; check the secret in its headers", None),
        (404, "", "`127.0.0.1` answered 404 Not Found; check its URL", None),
        (429, "7", "`127.0.0.1` answered 429 Too Many Requests", Some(7)),
        (
            503,
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "`127.0.0.1` answered 503 Service Unavailable",
            Some(0),
        ),
        (503, "soon", "`127.0.0.1` answered 503 Service Unavailable", None),
        // Nothing was asked for that could have stayed the same.
        (304, "", "`127.0.0.1` answered 304 Not Modified", None),
    ] {
        let server = Server::start(move |_| status(code, &[("retry-after", head)], SECRET)).await;
        let error = fails(spec(&server, "/")).await;
        assert_eq!((error.message(), error.http_status()), (message, Some(code)));
        assert_eq!(error.retry_after(), wait.map(Duration::from_secs));
    }
}

#[tokio::test]
async fn a_server_that_is_silent_times_out_and_one_that_is_not_there_is_unreachable() {
    // It takes the connection and never answers: the outcome is the same however long it takes.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let at = || {
        let url = format!("http://{address}/");
        HubSpec::new("h", url.clone(), toolcrib_tools::http::Method::POST, format!("{url}{{tool}}"))
    };
    let hub = || HubSpec { timeout: Duration::from_millis(50), ..at() };
    assert_eq!(fails(hub()).await.class(), DiscoveryErrorClass::Timeout);
    let cx = of(None, None);
    let cancelled = build(at());
    let request = cx.clone().into();
    let (answer, ()) = tokio::join!(cancelled.fetch_catalog(&request), async {
        tokio::task::yield_now().await;
        cx.cancellation().cancel();
    });
    assert_eq!(answer.unwrap_err().class(), DiscoveryErrorClass::Cancelled);
    drop(listener);
    let error = fails(at()).await;
    assert_eq!((error.class(), error.code()), (DiscoveryErrorClass::Source, Some("unreachable")));
}

#[tokio::test]
async fn a_catalog_of_an_identity_requires_that_identity() {
    let server = Server::of(json!([])).await;
    for (path, what) in [("/{tenant}", "tenant"), ("/?p={principal}", "principal")] {
        let message = format!(
            "its request needs a {what}, and the run names none; with a cache, the key has to \
             declare it"
        );
        let expected = source(Some("identity_missing"), &message);
        assert_eq!(fails_with(spec(&server, path)).await, expected);
    }
    let in_header = HubSpec {
        headers: vec![("x-tenant".to_owned(), "{tenant}".to_owned())],
        ..spec(&server, "/")
    };
    let evil = of(Some("a\r\nx-admin: 1"), None);
    let error = build(in_header).fetch_catalog(&evil.into()).await.unwrap_err();
    assert!(error.message().contains("`tenant` contains a line end"), "{error}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_secret_is_sent_and_never_told() {
    let echo = Server::start(|asked| {
        let key = asked.header("authorization").unwrap_or_default().to_owned();
        status(500, &[("retry-after", &key)], key.clone())
    })
    .await;
    let with = |secret: &str| HubSpec {
        headers: vec![("authorization".to_owned(), format!("Bearer {{secret:{secret}}}"))],
        ..spec(&echo, "/")
    };
    let error = fails(with("KEY")).await;
    assert_eq!(echo.asked()[0].header("authorization"), Some(&*format!("Bearer {SECRET}")));
    assert!(!format!("{error:?}").contains(SECRET), "{error:?}");
    let unknown = fails(with("OTHER")).await;
    assert_eq!(unknown.message(), "its catalog cannot be asked for: secret `OTHER` does not exist");
    assert_eq!((unknown.code(), echo.asked().len()), (Some("not_set_up"), 1));
}
