//! Connections that are used again, and those that are not.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use toolcrib_capabilities::http::{HttpError, HttpRequest, Method};

use crate::support::{Reply, Server, close, get, keep, local, ok, send, text};

#[tokio::test]
async fn a_connection_serves_again_once_its_answer_is_read() {
    let server = Server::start(|asked| ok(asked.line())).await;
    let client = local().build();
    for number in 0..20 {
        let answer = get(&client, &server.url(&format!("/{number}"))).await.unwrap();
        assert_eq!(text(&answer), format!("GET /{number} HTTP/1.1"));
    }
    // A clone and a narrowed client have the same rules for addresses.
    get(&client.clone(), &server.url("/")).await.unwrap();
    get(&client.only(["127.0.0.1".parse().unwrap()]), &server.url("/")).await.unwrap();
    assert_eq!(server.connections(), 1);
    // Another host is another origin, whatever it leads to.
    get(&client, &server.url_of("localhost", "/")).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let server = Server::start(|asked| ok(asked.line())).await;
    let client = local().build();
    let urls: Vec<_> = (0..40).map(|number| server.url(&format!("/{number}"))).collect();
    let answers = futures_util::future::join_all(urls.iter().map(|url| get(&client, url))).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(text(&answer.unwrap()), format!("GET /{number} HTTP/1.1"));
    }
    assert_eq!(server.asked().len(), 40);
}

#[tokio::test]
async fn a_connection_that_the_server_closes_does_not_serve_again() {
    let server = Server::start(|_| {
        close("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
    })
    .await;
    let client = local().build();
    for number in 1..5 {
        assert_eq!(text(&get(&client, &server.url("/")).await.unwrap()), "ok");
        assert_eq!(server.connections(), number);
    }
}

#[tokio::test]
async fn only_what_says_so_is_sent_twice_when_an_idle_connection_breaks() {
    for (method, said, again) in [
        (Method::GET, None, true),
        (Method::HEAD, None, true),
        (Method::POST, None, false),
        (Method::GET, Some(false), false),
        (Method::POST, Some(true), true),
    ] {
        let broken_once = AtomicBool::new(false);
        // Closes its first connection at the second request on it.
        let server = Server::start(move |asked| {
            if asked.line().contains("/second") && !broken_once.swap(true, Ordering::SeqCst) {
                close("")
            } else {
                ok("")
            }
        })
        .await;
        let client = local().build();
        get(&client, &server.url("/first")).await.unwrap();
        let mut request = HttpRequest::new(method.clone(), server.url("/second"));
        request.may_repeat = said.unwrap_or(request.may_repeat);
        let outcome = send(&client, request).await;
        if again {
            outcome.unwrap();
            assert_eq!((server.connections(), server.asked().len()), (2, 3), "{method}");
        } else {
            let error = outcome.unwrap_err();
            assert!(matches!(error, HttpError::Exchange { .. }), "{error}");
            assert!(error.may_have_reached_server());
            assert_eq!((server.connections(), server.asked().len()), (1, 2), "{method}");
        }
    }
}

#[tokio::test]
async fn what_was_never_written_reached_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = send(&local().build(), HttpRequest::new(Method::POST, url)).await.unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error}");
    assert!(!error.may_have_reached_server());
}

#[tokio::test]
async fn what_was_written_and_cannot_be_asked_again_may_have_reached_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = local().build();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        hear_question(&mut stream).await;
        // From here on no connection is accepted.
        drop(listener);
        stream.write_all(NOTHING).await.unwrap();
        hear_question(&mut stream).await;
    };
    let ask = async {
        get(&client, &url).await.unwrap();
        let mut request = HttpRequest::new(Method::POST, url.clone());
        request.may_repeat = true;
        send(&client, request).await.unwrap_err()
    };
    let (error, ()) = join(ask, server).await;
    assert!(matches!(error, HttpError::Exchange { .. }), "{error}");
    assert!(error.may_have_reached_server());
}

/// An answer without a body.
const NOTHING: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Reads a request without a body.
async fn hear_question(stream: &mut TcpStream) {
    let mut heard = Vec::new();
    while !heard.ends_with(b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "it left");
    }
}

#[tokio::test]
async fn a_question_on_a_new_connection_is_asked_once() {
    let server = Server::start(|_| close("")).await;
    get(&local().build(), &server.url("/")).await.unwrap_err();
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn what_is_dropped_closes_its_connection() {
    let server =
        Server::start(|_| Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec()))
            .await;
    let client = local().build();
    let url = server.url("/");
    let request = get(&client, &url);
    tokio::select! {
        _ = request => panic!("it never answers"),
        () = server.got_one.cancelled() => {}
    }
    server.left.cancelled().await;
}

#[tokio::test]
async fn an_answer_before_the_question_is_not_taken_for_its_answer() {
    // The second answer is pushed with the first.
    let server = Server::start(|_| {
        keep(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirstHTTP/1.1 200 OK\r\n\
             Content-Length: 6\r\n\r\nforged",
        )
    })
    .await;
    let client = local().build();
    for _ in 0..3 {
        assert_eq!(text(&get(&client, &server.url("/")).await.unwrap()), "first");
    }
}
