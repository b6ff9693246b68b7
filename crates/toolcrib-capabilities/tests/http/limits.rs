//! Answers that are too large, too slow or none at all.

use std::{
    error::Error,
    io::{self, Write},
    net::IpAddr,
    time::Duration,
};

use flate2::{Compression, write::GzEncoder};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::http::{HttpClient, HttpError, HttpRequest, Method, Resolve};

use crate::support::{Reply, Server, close, get, keep, local, ok, send, text, with_headers};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A request whose answer may have so many bytes.
fn at_most(server: &Server, bytes: usize) -> HttpRequest {
    let mut request = HttpRequest::get(server.url("/"));
    request.max_body_bytes = bytes;
    request
}

async fn fails(client: &HttpClient, reply: fn() -> Reply) -> HttpError {
    let server = Server::start(move |_| reply()).await;
    let error = get(client, &server.url("/?token=s3cret")).await.unwrap_err();
    assert!(error.may_have_reached_server(), "{error}");
    assert!(error.to_string().contains("`127.0.0.1`"), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    error
}

#[tokio::test]
async fn a_body_without_end_ends_at_the_limit() {
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000)).into_bytes();
    // Without a length it goes on until it closes, which it never does.
    for (head, again) in
        [("Transfer-Encoding: chunked", chunk), ("Connection: close", vec![b'x'; 0x10000])]
    {
        let server = Server::start(move |_| {
            Reply::Endless(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes(), again.clone())
        })
        .await;
        let error = send(&local().build(), at_most(&server, 1_000_000)).await.unwrap_err();
        assert!(matches!(error, HttpError::BodyTooLarge { limit: 1_000_000, .. }), "{error}");
        // Nobody goes on reading it.
        server.left.cancelled().await;
    }
}

#[tokio::test]
async fn a_body_that_says_that_it_is_too_large_is_not_read() {
    let server = Server::start(|_| {
        Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n".to_vec())
    })
    .await;
    let error = get(&local().build(), &server.url("/")).await.unwrap_err();
    assert!(matches!(error, HttpError::BodyTooLarge { .. }), "{error}");
    server.left.cancelled().await;
}

#[tokio::test]
async fn a_body_may_be_as_large_as_the_limit() {
    let server = Server::start(|_| ok("12345")).await;
    let zipped = Server::start(|_| with_headers("Content-Encoding: gzip\r\n", &gzip(&[b'1'; 500])));
    let zipped = zipped.await;
    let client = local().build();
    assert_eq!(text(&send(&client, at_most(&server, 5)).await.unwrap()), "12345");
    assert!(matches!(
        send(&client, at_most(&server, 4)).await.unwrap_err(),
        HttpError::BodyTooLarge { limit: 4, .. }
    ));
    assert_eq!(send(&client, at_most(&zipped, 500)).await.unwrap().body.len(), 500);
    assert!(matches!(
        send(&client, at_most(&zipped, 499)).await.unwrap_err(),
        HttpError::BodyTooLarge { limit: 499, .. }
    ));
    assert!(send(&client, at_most(&zipped, 1)).await.is_err());
}

#[tokio::test]
async fn gzip_is_decoded_and_its_headers_are_gone() {
    let body = "é".repeat(100_000);
    let expected = body.clone();
    let server = Server::start(move |asked| {
        let name = if asked.line().contains("/x") { "X-GZIP" } else { "gzip" };
        with_headers(&format!("Content-Encoding: {name}\r\n"), &gzip(body.as_bytes()))
    })
    .await;
    for path in ["/", "/x"] {
        let answer = get(&local().build(), &server.url(path)).await.unwrap();
        assert_eq!(text(&answer), expected);
        assert!(!answer.headers.contains_key("content-encoding"));
        assert!(!answer.headers.contains_key("content-length"));
    }
}

#[tokio::test]
async fn a_gzip_of_several_members_is_one_body() {
    let members = [gzip(b"one, "), gzip(b"two")].concat();
    let server = Server::start(move |_| with_headers("Content-Encoding: gzip\r\n", &members)).await;
    let response = get(&local().build(), &server.url("/")).await.unwrap();
    assert_eq!(text(&response), "one, two");
}

#[tokio::test]
async fn a_gzip_bomb_ends_at_the_limit() {
    // A hundred million zeros, written a million at a time.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..100 {
        encoder.write_all(&[0; 1_000_000]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1_000_000, "the limit must not be met before it is decoded");
    let server = Server::start(move |_| with_headers("Content-Encoding: gzip\r\n", &bomb)).await;
    let error = get(&local().build(), &server.url("/")).await.unwrap_err();
    assert!(matches!(error, HttpError::BodyTooLarge { .. }), "{error}");
}

#[tokio::test]
async fn a_gzip_of_nothing_without_end_ends_at_the_limit() {
    // Empty blocks, which contain no bytes however many there are.
    let blocks = [0, 0, 0, 0xff, 0xff].repeat(0x1000);
    let chunk = [format!("{:x}\r\n", blocks.len()).as_bytes(), &blocks, b"\r\n"].concat();
    let head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n\
        a\r\n\x1f\x8b\x08\0\0\0\0\0\0\xff\r\n";
    let server = Server::start(move |_| Reply::Endless(head.to_vec(), chunk.clone())).await;
    let error = send(&local().build(), at_most(&server, 1_000_000)).await.unwrap_err();
    assert!(matches!(error, HttpError::BodyTooLarge { .. }), "{error}");
    server.left.cancelled().await;
}

#[tokio::test]
async fn encodings_that_nobody_asked_for_are_refused() {
    let client = local().build();
    for headers in [
        "Content-Encoding: gzip, gzip\r\n",
        "Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n",
        "Content-Encoding: gzip,identity,br\r\n",
        "Content-Encoding: br\r\n",
        "Content-Encoding: deflate\r\n",
        "Content-Encoding: zstd\r\n",
        "Content-Encoding: \u{fffd}\u{1f4a9}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
    ] {
        let server = Server::start(move |_| with_headers(headers, &gzip(&gzip(b"x")))).await;
        let error = get(&client, &server.url("/")).await.unwrap_err();
        assert!(matches!(error, HttpError::Encoding { .. }), "{headers}: {error}");
        assert!(error.to_string().chars().count() < 150, "{error}");
    }
    let server = Server::start(|_| with_headers("Content-Encoding: identity\r\n", b"plain")).await;
    assert_eq!(text(&get(&client, &server.url("/")).await.unwrap()), "plain");
}

#[tokio::test]
async fn what_is_no_whole_gzip_is_said() {
    let client = local().build();
    let bodies: [fn() -> Vec<u8>; 4] = [
        || b"no gzip at all".to_vec(),
        || gzip(b"cut off")[..20].to_vec(),
        || [gzip(b"whole"), b"and more".to_vec()].concat(),
        || {
            let mut wrong = gzip(b"checksum");
            let at = wrong.len() - 8;
            wrong[at] ^= 1;
            wrong
        },
    ];
    for body in bodies {
        let server =
            Server::start(move |_| with_headers("Content-Encoding: gzip\r\n", &body())).await;
        let error = get(&client, &server.url("/")).await.unwrap_err();
        assert!(matches!(error, HttpError::Decode { .. }), "{error}");
    }
    let server = Server::start(|_| with_headers("Content-Encoding: gzip\r\n", b"")).await;
    assert_eq!(text(&get(&client, &server.url("/")).await.unwrap()), "");
}

#[tokio::test]
async fn a_head_without_end_or_of_too_many_headers_is_not_read_on() {
    let server = Server::start(|_| {
        Reply::Endless(
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            b"X-Filler: xxxxxxxxxxxxxxxx\r\n".repeat(99),
        )
    })
    .await;
    let error = get(&local().build(), &server.url("/")).await.unwrap_err();
    assert!(matches!(error, HttpError::Exchange { .. }), "{error}");
    assert!(error.to_string().contains("too large"), "{error}");
    server.left.cancelled().await;

    let error = fails(&local().build(), || {
        keep(format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-A: b\r\n".repeat(101)))
    })
    .await;
    assert!(error.to_string().contains("too large"), "{error}");
    let error = fails(&local().build(), || {
        keep(format!("HTTP/1.1 200 OK\r\nX-A: {}\r\n\r\n", "b".repeat(100_000)))
    })
    .await;
    assert!(error.to_string().contains("too large"), "{error}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_or_is_none_is_an_error() {
    let client = local().build();
    let replies: [fn() -> Reply; 8] = [
        || close(""),
        || close("HTTP/1.1 200 O"),
        || close("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
        || close("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
        || close("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnonsense"),
        || close("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
        || close("SSH-2.0-OpenSSH_9.6\r\n\r\n"),
        || close("HTTP/1.1 200 OK\r\nNo colon\r\n\r\n"),
    ];
    for reply in replies {
        let error = fails(&client, reply).await;
        assert!(matches!(error, HttpError::Exchange { .. }), "{error}");
        assert!(error.source().is_some());
    }
}

#[tokio::test]
async fn a_slow_answer_ends_with_the_time_or_the_callers_patience() {
    let replies: [fn() -> Reply; 3] = [
        || Reply::Hang(Vec::new()),
        || Reply::Hang(b"HTTP/1.1 200 OK\r\nX-Slow: ".to_vec()),
        || Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_vec()),
    ];
    let client = local().build();
    for reply in replies {
        let server = Server::start(move |_| reply()).await;
        let mut request = HttpRequest::new(Method::POST, server.url("/"));
        request.timeout = None;
        let cancel = CancellationToken::new();
        let (outcome, ()) = tokio::join!(client.send(request.clone(), &cancel), async {
            server.got_one.cancelled().await;
            cancel.cancel();
        });
        let error = outcome.unwrap_err();
        assert!(matches!(error, HttpError::Cancelled { sent: true, .. }), "{error}");
        server.left.cancelled().await;

        request.timeout = Some(Duration::from_millis(200));
        let error = send(&client, request).await.unwrap_err();
        assert!(matches!(error, HttpError::TimedOut { .. }), "{error}");
        assert!(error.to_string().contains("200ms"), "{error}");
    }
}

/// Never answers.
struct Silence;

impl Resolve for Silence {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn what_ends_before_there_is_a_connection_was_certainly_not_sent() {
    let client = local().resolver(Silence).build();
    let mut request = HttpRequest::new(Method::POST, "http://a.example/");
    request.timeout = Some(Duration::from_millis(10));
    let error = send(&client, request).await.unwrap_err();
    assert!(matches!(error, HttpError::TimedOut { sent: false, .. }), "{error}");
    assert!(!error.may_have_reached_server());
}

#[tokio::test]
async fn what_is_cancelled_before_it_starts_is_not_sent() {
    let server = Server::start(|_| ok("")).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let request = HttpRequest::new(Method::POST, server.url("/"));
    let error = local().build().send(request, &cancel).await.unwrap_err();
    assert!(matches!(error, HttpError::Cancelled { sent: false, .. }), "{error}");
    assert!(!error.may_have_reached_server());
    assert_eq!(server.connections(), 0);
}
