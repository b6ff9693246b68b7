//! Requests of calls.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_tools::http::{HttpToolSpec, Method};

use crate::support::{
    SECRET, Server, Vault, answer, call, call_with, client, client_of, fails, get, post, spec,
};

async fn server() -> Server {
    Server::answering(answer("204 No Content", "", "")).await
}

fn headers(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn arguments_are_sent_in_their_placeholders() {
    let server = server().await;
    let tool = HttpToolSpec {
        headers: headers(&[("X-Tenant", "t-{tenant}"), ("X-Trace", "{trace}"), ("X-N", "{{{n}}}")]),
        ..get(
            &server.url("/users/{id}/items?q={q}&tag={tags}&page={page}"),
            &["id", "q", "tags", "page?", "tenant", "trace?", "n"],
        )
    };
    let args = json!({
        "id": "a/admin", "q": "a&b=c #d", "tags": ["x", "y z"], "tenant": "é", "n": 1.5,
    });
    call(tool, args).await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(
        asked.line(),
        "GET /users/a%2Fadmin/items?q=a%26b%3Dc%20%23d&tag=x&tag=y%20z HTTP/1.1"
    );
    assert_eq!(asked.header("x-tenant"), Some("t-é"));
    assert_eq!(asked.header("x-n"), Some("{1.5}"));
    assert_eq!(asked.header("x-trace"), None);
    assert_eq!(asked.header("accept"), Some("application/json, */*;q=0.5"));
    assert_eq!(asked.header("content-type"), None);
    assert_eq!(asked.body, "");
}

#[tokio::test]
async fn the_idempotency_key_of_a_call_is_in_the_declared_header() {
    let server = server().await;
    let tool = || HttpToolSpec {
        idempotency_header: Some("Idempotency-Key".into()),
        ..post(&server.url("/"), &[], json!({}))
    };
    for _ in 0..2 {
        call(tool(), json!({})).await.unwrap();
    }
    let asked = server.asked();
    let keys: Vec<_> = asked.iter().map(|asked| asked.header("idempotency-key")).collect();
    let key = toolcrib_core::ToolContext::from(toolcrib_core::ToolContextParts::detached());
    let key = key.idempotency_key();
    assert_eq!((keys, key.len()), (vec![Some(&*key), Some(&*key)], 32));
    let twice = HttpToolSpec { headers: headers(&[("idempotency-key", "1")]), ..tool() };
    assert!(twice.build(&client()).unwrap_err().to_string().contains("keep one of them"));
}

#[tokio::test]
async fn a_body_keeps_types_and_leaves_out_what_is_absent() {
    let server = server().await;
    let body = json!({
        "id": "{id}",
        "text": "order {id} of {who}",
        "gone": "{gone}",
        "also": "for {gone}",
        "null": "{null}",
        "list": [1, "{gone}", "{flag}", "{{x}}"],
        "{{key}}": { "deep": "{object}" },
        "fixed": { "": "", "n": 1.50 },
    });
    let properties = ["id", "who", "gone?", "null?", "flag", "object"];
    let args = json!({
        "id": 7, "who": "a \"b\" {id}", "null": null, "flag": true, "object": { "a": [1] },
    });
    call(post(&server.url("/"), &properties, body), args).await.unwrap();
    let asked = &server.asked()[0];
    assert_eq!(asked.line(), "POST / HTTP/1.1");
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(
        asked.body,
        json!({
            "id": 7,
            "text": "order 7 of a \"b\" {id}",
            "null": null,
            "list": [1, true, "{x}"],
            "{key}": { "deep": { "a": [1] } },
            "fixed": { "": "", "n": 1.5 },
        })
        .to_string()
    );
}

#[tokio::test]
async fn a_body_may_be_an_argument_or_none_at_all() {
    let server = server().await;
    let tool = || {
        let mut tool = post(&server.url("/"), &["all?"], json!("{all}"));
        tool.headers = headers(&[("Content-Type", "application/merge-patch+json")]);
        tool
    };
    call(tool(), json!({ "all": [1, 2] })).await.unwrap();
    call(tool(), json!({})).await.unwrap();
    call(spec(Method::DELETE, &server.url("/x"), &[]), json!({})).await.unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].body, "[1,2]");
    assert_eq!(asked[0].header("content-type"), Some("application/merge-patch+json"));
    assert_eq!((asked[1].body.as_str(), asked[2].body.as_str()), ("", ""));
    assert_eq!(asked[2].line(), "DELETE /x HTTP/1.1");
}

#[tokio::test]
async fn an_argument_that_cannot_be_sent_is_invalid_input() {
    let server = server().await;
    let tool = || HttpToolSpec {
        headers: headers(&[("X-A", "{a}")]),
        ..get(&server.url("/{b}"), &["a", "b"])
    };
    for (args, named) in [
        (json!({ "a": "x\r\nX-Evil: 1", "b": "b" }), "`a` contains a line end"),
        (json!({ "a": "x\ny", "b": "b" }), "`a` contains a line end"),
        (json!({ "a": "\0", "b": "b" }), "`a` contains a line end"),
        (json!({ "a": "a", "b": ".." }), "`b` must not contain a `.` or `..` as a part of a path"),
        (json!({ "a": "a", "b": "" }), "`b` must not be empty"),
        (json!({ "a": "a", "b": "x".repeat(20_000) }), "with these arguments the URL cannot"),
    ] {
        let (code, message) = fails(tool(), args).await;
        assert_eq!(code, ErrorCode::InputInvalid, "{message}");
        assert!(message.starts_with(named), "{message}");
        assert!(!message.contains("Evil"), "{message}");
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_secret_is_asked_for_when_it_is_sent() {
    let server = server().await;
    let vault = Arc::new(Vault::default());
    let tool = HttpToolSpec {
        headers: headers(&[
            ("Authorization", "Bearer {secret:KEY}"),
            ("X-Key", "secret:KEY"),
            ("X-Other", "{secret:OTHER}{a}"),
        ]),
        ..get(&server.url("/{b}"), &["a?", "b"])
    };
    let tool = tool.build(&client()).unwrap();
    assert!(vault.asked.lock().unwrap().is_empty());
    // A call that cannot be made asks for none.
    call_with(&tool, json!({ "b": "" }), &vault).await.unwrap_err();
    assert!(vault.asked.lock().unwrap().is_empty());
    // A header that is left out needs none.
    call_with(&tool, json!({ "b": "x" }), &vault).await.unwrap();
    assert_eq!(*vault.asked.lock().unwrap(), ["KEY"]);
    let asked = &server.asked()[0];
    assert_eq!(asked.header("authorization"), Some(&*format!("Bearer {SECRET}")));
    assert_eq!(asked.header("x-key"), Some(SECRET));

    let error = call_with(&tool, json!({ "a": "a", "b": "x" }), &vault).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotAvailable);
    assert!(!error.message.contains("OTHER"), "{error:?}");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_secret_is_never_shown() {
    let vault = Arc::new(Vault::default());
    let answers = ["", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "nonsense\r\n\r\n"];
    for bytes in answers {
        let server = Server::answering(bytes).await;
        let tool = HttpToolSpec {
            headers: headers(&[("Authorization", "Bearer {secret:KEY}")]),
            ..get(&server.url("/"), &[])
        };
        let tool = tool.build(&client()).unwrap();
        let error = call_with(&tool, json!({}), &vault).await.unwrap_err();
        let shown = format!("{error:?} {:?}", error.cause_chain());
        assert!(!shown.contains("s3cret"), "{shown}");
        assert_eq!(server.asked().len(), 1);
    }

    let server = server().await;
    let tool = HttpToolSpec {
        headers: headers(&[("X-Key", "{secret:BROKEN}")]),
        ..get(&server.url("/"), &[])
    };
    let error = call_with(&tool.build(&client()).unwrap(), json!({}), &vault).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotAvailable);
    let shown = format!("{error:?}");
    assert!(shown.contains("x-key") && !shown.contains("s3cret"), "{shown}");
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_secret_does_not_follow_to_another_origin() {
    let vault = Arc::new(Vault::default());
    let other = server().await;
    let redirect = answer("302 Found", &format!("Location: {}\r\n", other.url("/")), "");
    let server = Server::answering(redirect).await;
    let tool = HttpToolSpec {
        headers: headers(&[("X-Key", "secret:KEY"), ("Accept", "secret:KEY")]),
        ..get(&server.url("/"), &[])
    };
    call_with(&tool.build(&client_of(&other)).unwrap(), json!({}), &vault).await.unwrap();
    assert!(server.asked()[0].head.contains(SECRET));
    assert!(!other.asked()[0].head.contains(SECRET), "{:?}", other.asked());
}
