//! Answers that are read as they come.

use std::{io::Write as _, pin::pin, time::Duration};

use flate2::{Compression, write::GzEncoder};
use futures_util::{StreamExt, TryStreamExt, future::join};
use tokio::time::{advance, sleep, timeout};
use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::http::{
    HeaderValue, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpStream, Method, StatusCode,
};

use crate::support::{
    Feed, Reply, Server, StoppedClock, close, get, keep, local, ok, redirect, text, with_headers,
};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const CHUNKED_END: &str = "0\r\n\r\n";

fn chunk(piece: &str) -> String {
    format!("{:x}\r\n{piece}\r\n", piece.len())
}

/// Opens a stream without cancellation.
async fn open(client: &HttpClient, request: HttpRequest) -> Result<HttpStream, HttpError> {
    client.stream(request, &CancellationToken::new()).await
}

async fn next(stream: &mut HttpStream) -> String {
    let piece = stream.chunk().await.unwrap().expect("a piece");
    String::from_utf8(piece.to_vec()).unwrap()
}

/// The error of a stream, after its remaining chunks.
async fn fails(stream: &mut HttpStream) -> HttpError {
    let error = loop {
        match stream.chunk().await {
            Ok(piece) => assert!(piece.is_some(), "it must not end like a whole one"),
            Err(error) => break error,
        }
    };
    assert!(error.may_have_reached_server(), "{error}");
    assert_eq!(stream.chunk().await.unwrap(), None);
    error
}

/// A server that answers with what it is fed, and a stream of that.
async fn fed(client: &HttpClient, change: impl FnOnce(&mut HttpRequest)) -> (Feed, HttpStream) {
    let feed = Feed::start(CHUNKED).await;
    let mut request = HttpRequest::get(feed.server.url("/"));
    change(&mut request);
    let stream = open(client, request).await.unwrap();
    (feed, stream)
}

#[tokio::test]
async fn pieces_come_one_by_one_as_they_are_sent() {
    for (head, end) in [
        (CHUNKED, CHUNKED_END),
        ("HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n", ""),
        ("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", ""),
    ] {
        let feed = Feed::start(head).await;
        let mut stream =
            open(&local().build(), HttpRequest::get(feed.server.url("/a"))).await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
        assert_eq!(stream.headers().len(), 1);
        assert_eq!(stream.final_url().as_str(), feed.server.url("/a"));
        for piece in ["first", "secon", "third"] {
            // Sent only now that the one before has been read.
            feed.send(if head == CHUNKED { chunk(piece) } else { piece.to_owned() });
            assert_eq!(next(&mut stream).await, piece, "{head}");
        }
        feed.send(end);
        feed.close();
        assert_eq!(stream.chunk().await.unwrap(), None, "{head}");
        assert_eq!(stream.chunk().await.unwrap(), None, "{head}");
    }
}

#[tokio::test]
async fn a_body_implements_stream() {
    let server =
        Server::start(|_| keep([CHUNKED, &chunk("one, "), &chunk("two"), CHUNKED_END].concat()))
            .await;
    let stream = open(&local().build(), HttpRequest::get(server.url("/"))).await.unwrap();
    let pieces: Vec<_> = stream.try_collect().await.unwrap();
    assert_eq!(pieces.concat(), b"one, two");
}

#[tokio::test]
async fn a_status_is_no_error_and_its_body_can_be_read() {
    let server = Server::start(|_| {
        keep("HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nwait")
    })
    .await;
    let request = HttpRequest::new(Method::POST, server.url("/"));
    let mut stream = open(&local().build(), request).await.unwrap();
    assert_eq!(stream.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(stream.headers()["retry-after"], "7");
    assert_eq!(next(&mut stream).await, "wait");
}

#[tokio::test]
async fn a_body_that_breaks_off_does_not_end_like_a_whole_one() {
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf".to_owned(),
        [CHUNKED, &chunk("half")].concat(),
        [CHUNKED, &chunk("half"), "5\r\nag"].concat(),
        [CHUNKED, &chunk("half"), "nonsense\r\n"].concat(),
    ] {
        let server = Server::start(move |_| close(&reply)).await;
        let mut stream = open(&local().build(), HttpRequest::get(server.url("/"))).await.unwrap();
        assert_eq!(next(&mut stream).await, "half");
        let error = fails(&mut stream).await;
        assert!(matches!(error, HttpError::Exchange { .. }), "{error}");
        assert_eq!(error.kind(), HttpErrorKind::Broken);
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_not_waited_for() {
    let (idle, clock) = (Duration::from_millis(200), StoppedClock::new());
    for (reply, has_head) in [
        (String::new(), false),
        (CHUNKED.to_owned(), true),
        ([CHUNKED, &chunk("half")].concat(), true),
    ] {
        let server = Server::start(move |_| Reply::Hang(reply.clone().into_bytes())).await;
        let mut request = HttpRequest::get(server.url("/"));
        request.timeout = None;
        request.idle_timeout = Some(idle);
        let client = local().build();
        let mut opening = pin!(open(&client, request));
        let error = if has_head {
            clock.until(fails(&mut opening.await.unwrap())).await
        } else {
            tokio::select! {
                _ = &mut opening => panic!("no time has passed"),
                () = server.got_one.cancelled() => {}
            }
            clock.until(opening).await.unwrap_err()
        };
        assert!(matches!(error, HttpError::IdleTimedOut { after, .. } if after == idle), "{error}");
        assert!(error.to_string().contains("sent nothing for 200ms"), "{error}");
        assert_eq!(error.kind(), HttpErrorKind::TimedOut);
        assert!(error.may_have_reached_server());
        server.left.cancelled().await;
    }
}

#[tokio::test]
async fn only_the_silence_between_two_pieces_counts() {
    let _clock = StoppedClock::new();
    let (feed, mut stream) = fed(&local().build(), |request| {
        request.idle_timeout = Some(Duration::from_secs(1));
    })
    .await;
    // More than a second in all.
    for _ in 0..3 {
        let (piece, ()) = join(next(&mut stream), async {
            advance(Duration::from_millis(400)).await;
            feed.send(chunk("piece"));
        })
        .await;
        assert_eq!(piece, "piece");
    }
}

#[tokio::test]
async fn the_time_that_the_reader_takes_is_no_silence() {
    let _clock = StoppedClock::new();
    let (feed, mut stream) = fed(&local().build(), |request| {
        request.idle_timeout = Some(Duration::from_millis(500));
    })
    .await;
    feed.send(chunk("first"));
    assert_eq!(next(&mut stream).await, "first");
    advance(Duration::from_millis(700)).await;
    let (piece, ()) = join(next(&mut stream), async { feed.send(chunk("second")) }).await;
    assert_eq!(piece, "second");
}

#[tokio::test]
async fn the_timeout_ends_a_stream_that_still_receives() {
    let _clock = StoppedClock::new();
    let (feed, mut stream) = fed(&local().build(), |request| {
        request.timeout = Some(Duration::from_millis(300));
        request.idle_timeout = Some(Duration::from_secs(60));
    })
    .await;
    let feeding = async {
        loop {
            feed.send(chunk("piece"));
            advance(Duration::from_millis(20)).await;
        }
    };
    let error = tokio::select! {
        () = feeding => unreachable!("it goes on"),
        error = fails(&mut stream) => error,
    };
    assert!(matches!(error, HttpError::TimedOut { sent: true, .. }), "{error}");
    assert!(error.to_string().contains("300ms"), "{error}");
    assert_eq!(error.kind(), HttpErrorKind::TimedOut);
    feed.server.left.cancelled().await;
}

#[tokio::test]
async fn cancellation_closes_a_stream_at_once() {
    let feed = Feed::start(CHUNKED).await;
    let cancel = CancellationToken::new();
    let request = HttpRequest::get(feed.server.url("/"));
    let mut stream = local().build().stream(request, &cancel).await.unwrap();
    feed.send(chunk("first"));
    assert_eq!(next(&mut stream).await, "first");
    let (error, ()) = join(fails(&mut stream), async {
        sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    })
    .await;
    assert!(matches!(error, HttpError::Cancelled { sent: true, .. }), "{error}");
    assert_eq!(error.kind(), HttpErrorKind::Cancelled);
    feed.server.left.cancelled().await;
}

#[tokio::test]
async fn an_unread_stream_closes_at_cancellation_and_at_its_timeout() {
    let feed = Feed::start(CHUNKED).await;
    feed.send(chunk("unread"));
    let cancel = CancellationToken::new();
    let request = HttpRequest::get(feed.server.url("/"));
    let mut stream = local().build().stream(request, &cancel).await.unwrap();
    cancel.cancel();
    feed.server.left.cancelled().await;
    // Chunks that had arrived are not returned any more.
    assert_eq!(stream.chunk().await.unwrap_err().kind(), HttpErrorKind::Cancelled);

    let clock = StoppedClock::new();
    let (feed, mut stream) = fed(&local().build(), |request| {
        request.timeout = Some(Duration::from_millis(100));
    })
    .await;
    clock.until(feed.server.left.cancelled()).await;
    assert_eq!(stream.chunk().await.unwrap_err().kind(), HttpErrorKind::TimedOut);
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let (feed, mut stream) = fed(&local().build(), |_| {}).await;
    feed.send(chunk("first"));
    assert_eq!(next(&mut stream).await, "first");
    drop(stream);
    feed.server.left.cancelled().await;
}

#[tokio::test]
async fn a_wait_that_is_dropped_loses_nothing() {
    let (feed, mut stream) = fed(&local().build(), |_| {}).await;
    for piece in ["first", "second"] {
        let wait = timeout(Duration::from_millis(20), stream.chunk()).await;
        assert!(wait.is_err(), "nothing was sent yet");
        feed.send(chunk(piece));
        assert_eq!(next(&mut stream).await, piece);
    }
}

#[tokio::test]
async fn only_what_was_read_to_its_end_serves_again() {
    let body = [CHUNKED, &chunk("one"), &chunk("two"), CHUNKED_END].concat();
    let server = Server::start(move |_| keep(&body)).await;
    let client = local().build();
    for _ in 0..3 {
        let stream = open(&client, HttpRequest::get(server.url("/"))).await.unwrap();
        assert_eq!(stream.try_collect::<Vec<_>>().await.unwrap().concat(), b"onetwo");
        assert_eq!(text(&get(&client, &server.url("/")).await.unwrap()), "onetwo");
        assert_eq!(server.connections(), 1);
    }
    let mut stream = open(&client, HttpRequest::get(server.url("/"))).await.unwrap();
    stream.chunk().await.unwrap();
    drop(stream);
    get(&client, &server.url("/")).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn what_ends_a_stream_that_was_read_does_not_end_the_next_one() {
    let server = Server::start(|_| ok("whole")).await;
    let client = local().build();
    for _ in 0..20 {
        let cancel = CancellationToken::new();
        let request = HttpRequest::get(server.url("/"));
        let mut stream = client.stream(request, &cancel).await.unwrap();
        assert_eq!(next(&mut stream).await, "whole");
        assert_eq!(stream.chunk().await.unwrap(), None);
        cancel.cancel();
        tokio::task::yield_now().await;
        assert_eq!(stream.chunk().await.unwrap(), None);
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_redirect_that_is_not_followed_hands_over_nothing() {
    let other = Server::start(|_| ok("other")).await;
    for status in [301, 302, 303, 307, 308] {
        for location in [other.url("/there"), "/here".to_owned(), "file:///x".to_owned()] {
            let first = Server::start(move |_| redirect(status, &location)).await;
            let mut request = HttpRequest::new(Method::POST, first.url("/"));
            request.headers.insert("authorization", HeaderValue::from_static("Bearer s3cret"));
            request.body = Some("{}".into());
            request.max_redirects = 0;
            let error = open(&local().build(), request).await.unwrap_err();
            assert!(matches!(error, HttpError::TooManyRedirects { limit: 0, .. }), "{error}");
            assert_eq!(error.kind(), HttpErrorKind::Redirect);
            assert_eq!(first.asked().len(), 1);
        }
    }
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_redirect_that_is_followed_leads_to_its_stream() {
    let server = Server::start(|asked| match asked.line() {
        "GET / HTTP/1.1" => redirect(302, "/there"),
        _ => close([CHUNKED, &chunk("half")].concat()),
    })
    .await;
    let mut stream = open(&local().build(), HttpRequest::get(server.url("/"))).await.unwrap();
    assert_eq!(stream.final_url().as_str(), server.url("/there"));
    assert_eq!(next(&mut stream).await, "half");
    let error = fails(&mut stream).await;
    assert!(matches!(error, HttpError::Redirected { .. }), "{error}");
    assert_eq!(error.kind(), HttpErrorKind::Broken);
}

#[tokio::test]
async fn an_encoding_that_is_not_decoded_is_refused() {
    for encoding in ["deflate", "br", "gzip, gzip"] {
        let headers = format!("Content-Encoding: {encoding}\r\n");
        let server = Server::start(move |_| with_headers(&headers, b"encoded")).await;
        let error = open(&local().build(), HttpRequest::get(server.url("/"))).await.unwrap_err();
        assert!(matches!(error, HttpError::Encoding { .. }), "{encoding}: {error}");
        assert!(error.to_string().contains("only gzip, once, is decoded"), "{error}");
        assert_eq!(error.kind(), HttpErrorKind::Unfit);
        assert_eq!(server.asked()[0].header("accept-encoding"), Some("identity"));
    }
    // A refusal is understood without its body.
    for status in ["401 Unauthorized", "502 Bad Gateway"] {
        let server = Server::start(move |_| {
            keep(format!(
                "HTTP/1.1 {status}\r\nContent-Encoding: br\r\nWWW-Authenticate: Bearer\r\n\
                 Content-Length: 7\r\n\r\nencoded"
            ))
        })
        .await;
        let request = HttpRequest::new(Method::POST, server.url("/"));
        let mut stream = open(&local().build(), request).await.unwrap();
        assert!(status.starts_with(stream.status().as_str()));
        assert_eq!(stream.headers()["www-authenticate"], "Bearer");
        assert_eq!(stream.chunk().await.unwrap(), None);
    }
    let server = Server::start(|_| with_headers("Content-Encoding: identity\r\n", b"plain")).await;
    let mut stream = open(&local().build(), HttpRequest::get(server.url("/"))).await.unwrap();
    assert_eq!(next(&mut stream).await, "plain");
}

#[tokio::test]
async fn gzip_is_decoded_as_it_arrives_and_its_decoded_size_is_bound() {
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    let binary =
        |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    for (is_whole, limit) in [(true, 100), (false, 100), (true, 99)] {
        let feed = Feed::start(HEAD).await;
        let mut request = HttpRequest::get(feed.server.url("/"));
        request.max_body_bytes = limit;
        let mut stream = open(&local().build(), request).await.unwrap();
        assert!(!stream.headers().contains_key("content-encoding"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        for piece in ["a".repeat(50), "b".repeat(49)] {
            // Sent only now that the one before has been read.
            encoder.write_all(piece.as_bytes()).unwrap();
            encoder.flush().unwrap();
            feed.send(binary(&std::mem::take(encoder.get_mut())));
            assert_eq!(next(&mut stream).await, piece);
        }
        encoder.write_all(b"c").unwrap();
        let mut rest = encoder.finish().unwrap();
        if !is_whole {
            rest.pop();
        }
        feed.send([binary(&rest), CHUNKED_END.as_bytes().to_vec()].concat());
        if limit == 99 {
            let error = fails(&mut stream).await;
            assert!(matches!(error, HttpError::BodyTooLarge { limit: 99, .. }), "{error}");
            continue;
        }
        assert_eq!(next(&mut stream).await, "c");
        match is_whole {
            true => assert_eq!(stream.chunk().await.unwrap(), None),
            false => assert!(matches!(fails(&mut stream).await, HttpError::Decode { .. })),
        }
    }
}

#[tokio::test]
async fn the_total_size_of_a_stream_is_limited() {
    let (feed, mut stream) = fed(&local().build(), |request| request.max_body_bytes = 10).await;
    for piece in ["12345", "67890"] {
        feed.send(chunk(piece));
        assert_eq!(next(&mut stream).await, piece);
    }
    feed.send(chunk("1"));
    let error = fails(&mut stream).await;
    assert!(matches!(error, HttpError::BodyTooLarge { limit: 10, .. }), "{error}");
    assert_eq!(error.kind(), HttpErrorKind::Unfit);
    feed.server.left.cancelled().await;

    let server =
        Server::start(|_| Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n".to_vec()))
            .await;
    let mut request = HttpRequest::get(server.url("/"));
    request.max_body_bytes = 10;
    let error = open(&local().build(), request).await.unwrap_err();
    assert!(matches!(error, HttpError::BodyTooLarge { limit: 10, .. }), "{error}");
    server.left.cancelled().await;
}

#[tokio::test]
async fn no_more_is_taken_than_is_read() {
    let again = chunk(&"x".repeat(0x10000)).into_bytes();
    let server =
        Server::start(move |_| Reply::Endless(CHUNKED.as_bytes().to_vec(), again.clone())).await;
    let mut request = HttpRequest::get(server.url("/"));
    request.max_body_bytes = 1_000_000;
    let mut stream = open(&local().build(), request).await.unwrap();
    assert!(!next(&mut stream).await.is_empty());
    // Were it read on, it would be too large by now.
    sleep(Duration::from_millis(100)).await;
    let more = stream.by_ref().take(3).try_collect::<Vec<_>>().await.unwrap();
    assert_eq!(more.len(), 3);
}
