//! The ends of prepared replies.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use toolcrib_testbed::{Bytes, CannedServer, Reply};

use crate::support::{connect, in_time, raw, request};

async fn get(server: &CannedServer) -> Vec<u8> {
    raw(&server.url(), &request("GET", "/", &[], "")).await
}

#[tokio::test]
async fn replies_come_in_order_and_then_there_are_none() {
    let server = CannedServer::start([
        Reply::new(429).header("retry-after", "2").body("slow down"),
        Reply::json(200, &serde_json::json!({ "a": 1 })),
        Reply::sse()
            .piece("data: 1\n\n")
            .piece("")
            .pause(Duration::from_millis(1))
            .piece("data: 2\n\n"),
        Reply::new(200).until_close().piece("to the end"),
    ])
    .await
    .unwrap();
    let mut came = Vec::new();
    for _ in 0..5 {
        // All replies but the last keep the connection open, so the client closes it.
        let mut stream = connect(&server.url()).await;
        stream.write_all(request("POST", "/x?y", &[], "body").as_bytes()).await.unwrap();
        let mut text = vec![0; 2048];
        let mut read = 0;
        while !String::from_utf8_lossy(&text[..read]).ends_with(END[came.len()]) {
            let more = in_time(stream.read(&mut text[read..])).await.unwrap();
            assert_ne!(more, 0, "{}", String::from_utf8_lossy(&text[..read]));
            read += more;
        }
        came.push(String::from_utf8(text[..read].to_vec()).unwrap());
    }
    insta::assert_snapshot!(came.join("\n--\n").replace('\r', ""));
    let kept = server.recorder().requests();
    assert_eq!(kept.len(), 5);
    assert_eq!((&*kept[0].path_and_query, &kept[0].body[..]), ("/x?y", &b"body"[..]));
}

/// The end of each of the replies above.
const END: [&str; 5] = ["slow down", "}", "0\r\n\r\n", "end", "request 5"];

#[tokio::test]
async fn a_connection_serves_more_than_one_request() {
    let server = CannedServer::start(std::iter::repeat(Reply::new(200).body("ok"))).await.unwrap();
    let mut stream = connect(&server.url()).await;
    // The second body comes in chunks.
    let chunked =
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for request in [&*request("GET", "/", &[], ""), chunked] {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut came = Vec::new();
        while !came.ends_with(b"ok") {
            in_time(stream.read_buf(&mut came)).await.unwrap();
        }
    }
    assert_eq!((server.connections(), server.open()), (1, 1));
    assert_eq!(server.recorder().last().unwrap().body, "abcde");
    drop(stream);
    in_time(async {
        while server.open() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(server.left(), 0, "it went away between replies");
}

#[tokio::test]
async fn a_reply_that_is_cut_has_no_end() {
    let server = CannedServer::start([
        Reply::sse().piece("data: {\"a").cut(),
        Reply::new(200).content_length(100).piece("short").cut(),
        Reply::nothing().cut(),
        Reply::nothing().piece("220 mail.example.com ESMTP\r\n"),
    ])
    .await
    .unwrap();
    assert!(get(&server).await.ends_with(b"a\r\n9\r\ndata: {\"a\r\n"[2..].as_ref()));
    assert!(get(&server).await.ends_with(b"content-length: 100\r\n\r\nshort"));
    assert_eq!(get(&server).await, b"");
    assert_eq!(get(&server).await, b"220 mail.example.com ESMTP\r\n");
}

#[tokio::test]
async fn a_reset_is_an_error_for_the_client() {
    let server = CannedServer::start([Reply::nothing().reset()]).await.unwrap();
    let mut stream = connect(&server.url()).await;
    stream.write_all(request("GET", "/", &[], "").as_bytes()).await.unwrap();
    let error = in_time(stream.read_u8()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed() {
    let server = CannedServer::start([
        Reply::sse().piece("data: 1\n\n").hold(),
        Reply::sse().pause(Duration::from_secs(600)),
    ])
    .await
    .unwrap();
    for left in 1..=2 {
        let mut stream = connect(&server.url()).await;
        stream.write_all(request("GET", "/", &[], "").as_bytes()).await.unwrap();
        in_time(stream.read_u8()).await.unwrap();
        assert_eq!((server.left(), server.open()), (left - 1, 1));
        drop(stream);
        in_time(server.wait_until_left(left)).await;
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_line_of_any_size_can_be_sent() {
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let pieces = std::iter::repeat_n(piece, 32);
    let server = CannedServer::start([Reply::sse().pieces(pieces).cut()]).await.unwrap();
    assert!(get(&server).await.len() > 32 << 20);
}

#[tokio::test]
async fn pauses_are_kept() {
    let reply =
        Reply::new(200).until_close().piece("a").pause(Duration::from_millis(30)).piece("b");
    let server = CannedServer::start([reply]).await.unwrap();
    let begun = Instant::now();
    assert!(get(&server).await.ends_with(b"\r\n\r\nab"));
    assert!(begun.elapsed() >= Duration::from_millis(30));
}

#[tokio::test]
async fn connections_end_with_the_server() {
    let server = CannedServer::start([Reply::sse().hold()]).await.unwrap();
    let mut stream = connect(&server.url()).await;
    stream.write_all(request("GET", "/", &[], "").as_bytes()).await.unwrap();
    in_time(server.recorder().wait_for(1)).await;
    let address = stream.peer_addr().unwrap();
    drop(server);
    let mut came = Vec::new();
    let _ = in_time(stream.read_to_end(&mut came)).await;
    assert!(came.is_empty() || came.starts_with(b"HTTP/1.1 200"));
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}
